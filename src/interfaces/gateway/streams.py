"""Streams of change notifications: GET for legacy clients, `subscriptions/listen` for modern ones.

MCP 2025-11-25, basic/transports, listening for messages; MCP 2026-07-28,
basic/utilities/subscriptions.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass

from litestar.types import Receive, Send

from application.gateway.subscriptions.subscribe_to_changes import (
    Changes,
    ChangeSubscription,
    SubscribeToChanges,
    SubscribeToChangesCommand,
    SubscriptionEnded,
)
from application.mcp.news import ListKind
from domain.errors import ErrorKind, ServiceError
from domain.gateway.client import MAX_SUBSCRIPTIONS, GatewayClient
from domain.gateway.session import GatewaySession
from domain.json_value import JsonObject, JsonValue
from interfaces.disconnects import client_left
from interfaces.gateway.messages import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    RATE_LIMITED,
    RpcError,
    RpcMessage,
    result_json,
)
from interfaces.gateway.wire import PING, frame, send_part, start_stream

LISTEN = "subscriptions/listen"
CHANGE_CAPABILITIES: JsonObject = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
}
_SUBSCRIPTION_META = "io.modelcontextprotocol/subscriptionId"
_ASKED_BY = {
    ListKind.TOOLS: "toolsListChanged",
    ListKind.PROMPTS: "promptsListChanged",
    ListKind.RESOURCES: "resourcesListChanged",
}
_RETRY_AFTER_S = 10
IsOpen = Callable[[], Awaitable[bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamLimits:
    """The number of concurrent streams, and the interval of keep-alive comments."""

    per_session: int = 100
    per_process: int = 10_000
    heartbeat_s: float = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """A client that opens a stream. `client` is the legacy client, if the request names it."""

    session: GatewaySession
    is_open: IsOpen
    receive: Receive
    send: Send
    client: GatewayClient | None = None


class GatewayStreams:
    """Rules:
    - Events have no id, so a stream cannot be resumed. Events only say that something changed, and
      a client that opens a new stream reads everything again.
    - Of several streams of one client only the newest gets events (MCP 2025-11-25).
    """

    def __init__(self, *, follow: SubscribeToChanges, limits: StreamLimits) -> None:
        self._follow = follow
        self._limits = limits
        self._count = 0
        self._of_session: dict[str, int] = {}
        self._of_client: dict[str, list[object]] = {}

    @property
    def count(self) -> int:
        return self._count

    async def stand_by(self, listener: Listener) -> None:
        """The stream of a legacy client, until it disconnects or has ended. Raises RpcError before
        anything is sent."""
        command = SubscribeToChangesCommand(session=listener.session, is_open=listener.is_open, client=listener.client)
        this = object()
        with self._place(listener.session), self._newest(listener.client, this) as is_newest:

            async def tell(changes: Changes) -> None:
                if is_newest():
                    for method, params in _notifications(changes):
                        await send_part(listener.send, frame(_notification(method, params)), more=True)

            async with _opened(self._follow, command) as following:
                await start_stream(listener.send)
                await send_part(listener.send, PING, more=True)
                if not await self._carry(listener, following, tell):
                    await send_part(listener.send, b"", more=False)

    async def listen(self, listener: Listener, message: RpcMessage) -> None:
        """Answer `subscriptions/listen`. Raises RpcError before anything is sent."""
        kinds, uris = _wanted(message.params.get("notifications"))
        command = SubscribeToChangesCommand(session=listener.session, is_open=listener.is_open, kinds=kinds, uris=uris)
        meta: dict[str, object] = {_SUBSCRIPTION_META: message.id}

        async def tell(changes: Changes) -> None:
            for method, params in _notifications(changes):
                await send_part(listener.send, frame(_notification(method, {**params, "_meta": meta})), more=True)

        with self._place(listener.session):
            async with _opened(self._follow, command) as following:
                honored: dict[str, object] = {_ASKED_BY[kind]: True for kind in ListKind if kind in kinds}
                if following.honored:
                    honored["resourceSubscriptions"] = list(following.honored)
                acknowledged: dict[str, object] = {"notifications": honored, "_meta": meta}
                await start_stream(listener.send)
                first = frame(_notification("notifications/subscriptions/acknowledged", acknowledged))
                await send_part(listener.send, first, more=True)
                if not await self._carry(listener, following, tell):
                    end = result_json(message.id, {"resultType": "complete", "_meta": meta})
                    await send_part(listener.send, frame(end), more=False)

    async def _carry(
        self, listener: Listener, following: ChangeSubscription, tell: Callable[[Changes], Awaitable[None]]
    ) -> bool:
        """Send events; True after the client disconnected, False when no more events can come."""
        leaving = asyncio.create_task(client_left(listener.receive))
        leaving.add_done_callback(lambda _: following.wake())
        try:
            while not leaving.done():
                began = asyncio.get_running_loop().time()
                try:
                    changes = await following.next(self._limits.heartbeat_s)
                except SubscriptionEnded:
                    return False
                except ServiceError:  # storage is unavailable: changes are sent when it is back
                    await asyncio.sleep(min(1.0, self._limits.heartbeat_s))
                    continue
                if leaving.done():
                    break
                await tell(changes)
                if asyncio.get_running_loop().time() - began >= self._limits.heartbeat_s:
                    await send_part(listener.send, PING, more=True)
            return True
        finally:
            leaving.cancel()

    @contextmanager
    def _place(self, session: GatewaySession) -> Iterator[None]:
        """Occupy one of the permitted streams. Raises RpcError if there is none."""
        if self._count >= self._limits.per_process:
            raise _refused("The service has too many open streams.", 503)
        mine = self._of_session.get(session.id, 0)
        if mine >= self._limits.per_session:
            raise _refused(f"The session has {mine} open streams, the maximum.", 429)
        self._count += 1
        self._of_session[session.id] = mine + 1
        try:
            yield
        finally:
            self._count -= 1
            self._of_session[session.id] -= 1
            if not self._of_session[session.id]:
                del self._of_session[session.id]

    @contextmanager
    def _newest(self, client: GatewayClient | None, this: object) -> Iterator[Callable[[], bool]]:
        """A function that returns whether this is the newest stream of its client."""
        if client is None:
            yield lambda: True
            return
        streams = self._of_client.setdefault(client.id, [])
        streams.append(this)
        try:
            yield lambda: streams[-1] is this
        finally:
            streams.remove(this)
            if not streams:
                self._of_client.pop(client.id, None)


@asynccontextmanager
async def _opened(follow: SubscribeToChanges, command: SubscribeToChangesCommand) -> AsyncIterator[ChangeSubscription]:
    """Follow changes. A failure to start is the response. Raises RpcError."""
    async with AsyncExitStack() as stack:
        try:
            following = await stack.enter_async_context(follow.execute(command))
        except ServiceError as error:
            status = 503 if error.kind is ErrorKind.UNAVAILABLE else 200
            raise RpcError(INTERNAL_ERROR, error.detail, data={"code": error.code}, status=status) from error
        yield following


def _wanted(asked: JsonValue) -> tuple[frozenset[ListKind], tuple[str, ...]]:
    """The events that a client subscribes to. Raises RpcError."""
    if not isinstance(asked, dict):
        raise RpcError(INVALID_PARAMS, "params.notifications must be an object.")
    for name in _ASKED_BY.values():
        if not isinstance(asked.get(name), bool | None):
            raise RpcError(INVALID_PARAMS, f"params.notifications.{name} must be true or false.")
    uris = asked.get("resourceSubscriptions")
    if uris is None:
        uris = []
    if not isinstance(uris, list) or not all(isinstance(uri, str) for uri in uris):
        raise RpcError(INVALID_PARAMS, "params.notifications.resourceSubscriptions must be a list of URIs.")
    if len(uris) > MAX_SUBSCRIPTIONS:
        raise RpcError(INVALID_PARAMS, f"A stream may subscribe to {MAX_SUBSCRIPTIONS} resources.")
    kinds = frozenset(kind for kind, name in _ASKED_BY.items() if asked.get(name) is True)
    return kinds, tuple(dict.fromkeys(str(uri) for uri in uris))


def _notifications(changes: Changes) -> Iterator[tuple[str, dict[str, object]]]:
    for kind in changes.lists:
        yield f"notifications/{kind.value}/list_changed", {}
    for uri in changes.updated:
        yield "notifications/resources/updated", {"uri": uri}


def _notification(method: str, params: dict[str, object]) -> dict[str, object]:
    message: dict[str, object] = {"jsonrpc": "2.0", "method": method}
    return {**message, "params": params} if params else message


def _refused(detail: str, status: int) -> RpcError:
    data: JsonObject = {"code": "too_many_streams", "retryAfterSeconds": _RETRY_AFTER_S}
    return RpcError(RATE_LIMITED, detail, data=data, status=status)


def takes_events(headers: dict[str, str]) -> None:
    """Raises RpcError for a client that does not accept an event stream."""
    accept = headers.get("accept", "*/*")
    if not any(kind in accept for kind in ("text/event-stream", "*/*", "text/*")):
        raise RpcError(INVALID_REQUEST, "This response is text/event-stream: accept it.", status=406)
