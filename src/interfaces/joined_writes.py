"""HTTP answers in one piece: uvicorn writes head and body one after the other, which are two system calls and two packets."""

import asyncio
from typing import cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_AT_ONCE_BYTES = 64 * 1024


class JoinedWrites(asyncio.Transport):
    """A transport whose writes of one step of the event loop leave together; what is large leaves at once."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes] = []
        self._size = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Sent at the end of this step."""
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(bytes(data))
        self._size += len(data)
        if self._size > _AT_ONCE_BYTES:
            self._flush()

    def close(self) -> None:
        """After what was written."""
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """At once."""
        self._parts.clear()
        self._transport.abort()

    def is_closing(self) -> bool:
        """Whether nothing is to be written any more."""
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: object = None) -> object:
        """Of the connection."""
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        """Until `resume_reading`."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Goes on."""
        self._transport.resume_reading()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Who is told from now on."""
        self._transport.set_protocol(protocol)

    def get_write_buffer_size(self) -> int:
        """Bytes that have not left."""
        return self._size + self._transport.get_write_buffer_size()

    def _flush(self) -> None:
        parts, self._parts, self._size = self._parts, [], 0
        if parts and not self._transport.is_closing():
            self._transport.write(parts[0] if len(parts) == 1 else b"".join(parts))


class JoiningHttpProtocol(HttpToolsProtocol):
    """uvicorn's protocol over such a transport."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        # uvloop's transports are none by inheritance.
        super().connection_made(JoinedWrites(cast(asyncio.Transport, transport), self.loop))
