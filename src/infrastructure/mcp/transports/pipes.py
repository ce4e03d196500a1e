"""Pipes of child processes on the event loop. Callbacks on file descriptors instead of tasks: nothing to cancel, nothing to
leak. Used for the servers' stdio and for installers; asyncio only."""

import asyncio
import os
from collections.abc import Callable
from typing import IO

import anyio

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
    """Writes whole messages to a pipe, at most one of them waiting in memory. Owns the file.

    A message that is not written after `stall_s` ends the pipe: `on_stall` is called.
    """

    def __init__(self, file: IO[bytes], *, stall_s: float, on_stall: Callable[[], None]) -> None:
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
            self._stall = self._loop.call_later(self._stall_s, self._stalled)
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
