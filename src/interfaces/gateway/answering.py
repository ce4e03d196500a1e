"""Sends the response to a request as JSON or as an event stream, and cancels requests in
progress."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from functools import partial

import msgspec
from litestar.types import Receive, Send

from application.gateway.calls.request_cancellations import RequestCancellations, SentRequest
from domain.errors import ServiceError
from interfaces.disconnects import client_left
from interfaces.gateway.exchange import Exchange
from interfaces.gateway.messages import INTERNAL_ERROR, RequestId, RpcError, error_json, result_json
from interfaces.gateway.methods import GatewayMethods
from interfaces.gateway.wire import JSON_MEDIA, PING, frame, send_part, send_whole, start_stream

logger = logging.getLogger(__name__)

QUIET_S = 10.0
"""A response that takes longer becomes a stream, which comments keep alive."""
WATCH_AFTER_S = 0.2
"""After this time the endpoint checks whether the client is still connected. Most requests finish
before."""
ELSEWHERE_AFTER_S = 1.0
"""After this additional time it also checks whether another process received a cancellation."""
_Key = tuple[str, str, RequestId]
_TakenBack = Callable[[], Coroutine[None, None, None]]
Headers = Sequence[tuple[bytes, bytes]]
_FIRST = asyncio.FIRST_COMPLETED


class GatewayAnswers:
    """Answers each request in the task that received it. A task per request would cost as much as
    policy and audit."""

    def __init__(self, *, methods: GatewayMethods, cancellations: RequestCancellations) -> None:
        self._methods = methods
        self._cancellations = cancellations
        self._calls: dict[_Key, _PendingResponse] = {}

    async def answer(self, exchange: Exchange, receive: Receive, send: Send, headers: Headers = ()) -> None:
        """Send the response as JSON, or, if the client accepts it, as a stream. The response
        becomes a stream at the first notification, or when it takes long.

        - A modern client that disconnects cancels its request.
        - A legacy request continues after a disconnection until it is cancelled (MCP 2025-11-25,
          transports).
        """
        sent = None if exchange.envelope.is_modern else _sent(exchange)
        taken_back = None if sent is None else partial(self._taken_back, sent)
        carrier = _PendingResponse(exchange, receive, send, headers, taken_back)
        if exchange.takes_stream:
            exchange.tell = carrier.tell
        exchange.left = carrier.left
        if sent is not None:
            self._calls[_key(sent)] = carrier
        carrier.begin()
        try:
            answer, status = result_json(exchange.message.id, await self.result(exchange)), 200
        except RpcError as error:
            answer, status = error_json(exchange.message.id, error), error.status
        except asyncio.CancelledError:
            if not carrier.was_cancelled():
                raise
            if carrier.has_left:
                return
            cancelled = RpcError(INTERNAL_ERROR, "The request was cancelled.")
            answer, status = error_json(exchange.message.id, cancelled), 200
        finally:
            carrier.end()
            if sent is not None and self._calls.get(_key(sent)) is carrier:
                del self._calls[_key(sent)]
        await carrier.finish(answer, status)

    async def cancel(self, sent: SentRequest) -> None:
        """Cancel a legacy client's request, in whichever process it is running."""
        carrier = self._calls.get(_key(sent))
        if carrier is not None:
            carrier.cancel()
        else:
            await self._cancellations.cancel(sent)

    async def result(self, exchange: Exchange) -> dict[str, object]:
        """The result of a request whose response is sent elsewhere. Raises RpcError."""
        try:
            return await self._methods.answer(exchange)
        except RpcError:
            raise
        except Exception as exc:
            logger.exception(
                "gateway request failed",
                extra={
                    "organization_id": exchange.session.organization_id,
                    "gateway_session_id": exchange.session.id,
                    "method": exchange.message.method,
                },
            )
            raise RpcError(INTERNAL_ERROR, "The gateway failed; its log has the details.") from exc

    async def _taken_back(self, sent: SentRequest) -> None:
        """Returns when another process received the cancellation; never, if that cannot be read."""
        try:
            await self._cancellations.cancelled(sent)
        except ServiceError:
            logger.warning("gateway cancellations cannot be read", extra={"gateway_session_id": sent.session.id})
            await asyncio.get_running_loop().create_future()


