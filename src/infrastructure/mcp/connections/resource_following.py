"""Watches resources on one open connection, by the rules of the server's generation (MCP
2025-11-25, server/resources; MCP 2026-07-28, basic/utilities/subscriptions). Above:
`resource_watches.py`."""

import asyncio
import logging

from mcp import ClientSession
from mcp.client.subscriptions import ListenNotSupportedError, ResourceUpdated, SubscriptionLost, listen
from mcp.shared.exceptions import MCPError

from application.mcp.contents import ContentMethod, ContentRequest
from application.mcp.ports import McpFailure, McpFailureKind
from infrastructure.mcp.connections.connection import McpConnection
from infrastructure.mcp.connections.resource_watches import WantedResources
from infrastructure.mcp.connections.server_session import ServerSession, UnusableConnectionError

logger = logging.getLogger(__name__)

_ASK_TIMEOUT_S = 30.0
_COURTESY_TIMEOUT_S = 2.0


async def follow_resources(connection: McpConnection, session: ServerSession, wanted: WantedResources) -> None:
    """Watch until nothing is wanted or the connection is over. Raises McpFailure."""
    try:
        if session.is_modern:
            await _listened(connection, session.client, wanted)
        else:
            await _subscribed(connection, session, wanted)
    except (MCPError, ListenNotSupportedError, SubscriptionLost) as exc:
        raise McpFailure(McpFailureKind.CONNECTION_LOST, "The server sends no resource updates now.") from exc
    except UnusableConnectionError as exc:
        raise exc.failure from exc


async def _listened(connection: McpConnection, client: ClientSession, wanted: WantedResources) -> None:
    """One stream for all wanted resources. When they change, another stream opens before the first
    is closed."""
    present: asyncio.Task[None] | None = None
    try:
        while uris := wanted.take():
            ready = asyncio.Event()
            following = asyncio.create_task(_listen(client, uris, wanted, ready), name="mcp-resources")
            before, present = present, following
            await _first_of(following, ready)
            if before is None:
                wanted.opened()
            else:
                await _ended(before)
            await _first_of(following, wanted.changed, connection.over)
            if following.done():
                following.result()
                return
            if connection.over.is_set():
                return
    finally:
        if present is not None:
            await _ended(present)


async def _listen(client: ClientSession, uris: frozenset[str], wanted: WantedResources, ready: asyncio.Event) -> None:
    async with listen(client, resource_subscriptions=sorted(uris)) as subscription:
        ready.set()
        async for event in subscription:
            if isinstance(event, ResourceUpdated):
                wanted.updated(event.uri)


async def _subscribed(connection: McpConnection, session: ServerSession, wanted: WantedResources) -> None:
    """One subscription per resource. A subscription that the server rejects is not repeated on this
    connection."""
    present: set[str] = set()
    connection.resource_listeners.add(wanted.updated)
    try:
        is_first = True
        while uris := wanted.take():
            for uri in sorted(uris - present):
                await _ask(session, ContentMethod.SUBSCRIBE, uri, _ASK_TIMEOUT_S)
                present.add(uri)
            for uri in sorted(present - uris):
                present.discard(uri)
                await _ask(session, ContentMethod.UNSUBSCRIBE, uri, _ASK_TIMEOUT_S)
            if is_first:
                wanted.opened()
                is_first = False
            await _first_of(wanted.changed, connection.over)
            if connection.over.is_set():
                return
    finally:
        connection.resource_listeners.discard(wanted.updated)
        if not connection.over.is_set():
            for uri in sorted(present):
                await _ask(session, ContentMethod.UNSUBSCRIBE, uri, _COURTESY_TIMEOUT_S)


async def _ask(session: ServerSession, method: ContentMethod, uri: str, timeout_s: float) -> None:
    request = ContentRequest(method=method, params={"uri": uri}, timeout_s=timeout_s)
    try:
        await session.ask(request, asyncio.get_running_loop().time() + timeout_s)
    except McpFailure as failure:
        if failure.kind is not McpFailureKind.SERVER_ERROR:
            raise
        logger.info(
            "an MCP server rejected a resource subscription",
            extra={"method": method.value, "rpc_code": failure.rpc_code},
        )


async def _first_of(*these: asyncio.Event | asyncio.Task[None]) -> None:
    waits = [asyncio.create_task(one.wait()) for one in these if isinstance(one, asyncio.Event)]
    try:
        tasks = [one for one in these if isinstance(one, asyncio.Task)]
        await asyncio.wait([*waits, *tasks], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.exception()
