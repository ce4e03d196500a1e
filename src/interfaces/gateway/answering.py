"""Carries the answer to a request: as JSON, or as a stream; and keeps what is at work, so that it can be cancelled."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import msgspec
from litestar.types import Receive, Send

from domain.gateway.session import GatewaySession
from interfaces.gateway.exchange import Exchange
from interfaces.gateway.generations import Envelope
from interfaces.gateway.messages import INTERNAL_ERROR, RequestId, RpcError, RpcMessage, error_json, result_json
from interfaces.gateway.methods import GatewayMethods
from interfaces.gateway.wire import JSON_MEDIA, PING, frame, send_part, send_whole, start_stream
from interfaces.http.requests import client_left

logger = logging.getLogger(__name__)

QUIET_S = 10.0
"""How long a request may go unanswered before its answer becomes a stream, which comments keep alive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayCall:
    """A request whose answer may be a stream; `headers` are what the answer is to have besides."""

    session: GatewaySession
    envelope: Envelope
    message: RpcMessage
    takes_stream: bool
    headers: Sequence[tuple[bytes, bytes]] = ()


class GatewayAnswers:
    """Answers requests one by one, each in its own task."""

    def __init__(self, *, methods: GatewayMethods) -> None:
        self._methods = methods
        self._calls: dict[tuple[str, RequestId], asyncio.Task[dict[str, object]]] = {}
        self._unfinished: set[asyncio.Task[dict[str, object]]] = set()

    async def answer(self, call: GatewayCall, receive: Receive, send: Send) -> None:
        """Answer in JSON; or, if the client takes that, as a stream from the first thing that is to be told before the answer,
        or when it takes long. Of the newer generation, a client that leaves cancels what it asked for; of the older, that goes on
        until it is told not to (MCP 2025-11-25, transports: a disconnection is no cancellation)."""
        told: asyncio.Queue[dict[str, object]] = asyncio.Queue()
        exchange = Exchange(
            session=call.session,
            envelope=call.envelope,
            message=call.message,
            tell=told.put if call.takes_stream else None,
        )
        task = asyncio.create_task(self.result(exchange))
        key = (call.session.id, call.message.id or 0)
        self._unfinished.add(task)
        task.add_done_callback(lambda done: self._finished(key, done))
        if not call.envelope.is_modern:
            self._calls[key] = task
        leaving = asyncio.create_task(client_left(receive))
        try:
            await self._carry(call, task, told, leaving, send)
        finally:
            leaving.cancel()
            if not task.done() and call.envelope.is_modern:
                task.cancel()
                with suppress(asyncio.CancelledError, RpcError):
                    await task

    def cancel(self, session_id: str, request_id: RequestId) -> None:
        """Stop what a client of the older generation no longer wants; nothing happens if it is not at work here."""
        task = self._calls.get((session_id, request_id))
        if task is not None:
            task.cancel()

    async def result(self, exchange: Exchange) -> dict[str, object]:
        """The result of a request that is answered elsewhere. Raises RpcError."""
        try:
            return await self._methods.answer(exchange)
        except RpcError:
            raise
        except Exception as exc:
            logger.exception(
                "gateway request failed",
                extra={"gateway_session_id": exchange.session.id, "method": exchange.message.method},
            )
            raise RpcError(INTERNAL_ERROR, "The gateway failed. Its log says why.") from exc

    def _finished(self, key: tuple[str, RequestId], task: "asyncio.Task[dict[str, object]]") -> None:
        """Whoever waited has been answered, or has gone: then its failure is in the log already."""
        self._unfinished.discard(task)
        if self._calls.get(key) is task:
            del self._calls[key]
        if not task.cancelled():
            task.exception()

    async def _carry(
        self,
        call: GatewayCall,
        task: "asyncio.Task[dict[str, object]]",
        told: "asyncio.Queue[dict[str, object]]",
        leaving: "asyncio.Task[None]",
        send: Send,
    ) -> None:
        streams = False
        telling = asyncio.create_task(told.get()) if call.takes_stream else None
        try:
            while True:
                waiting = {task, leaving} if telling is None else {task, leaving, telling}
                done, _ = await asyncio.wait(
                    waiting, timeout=QUIET_S if call.takes_stream else None, return_when=asyncio.FIRST_COMPLETED
                )
                if telling is not None and telling in done:
                    if not streams:
                        await start_stream(send)
                        streams = True
                    await send_part(send, frame(telling.result()), more=True)
                    telling = asyncio.create_task(told.get())
                elif task in done:
                    break
                elif leaving in done:
                    return
                else:
                    if not streams:
                        await start_stream(send)
                        streams = True
                    await send_part(send, PING, more=True)
        finally:
            if telling is not None:
                telling.cancel()
        answer, status = _outcome(call.message.id, task)
        # What was told before the answer stands before it, also what came in one go.
        rest = [telling.result()] if telling is not None and telling.done() and not telling.cancelled() else []
        rest += [told.get_nowait() for _ in range(told.qsize())]
        for news in rest:
            if not streams:
                await start_stream(send)
                streams = True
            await send_part(send, frame(news), more=True)
        if streams:
            await send_part(send, frame(answer), more=False)
        else:
            await send_whole(send, status, msgspec.json.encode(answer), [JSON_MEDIA, *call.headers])


def _outcome(request_id: RequestId | None, task: "asyncio.Task[dict[str, object]]") -> tuple[dict[str, object], int]:
    try:
        return result_json(request_id, task.result()), 200
    except RpcError as error:
        return error_json(request_id, error), error.status
    except asyncio.CancelledError:
        return error_json(request_id, RpcError(INTERNAL_ERROR, "The request was cancelled.")), 200
