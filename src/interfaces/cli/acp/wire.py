"""JSON-RPC 2.0 over two byte streams, a message on each line, with requests in both directions
(ACP, protocol/transports)."""

import asyncio
import json
import logging
import sys
from collections.abc import Awaitable, Callable
from typing import cast

from domain.json_value import JsonObject, JsonValue
from interfaces.cli.failures import CommandFailure

MAX_LINE_BYTES = 64 * 1024 * 1024
MAX_REQUESTS = 64
_LAST_ANSWERS_S = 1.0
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, FAILED = -32700, -32600, -32601, -32602, -32603
Handler = Callable[[str, JsonObject], Awaitable[JsonObject]]
logger = logging.getLogger(__name__)


class RpcFailure(Exception):
    """A failure that the other side gets as an error, or got from it."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Peer:
    """The other side of the connection. A request is handled in a task, a notification at once, in
    order. A fault of a handler is logged on stderr and ends neither: the request gets an error as
    its answer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._sending = asyncio.Lock()
        self._waiting: dict[int, asyncio.Future[JsonObject]] = {}
        self._last_id = 0
        self._running: set[asyncio.Task[None]] = set()

    async def serve(self, handler: Handler) -> None:
        """Handle messages until the other side closes the connection; then what does not end at
        once is cancelled."""
        try:
            while line := await self._line():
                await self._received(line, handler)
            if self._running:
                await asyncio.wait(self._running, timeout=_LAST_ANSWERS_S)
        finally:
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)

    async def request(self, method: str, params: JsonObject) -> JsonObject:
        """The result of a request to the other side. Raises RpcFailure."""
        self._last_id += 1
        request_id = self._last_id
        answer: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = answer
        try:
            await self._send({"id": request_id, "method": method, "params": params})
            return await answer
        finally:
            del self._waiting[request_id]

    async def notify(self, method: str, params: JsonObject) -> None:
        await self._send({"method": method, "params": params})

    async def _line(self) -> bytes:
        try:
            return await self._reader.readline()
        except ValueError as exc:
            raise CommandFailure(f"The client sent a message of more than {MAX_LINE_BYTES} bytes.") from exc

    async def _received(self, line: bytes, handler: Handler) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            await self._refuse(None, RpcFailure(PARSE_ERROR, "The message is not JSON."))
            return
        if not isinstance(message, dict):
            await self._refuse(None, RpcFailure(INVALID_REQUEST, "The message is not an object."))
            return
        request_id, method = message.get("id"), message.get("method")
        params = message.get("params")
        if not isinstance(method, str):
            self._answered(request_id, message)
        elif params is not None and not isinstance(params, dict):
            await self._refuse(request_id, RpcFailure(INVALID_PARAMS, "params must be an object."))
        elif request_id is None:
            await self._noted(method, params or {}, handler)
        elif len(self._running) >= MAX_REQUESTS:
            await self._refuse(request_id, RpcFailure(FAILED, "Too many requests are under way."))
        else:
            task = asyncio.create_task(self._handled(request_id, method, params or {}, handler))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
            await asyncio.sleep(0)  # it has begun when the next message, perhaps its cancellation, is handled

    async def _handled(self, request_id: JsonValue, method: str, params: JsonObject, handler: Handler) -> None:
        try:
            result = await handler(method, params)
        except RpcFailure as failure:
            await self._refuse(request_id, failure)
        except CommandFailure as failure:
            await self._refuse(request_id, RpcFailure(FAILED, failure.message))
        except Exception:
            logger.exception("the request %s failed", method)
            await self._refuse(request_id, RpcFailure(FAILED, "The request failed; stderr says why."))
        else:
            await self._send({"id": request_id, "result": result})

    async def _noted(self, method: str, params: JsonObject, handler: Handler) -> None:
        try:
            await handler(method, params)
        except (RpcFailure, CommandFailure):
            return  # a notification has no answer
        except Exception:
            logger.exception("the notification %s failed", method)

    def _answered(self, request_id: JsonValue, message: JsonObject) -> None:
        waiting = self._waiting.get(request_id) if isinstance(request_id, int) else None
        if waiting is None or waiting.done():
            return
        result, error = message.get("result"), message.get("error")
        if isinstance(error, dict):
            waiting.set_exception(RpcFailure(FAILED, str(error.get("message", ""))))
        else:
            waiting.set_result(result if isinstance(result, dict) else {})

    async def _refuse(self, request_id: JsonValue, failure: RpcFailure) -> None:
        await self._send({"id": request_id, "error": {"code": failure.code, "message": failure.message}})

    async def _send(self, message: JsonObject) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        async with self._sending:
            self._writer.write(line)
            await self._writer.drain()


async def over_stdio() -> Peer:
    """The program that started this one. Raises CommandFailure if stdin and stdout are files."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=MAX_LINE_BYTES)
    try:
        reading, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    except ValueError as exc:
        raise _is_a_file("Stdin") from exc
    try:
        transport, protocol = await loop.connect_write_pipe(lambda: asyncio.streams.FlowControlMixin(loop), sys.stdout)
    except ValueError as exc:
        reading.close()
        raise _is_a_file("Stdout") from exc
    writer = asyncio.StreamWriter(transport, cast(asyncio.BaseProtocol, protocol), None, loop)
    return Peer(reader, writer)


def _is_a_file(end: str) -> CommandFailure:
    return CommandFailure(f"{end} is a file. An editor starts this command, and speaks with it over pipes.")
