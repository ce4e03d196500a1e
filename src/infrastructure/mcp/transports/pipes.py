"""Pipes of child processes on the event loop (asyncio only), by callbacks instead of tasks: nothing
to cancel, nothing to leak. Used for servers and installers."""

import asyncio
import os
from collections.abc import Callable
from typing import IO, Protocol

import anyio

_CHUNK_BYTES = 64 * 1024  # the capacity of a Linux pipe
_LARGEST_PIPE_BYTES = 1024 * 1024  # its maximum for an unprivileged process


class Descriptor(Protocol):
    """An open file, or the writing half of a socket."""

    @property
    def closed(self) -> bool: ...
    def fileno(self) -> int: ...
    def close(self) -> None: ...


class ReadPipe:
    """Passes on the data that arrives on a pipe. Owns the file."""

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
        """Whether the pipe has ended or was closed."""
        return self._file.closed

    def pause(self) -> None:
        """Stop reading: the server's writes block once the pipe is full."""
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._file.fileno())

    def resume(self) -> None:
        if not self._reading and not self._file.closed:
            self._reading = True
            self._loop.add_reader(self._file.fileno(), self._read)

    def drain(self) -> None:
        """Read the available data, up to the largest pipe. Without writers, that is all."""
        for _ in range(_LARGEST_PIPE_BYTES // _CHUNK_BYTES):
            if self._file.closed or not self._read():
                return

    def close(self) -> None:
        """Close the pipe without calling `on_end`."""
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
    """Writes whole messages to a pipe, at most one waiting in memory. Owns the file. `on_stall` is
    called for a message not written after `stall_s`, and the pipe closes."""

    def __init__(self, file: Descriptor, *, stall_s: float, on_stall: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._file = file
        self._stall_s = stall_s
        self._on_stall = on_stall
        self._stall: asyncio.TimerHandle | None = None
        self._unsent = memoryview(b"")
        self._room = asyncio.Event()
        self._closing = False
        os.set_blocking(file.fileno(), False)
        self._room.set()

    async def write(self, data: bytes) -> None:
        """Write all of `data`, or none if cancelled while waiting. Raises anyio.ClosedResourceError
        after `close`, anyio.BrokenResourceError for a pipe without reader."""
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
            self._stall = self._loop.call_later(self._stall_s, self._stalled)
            self._loop.add_writer(self._file.fileno(), self._flush)

    def close(self) -> None:
        """Close the pipe once accepted data is written."""
        self._closing = True
        if not self._unsent:
            self.abort()

    def abort(self) -> None:
        if not self._file.closed:
            self._loop.remove_writer(self._file.fileno())
            self._file.close()
        self._unsent = memoryview(b"")
        self._make_room()

    def _stalled(self) -> None:
        self.abort()
        self._on_stall()

    def _make_room(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
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
            self._make_room()
