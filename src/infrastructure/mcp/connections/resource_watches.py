"""The `McpResourceNews` port: watches resources of servers, each once for all its watchers. Above:
streams of the gateway. Below: `resource_following.py`, on the connections that calls use."""

import asyncio
import logging
import random
from collections.abc import Callable
from typing import Protocol

from application.mcp.account_secrets import PersonSecretStore
from application.mcp.news import Release
from application.mcp.ports import ConnectionScope, McpFailure
from domain.ids import OrganizationId
from domain.mcp.backoff import Backoff
from domain.mcp.server import McpServer
from infrastructure.events.row_notifications import RowNotifications
from infrastructure.mcp.connections.connection_key import (
    ConnectionKey,
    acting_server,
    connection_key,
    given_revision,
)

logger = logging.getLogger(__name__)

Tell = Callable[[str], None]
_PAUSES = Backoff(first_s=1.0, longest_s=60.0)


class WantedResources:
    """Watched resources of one connection, with their watchers. `changed` is set when the resources
    change, `account_changed` when the secrets of a person for the connection may have."""

    def __init__(self) -> None:
        self._telling: dict[str, dict[object, Tell]] = {}
        self._was_open = False
        self.changed = asyncio.Event()
        self.account_changed = asyncio.Event()

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
    """Rules:
    - One task per connection with watched resources. After a failure or loss it retries with full
      jitter, up to a minute apart.
    - When a person replaces a secret, the resources are watched on a connection with the new one,
      and on none when it is deleted, in every process.
    """

    def __init__(
        self,
        connections: FollowingConnections,
        *,
        person_secrets: PersonSecretStore,
        row_notifications: RowNotifications,
        fraction: Callable[[], float] = random.random,
    ) -> None:
        self._connections = connections
        self._person_secrets = person_secrets
        self._fraction = fraction  # chance, not secrecy
        # Who is not active has no secrets.
        row_notifications.watch(self._accounts_changed, "person_grant", "user_account", "identity_provider")
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

    def _accounts_changed(self, _: OrganizationId | None) -> None:
        for wanted in self._wanted.values():
            wanted.account_changed.set()

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
                    if await self._follow(server, scope, wanted):
                        continue
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

    async def _follow(self, server: McpServer, scope: ConnectionScope, wanted: WantedResources) -> bool:
        """Watch until nothing is wanted, the connection is over, or other secrets are to be used,
        which is True. Raises McpFailure."""
        if not server.config.person_secrets:
            await self._connections.follow_resources(server, scope, wanted)
            return False
        wanted.account_changed.clear()
        acting = acting_server(server, scope)
        used = await given_revision(acting, self._person_secrets)
        following = asyncio.create_task(self._connections.follow_resources(server, scope, wanted), name="mcp-followed")
        try:
            while await self._other_account_is_possible(following, wanted):
                wanted.account_changed.clear()
                if used != await given_revision(acting, self._person_secrets):
                    return True
            await following
            return False
        finally:
            following.cancel()
            await asyncio.wait([following])

    @staticmethod
    async def _other_account_is_possible(following: asyncio.Task[None], wanted: WantedResources) -> bool:
        """Wait for a change of accounts; False if `following` ends first."""
        changing = asyncio.create_task(wanted.account_changed.wait())
        try:
            await asyncio.wait([changing, following], return_when=asyncio.FIRST_COMPLETED)
        finally:
            changing.cancel()
        return not following.done()

    async def _pause(self, wanted: WantedResources, pause_s: float) -> None:
        """Wait for the retry, or until nothing is wanted."""
        ends = asyncio.get_running_loop().time() + pause_s
        while not wanted.is_empty and (left_s := ends - asyncio.get_running_loop().time()) > 0:
            wanted.changed.clear()
            await asyncio.wait([changing := asyncio.create_task(wanted.changed.wait())], timeout=left_s)
            changing.cancel()
