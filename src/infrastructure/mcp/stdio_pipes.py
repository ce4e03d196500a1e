"""The pipes of a stdio server on the event loop, and the message streams the MCP SDK reads and writes over them.

Callbacks on file descriptors instead of tasks: nothing to cancel, nothing to leak. Used by ``stdio.py``; asyncio only.
"""

import asyncio
import os
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import IO, Self

import anyio
from mcp.shared.message import SessionMessage

_CHUNK_BYTES = 64 * 1024  # what a Linux pipe holds
_LARGEST_PIPE_BYTES = 1024 * 1024  # and may be made to hold by an unprivileged process


class ReadPipe:
    """Hands on what arrives on a pipe. Owns the file."""

    def __init__(self, file: IO[bytes], on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._file = file
        self._on_data = on_data
        self._on_end = on_end
        self._reading = False
        os.set_blocking(file.fileno(), False)
        self.resume()

    @property
    def closed(self) -> bool:
        """Whether the pipe came to its end, or was given up."""
        return self._file.closed

    def pause(self) -> None:
        """Stops reading: the server's writes wait once the pipe is full."""
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._file.fileno())

    def resume(self) -> None:
        """Reads again."""
        if not self._reading and not self._file.closed:
            self._reading = True
            self._loop.add_reader(self._file.fileno(), self._read)

    def drain(self) -> None:
        """Reads what is there now, up to the largest pipe. With its writers gone, that is all there will be."""
        for _ in range(_LARGEST_PIPE_BYTES // _CHUNK_BYTES):
            if self._file.closed or not self._read():
                return

    def close(self) -> None:
        """Gives the pipe up; `on_end` is not called."""
        self.pause()
        self._file.close()

    def _read(self) -> bool:
        try:
            data = os.read(self._file.fileno(), _CHUNK_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if data:
            self._on_data(data)
            return True
        self.close()
        self._on_end()
        return False


class WritePipe:
    """Writes whole messages to a pipe, at most one of them waiting in memory. Owns the file."""

    def __init__(self, file: IO[bytes]) -> None:
        self._loop = asyncio.get_running_loop()
        self._file = file
        self._unsent = memoryview(b"")
        self._room = asyncio.Event()
        self._closing = False
        os.set_blocking(file.fileno(), False)
        self._room.set()

    async def write(self, data: bytes) -> None:
        """Writes all of `data` or, if cancelled while waiting for room, none of it.

        Raises anyio.ClosedResourceError after `close`, anyio.BrokenResourceError if nobody reads the pipe any more.
        """
        while not self._room.is_set():
            await self._room.wait()
        if self._closing:
            raise anyio.ClosedResourceError
        if self._file.closed:
            raise anyio.BrokenResourceError
        self._unsent = memoryview(data)
        self._flush()
        if self._file.closed:
            raise anyio.BrokenResourceError
        if self._unsent:
            self._room.clear()
            self._loop.add_writer(self._file.fileno(), self._flush)

    def close(self) -> None:
        """Closes the pipe once what was accepted is written."""
        self._closing = True
        if not self._unsent:
            self.abort()

    def abort(self) -> None:
        """Closes the pipe now."""
        if not self._file.closed:
            self._loop.remove_writer(self._file.fileno())
            self._file.close()
        self._unsent = memoryview(b"")
        self._room.set()

    def _flush(self) -> None:
        try:
            self._unsent = self._unsent[os.write(self._file.fileno(), self._unsent) :]
        except BlockingIOError:
            return
        except OSError:
            self.abort()
            return
        if self._unsent:
            return
        if self._closing:
            self.abort()
        elif not self._room.is_set():
            self._loop.remove_writer(self._file.fileno())
            self._room.set()


class MessageReader:
    """The SDK's read stream: what the server said, for one reader. Ends when the connection does.

    `on_empty` is called when the reader has taken everything, and when it leaves.
    """

    def __init__(self, on_empty: Callable[[], None]) -> None:
        self._on_empty = on_empty
        self._items: deque[SessionMessage | Exception] = deque()
        self._waiting: asyncio.Future[None] | None = None
        self._ended = False
        self.closed = False
        """Whether the reader left; what arrives then is dropped."""
        self.tap: Callable[[SessionMessage | Exception], bool] | None = None
        """Sees each item first, and keeps those for which it returns True."""

    @property
    def has_items(self) -> bool:
        """Whether something is waiting to be taken."""
        return bool(self._items)

    def put(self, item: SessionMessage | Exception) -> None:
        """Hands an item to the reader."""
        if not self.closed and not (self.tap is not None and self.tap(item)):
            self._items.append(item)
            self._wake()

    def end(self) -> None:
        """No more items: the reader gets what is there, then the end of the stream."""
        self._ended = True
        self._wake()

    async def receive(self) -> SessionMessage | Exception:
        """The next item. Raises anyio.EndOfStream, anyio.ClosedResourceError, anyio.BusyResourceError."""
        while not self._items:
            if self.closed:
                raise anyio.ClosedResourceError
            if self._ended:
                raise anyio.EndOfStream
            if self._waiting is not None:
                raise anyio.BusyResourceError("receiving from")
            self._on_empty()
            self._waiting = asyncio.get_running_loop().create_future()
            try:
                await self._waiting
            finally:
                self._waiting = None
        return self._items.popleft()

    async def aclose(self) -> None:
        """The reader leaves."""
        self.close()

    def close(self) -> None:
        """The reader leaves."""
        self.closed = True
        self._items.clear()
        self._on_empty()
        self._wake()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class MessageWriter:
    """The SDK's write stream: one message, one line."""

    def __init__(self, pipe: WritePipe) -> None:
        self._pipe = pipe

    async def send(self, item: SessionMessage, /) -> None:
        """Writes a message; raises as `WritePipe.write` does."""
        await self._pipe.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")

    async def aclose(self) -> None:
        """Closes the server's stdin once what was sent is written."""
        self._pipe.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._pipe.close()
