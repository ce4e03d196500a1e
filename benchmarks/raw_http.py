"""HTTP/1.1 as bare as it gets: what the counterparts and the floor of the measurements speak."""

import asyncio
from collections.abc import Callable

Answer = Callable[[bytes, bytes], bytes]
"""From (head, body) of a request to the bytes of the whole response."""


def response(body: bytes, content_type: str = "application/json", status: str = "200 OK") -> bytes:
    """A complete response."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class RawServer(asyncio.Protocol):
    """One connection: requests in, answers out, kept alive."""

    def __init__(self, answer: Answer, delay_s: float) -> None:
        self._answer = answer
        self._delay_s = delay_s
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        self._buffer += data
        while True:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = self._buffer[:end]
            length = content_length(head)
            if len(self._buffer) < end + 4 + length:
                return
            body = self._buffer[end + 4 : end + 4 + length]
            self._buffer = self._buffer[end + 4 + length :]
            answer = self._answer(head, body)
            if self._delay_s:
                asyncio.get_running_loop().call_later(self._delay_s, self._transport.write, answer)
            else:
                self._transport.write(answer)


def content_length(head: bytes) -> int:
    """The body's length by its header; 0 without one."""
    at = head.lower().find(b"content-length:")
    if at < 0:
        return 0
    return int(head[at + 15 : (head.find(b"\r\n", at) if head.find(b"\r\n", at) > 0 else len(head))])


async def serve(answer: Answer, port: int = 0, *, delay_s: float = 0.0) -> asyncio.Server:
    """Listen on this machine; answer after a delay."""
    return await asyncio.get_running_loop().create_server(lambda: RawServer(answer, delay_s), "127.0.0.1", port)


class RawClient:
    """One kept connection, one request at a time; understands answers with a Content-Length."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def post(self, path: str, body: bytes, headers: str = "") -> tuple[int, bytes]:
        """Status and body."""
        if self._reader is None or self._writer is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._writer.write(
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nContent-Type: application/json\r\n"
            f"{headers}Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = content_length(head)
        answer = await self._reader.readexactly(length) if length else b""
        return int(head[9:12]), answer

    async def close(self) -> None:
        """Give the connection back."""
        if self._writer is not None:
            self._writer.close()
            await self._writer.wait_closed()
