"""The `McpResourceNews` port: watches resources of servers, each once for all its watchers. Above:
streams of the gateway. Below: `resource_following.py`, on the connections that calls use."""

import asyncio
import logging
import random
from collections.abc import Callable
from typing import Protocol

from application.mcp.news import Release
from application.mcp.ports import ConnectionScope, McpFailure
from domain.mcp.backoff import Backoff
from domain.mcp.server import McpServer
from infrastructure.mcp.connections.connection_key import ConnectionKey, connection_key

logger = logging.getLogger(__name__)

Tell = Callable[[str], None]
_PAUSES = Backoff(first_s=1.0, longest_s=60.0)


class WantedResources:
    """Watched resources of one connection, with their watchers. `changed` is set when the resources
    change."""

    def __init__(self) -> None:
        self._telling: dict[str, dict[object, Tell]] = {}
        self._was_open = False
        self.changed = asyncio.Event()

    @property
    def is_empty(self) -> bool:
        return not self._telling

    def take(self) -> frozenset[str]:
        """The URIs now, as the server has them."""
        self.changed.clear()
        return frozenset(self._telling)

    def add(self, uri: str, tell: Tell) -> Release:
        """Add a watcher."""
        mark = object()
        if uri not in self._telling:
            self.changed.set()
        self._telling.setdefault(uri, {})[mark] = tell

        def release() -> None:
            telling = self._telling.get(uri, {})
            if telling.pop(mark, None) is not None and not telling:
                del self._telling[uri]
                self.changed.set()

        return release

    def opened(self) -> None:
        """Watching has begun. After an interruption every watcher is notified, since updates may
        have been missed."""
        if self._was_open:
            for uri, telling in list(self._telling.items()):
                for tell in list(telling.values()):
                    tell(uri)
        self._was_open = True

    def updated(self, uri: str) -> None:
        """Notify the watchers of the resource and of its parents."""
        for watched, telling in list(self._telling.items()):
            if uri == watched or uri.startswith(watched.rstrip("/") + "/"):
                for tell in list(telling.values()):
                    tell(uri)


class FollowingConnections(Protocol):
    """Connections on which resources can be watched."""

    async def follow_resources(self, server: McpServer, scope: ConnectionScope, wanted: WantedResources) -> None:
        """Watch the wanted resources on the connection of `scope`, which stays open, until none is
        wanted or the connection is over. Raises: McpFailure."""
        ...


class ResourceWatches:
    """One task per connection with watched resources. After a failure or loss it retries with full
    jitter, up to a minute apart."""

    def __init__(self, connections: FollowingConnections, *, fraction: Callable[[], float] = random.random) -> None:
        self._connections = connections
        self._fraction = fraction  # chance, not secrecy
        self._wanted: dict[ConnectionKey | object, WantedResources] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def count(self) -> int:
        """Number of connections with watched resources."""
        return len(self._wanted)

    def watch(self, server: McpServer, scope: ConnectionScope, uri: str, tell: Tell) -> Release:
        key = connection_key(server, scope) or object()
        wanted = self._wanted.get(key)
        if wanted is not None:
            return wanted.add(uri, tell)
        wanted = self._wanted[key] = WantedResources()
        release = wanted.add(uri, tell)
        task = asyncio.create_task(self._keep(key, server, scope, wanted), name="mcp-resources")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return release

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep(
        self, key: ConnectionKey | object, server: McpServer, scope: ConnectionScope, wanted: WantedResources
    ) -> None:
        ids = {"organization_id": server.organization_id, "server_id": server.id, "server": server.config.slug}
        attempt = 0
        try:
            while not wanted.is_empty:
                began = asyncio.get_running_loop().time()
                try:
                    await self._connections.follow_resources(server, scope, wanted)
                except McpFailure as failure:
                    logger.info(
                        "watching resources of an MCP server failed; retrying",
                        extra={**ids, "failure": failure.kind.value},
                    )
                except Exception:
                    logger.exception("watching resources failed unexpectedly; retrying", extra=ids)
                if asyncio.get_running_loop().time() - began > _PAUSES.longest_s:
                    attempt = 0
                await self._pause(wanted, _PAUSES.bound_s(attempt) * self._fraction())
                attempt += 1
        finally:
            del self._wanted[key]

    async def _pause(self, wanted: WantedResources, pause_s: float) -> None:
        """Wait for the retry, or until nothing is wanted."""
        ends = asyncio.get_running_loop().time() + pause_s
        while not wanted.is_empty and (left_s := ends - asyncio.get_running_loop().time()) > 0:
            wanted.changed.clear()
            await asyncio.wait([changing := asyncio.create_task(wanted.changed.wait())], timeout=left_s)
            changing.cancel()
