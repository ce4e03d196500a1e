"""Load for measurements: one request, encoded once, sent again and again over kept connections by a
client that costs little."""

import asyncio
import json
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import uvloop

from benchmarks.raw_http import content_length


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What `calls` requests took: wall seconds for all, and for each alone."""

    calls: int
    wall_s: float
    latencies_s: tuple[float, ...]

    @classmethod
    def summed(cls, rounds: Sequence["Answered"]) -> "Answered":
        """The rounds as one measurement."""
        return cls(
            calls=sum(part.calls for part in rounds),
            wall_s=sum(part.wall_s for part in rounds),
            latencies_s=tuple(latency for part in rounds for latency in part.latencies_s),
        )

    @property
    def per_s(self) -> float:
        """Throughput."""
        return self.calls / self.wall_s

    def percentile_ms(self, percent: int) -> float:
        """A latency."""
        return statistics.quantiles(self.latencies_s, n=100)[percent - 1] * 1000


def post_request(port: int, path: str, body: bytes, headers: dict[str, str] | None = None) -> bytes:
    """A complete request."""
    lines = [f"POST {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Content-Type: application/json"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body


def tool_call(tool: str, version: str) -> tuple[bytes, dict[str, str]]:
    """Body and headers of a call, as a client of that protocol version sends them."""
    params: dict[str, object] = {"name": tool, "arguments": {"text": "hello"}}
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": version}
    if version >= "2026-07-28":
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        headers |= {"Mcp-Method": "tools/call", "Mcp-Name": tool}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return json.dumps(request, separators=(",", ":")).encode(), headers


class _Caller(asyncio.Protocol):
    """One connection: sends the next request when the answer to the last is there. Fails the load
    on any other answer."""

    def __init__(self, request: bytes, left: Iterator[int], latencies: list[float]) -> None:
        self._request = request
        self._left = left
        self._latencies = latencies
        self._buffer = b""
        self._began = 0.0
        self._transport: asyncio.Transport | None = None
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are none by inheritance
        self._next()

    def data_received(self, data: bytes) -> None:
        self._buffer = self._buffer + data if self._buffer else data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0 or len(self._buffer) < end + 4 + content_length(self._buffer[:end]):
            return
        answer, self._buffer = self._buffer, b""
        self._latencies.append(time.perf_counter() - self._began)
        if not answer.startswith(b"HTTP/1.1 200") or b'"text":"hello"' not in answer.replace(b'": "', b'":"'):
            self._over(RuntimeError(f"a call was not answered: {answer[:600]!r}"))
            return
        self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        self._over(RuntimeError("a connection was lost"))

    def _next(self) -> None:
        assert self._transport is not None
        if next(self._left, None) is None:
            self._over(None)
            self._transport.close()
            return
        self._began = time.perf_counter()
        self._transport.write(self._request)

    def _over(self, failure: Exception | None) -> None:
        if self.done.done():
            return
        if failure is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(failure)


def answered(port: int, request: bytes, *, calls: int, concurrency: int) -> Answered:
    """Send `calls` requests from `concurrency` connections. Raises RuntimeError if one is not
    answered with its text."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_answered(port, request, calls, concurrency))


async def _answered(port: int, request: bytes, calls: int, concurrency: int) -> Answered:
    left, latencies = iter(range(calls)), list[float]()
    loop = asyncio.get_running_loop()
    began = time.perf_counter()
    callers = [
        (await loop.create_connection(lambda: _Caller(request, left, latencies), "127.0.0.1", port))[1]
        for _ in range(concurrency)
    ]
    await asyncio.gather(*(caller.done for caller in callers))
    return Answered(calls=calls, wall_s=time.perf_counter() - began, latencies_s=tuple(latencies))