class _PendingResponse:
    """One response in progress: its notifications, keep-alive comments, and whether the client has
    disconnected."""

    __slots__ = (
        "_exchange",
        "_headers",
        "_is_over",
        "_is_withdrawn",
        "_receive",
        "_send",
        "_sending",
        "_streams",
        "_taken_back",
        "_task",
        "_timer",
        "_watcher",
        "has_left",
        "left",
    )

    def __init__(
        self, exchange: Exchange, receive: Receive, send: Send, headers: Headers, taken_back: _TakenBack | None
    ) -> None:
        self._exchange = exchange
        self._headers = headers
        self._taken_back = taken_back
        self._receive = receive
        self._send = send
        self._task = asyncio.current_task()
        self._timer: asyncio.TimerHandle | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._sending: asyncio.Lock | None = None
        self._streams = self._is_over = self._is_withdrawn = False
        self.has_left = False
        """Whether the request was cancelled because its client disconnected."""
        is_asked = taken_back is not None and exchange.takes_stream and exchange.envelope.capabilities
        self.left = asyncio.Event() if is_asked else None
        """Set when a legacy client that could be asked for input has disconnected."""

    def begin(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(WATCH_AFTER_S, self._watch)

    def end(self) -> None:
        """The response is known, or the request was cancelled. Exchange and response do not refer
        to each other any more: a cycle would keep the whole request until a garbage collection."""
        self._is_over = True
        self._exchange.tell = None
        if self._timer is not None:
            self._timer.cancel()
        if self._watcher is not None:
            self._watcher.cancel()

    def cancel(self) -> None:
        """Cancel the request, if it is running."""
        if not self._is_over and not self._is_withdrawn and self._task is not None:
            self._is_withdrawn = True
            self._task.cancel()

    def was_cancelled(self) -> bool:
        """Whether `cancel` caused the cancellation, which is then cleared, and not the end of the
        process."""
        if self._is_withdrawn and self._task is not None:
            self._task.uncancel()
        return self._is_withdrawn

    async def tell(self, news: dict[str, object]) -> None:
        """Send a message that belongs to the request, before its response."""
        if not self._is_over:
            await self._part(frame(news))

    async def finish(self, answer: dict[str, object], status: int) -> None:
        if self._streams:
            await self._part(frame(answer), more=False)
        else:
            await send_whole(self._send, status, msgspec.json.encode(answer), [JSON_MEDIA, *self._headers])

    def _watch(self) -> None:
        self._watcher = asyncio.create_task(self._watched())

    async def _watched(self) -> None:
        leaving = asyncio.create_task(client_left(self._receive))
        signs: set[asyncio.Task[None]] = set()
        try:
            done, _ = await asyncio.wait({leaving}, timeout=ELSEWHERE_AFTER_S)
            if self._taken_back is not None:
                signs.add(asyncio.create_task(self._taken_back()))
            while not done:
                done, _ = await asyncio.wait(
                    {leaving, *signs}, timeout=QUIET_S if self._exchange.takes_stream else None, return_when=_FIRST
                )
                if not done:
                    await self._part(PING)
            if leaving.done():
                self._client_left()
            if signs:
                await asyncio.wait(signs)
                self.cancel()
        finally:
            leaving.cancel()
            for sign in signs:
                sign.cancel()

    def _client_left(self) -> None:
        if self.left is not None:
            self.left.set()
        if self._exchange.envelope.is_modern and not self._is_over:
            self.has_left = True
            self.cancel()

    async def _part(self, part: bytes, *, more: bool = True) -> None:
        """Send one part at a time, whichever task sends."""
        if self._sending is None:
            self._sending = asyncio.Lock()
        async with self._sending:
            if not self._streams:
                self._streams = True
                await start_stream(self._send)
            await send_part(self._send, part, more=more)


def _sent(exchange: Exchange) -> SentRequest:
    client = exchange.envelope.client
    return SentRequest(
        session=exchange.session, client="" if client is None else client.id, request_id=exchange.message.id or 0
    )


def _key(sent: SentRequest) -> _Key:
    return sent.session.id, sent.client, sent.request_id
