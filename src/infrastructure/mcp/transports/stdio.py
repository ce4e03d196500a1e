"""Transport for the MCP SDK's client to a server on stdin and stdout.

Above it: the connection's owner task. Below it: ``stdio_process``, ``pipes``, ``stdio_pipes``, ``stdio_framing``.
"""

import asyncio
import signal
from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from mcp.shared.message import SessionMessage

from infrastructure.mcp.pace import NOISE
from infrastructure.mcp.transports.pipes import ReadPipe, WritePipe
from infrastructure.mcp.transports.stdio_framing import (
    BoundedLines,
    OversizedLine,
    UnreadableLineError,
    read_line,
    read_oversized,
)
from infrastructure.mcp.transports.stdio_pipes import MessageReader, MessageWriter
from infrastructure.mcp.transports.stdio_process import MARGIN_S, ServerProcess, StdioCommand

DEFAULT_MAX_LINE_BYTES = 4 * 1024 * 1024
DEFAULT_STDERR_BYTES = 64 * 1024
DEFAULT_CLOSE_GRACE_S = 1.0
DEFAULT_KILL_GRACE_S = 2.0
DEFAULT_WRITE_TIMEOUT_S = 60.0

_UNREADABLE_LOGGED = 5
_UNREADABLE_SURFACED = 20
_SIGNAL_CODES = 128
_LINES_AT_ONCE = 32
"""That are read before the event loop does something else; answers to calls do not count."""


class StderrLog:
    """The last bytes a server wrote to stderr, and our own lines about it. Outlives the connection, to be read later."""

    def __init__(self, max_bytes: int = DEFAULT_STDERR_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = bytearray()

    def append(self, data: bytes) -> None:
        """Adds to the end; the oldest bytes give way."""
        self._bytes += data[-self._max_bytes :]
        if len(self._bytes) > 2 * self._max_bytes:
            del self._bytes[: -self._max_bytes]

    def note(self, line: str) -> None:
        """Adds a line of ours, marked as such."""
        start = b"" if not self._bytes or self._bytes.endswith(b"\n") else b"\n"
        self.append(start + f"[dragoman] {line}\n".encode(errors="replace"))

    def text(self) -> str:
        """What is kept, invalid UTF-8 replaced."""
        return self._bytes[-self._max_bytes :].decode(errors="replace")

    def tail(self, lines: int) -> str:
        """The last lines of it."""
        return "\n".join(self.text().splitlines()[-lines:])


class StdioTransport:
    """One life of a server process: ``async with Client(transport)`` starts it, and leaves nothing behind.

    `environment` is Dragoman's own, of which the server gets a few names. A message over `max_line_bytes` is dropped
    while it arrives and fails the call it answers (REPLY_TOO_LARGE); lines that are no messages are counted, and the
    first ones put into `log` and handed to the session as exceptions. A server that says more than its `Pace` allows, or than
    the reader takes, is not read from meanwhile; one that has not read a message after `write_timeout_s` is ended.

    Entering waits for nothing, so no cancellation can come in the middle of a spawn. Leaving is bounded and completes
    under cancellation: stdin is closed, `close_grace_s` is left for a polite exit, then the launcher sends SIGTERM to
    every descendant and, `kill_grace_s` later, SIGKILL. There are no tasks.
    """

    def __init__(
        self,
        command: StdioCommand,
        *,
        environment: Mapping[str, str],
        log: StderrLog,
        max_line_bytes: int = DEFAULT_MAX_LINE_BYTES,
        close_grace_s: float = DEFAULT_CLOSE_GRACE_S,
        kill_grace_s: float = DEFAULT_KILL_GRACE_S,
        write_timeout_s: float = DEFAULT_WRITE_TIMEOUT_S,
    ) -> None:
        self._command = command
        self._environment = environment
        self._log = log
        self._max_line_bytes = max_line_bytes
        self._close_grace_s = close_grace_s
        self._kill_grace_s = kill_grace_s
        self._write_timeout_s = write_timeout_s
        self._lines = BoundedLines(max_line_bytes)
        self._unread: deque[bytes | OversizedLine] = deque()
        self._process: ServerProcess | None = None
        self._later: asyncio.Handle | None = None
        self._last_wait: asyncio.TimerHandle | None = None
        self.unreadable_lines = 0
        """How many lines on stdout were no messages."""
        self.does_not_read = False
        """Whether it was ended for not reading what it was sent."""

    @property
    def exit_status(self) -> int | None:
        """The server's exit code, 128 + N if signal N ended it, 127 if there is no such command, 126 if it cannot be
        run; None before the end. Set when the read stream ends, unless the server closed its stdout and stays."""
        return None if self._process is None else self._process.exit_status

    def describe_exit(self) -> str | None:
        """How the server ended, in words (`exited with code 3`), or None before the end."""
        status = self.exit_status
        if status is None:
            return None
        if status - _SIGNAL_CODES in signal.valid_signals():
            return f"was ended by {signal.Signals(status - _SIGNAL_CODES).name}"
        return f"exited with code {status}"

    async def __aenter__(self) -> tuple[MessageReader, MessageWriter]:
        """Starts the server. Raises OSError (no such directory, no descriptor left), RuntimeError when used again.

        A command that does not exist is seen as a server that exits at once with status 127.
        """
        if self._process is not None:
            raise RuntimeError("a transport is one life of a server")
        self._process = ServerProcess(
            self._command, environment=self._environment, kill_grace_s=self._kill_grace_s, on_exit=self._on_exit
        )
        stdin, stdout, stderr = self._process.pipes
        self._stdin = WritePipe(stdin, stall_s=self._write_timeout_s, on_stall=self._on_stall)
        self._stdout = ReadPipe(stdout, self._on_stdout, self._on_last_words)
        self._stderr = ReadPipe(stderr, self._log.append, _nothing)
        self._reader = MessageReader(self._on_reader_empty, max_bytes=self._max_line_bytes)
        return self._reader, MessageWriter(self._stdin)

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Ends the server and everything below it."""
        assert self._process is not None
        # What the server still writes is read and dropped: with a full stdout it could not come to its end.
        self._reader.close()
        self._stdin.close()
        try:
            await self._process.stop(close_grace_s=self._close_grace_s, kill_grace_s=self._kill_grace_s)
        finally:
            for handle in (self._last_wait, self._later):
                if handle is not None:
                    handle.cancel()
            self._stdin.abort()
            self._stdout.close()
            self._stderr.close()

    def _on_stdout(self, data: bytes) -> None:
        if not self._reader.closed:
            self._unread += self._lines.feed(data)
            self._read_lines()

    def _read_lines(self) -> None:
        """Reads what has come, as far as reader and pace allow; while something is left, the server is not read from."""
        self._later = None
        count = 0
        while self._unread and count < _LINES_AT_ONCE and not self._reader.is_full and not self._reader.pace.delay_s:
            count += not self._read_line(self._unread.popleft())
        if not self._unread:
            self._stdout.resume()
            if self._stdout.closed:
                self._on_last_words()
            return
        self._stdout.pause()
        if not self._reader.is_full:  # else it says when it is empty
            self._later = asyncio.get_running_loop().call_later(self._reader.pace.delay_s, self._read_lines)

    def _read_line(self, line: bytes | OversizedLine) -> bool:
        """Whether it was the result of a call."""
        if isinstance(line, OversizedLine):
            self._hand_over(read_oversized(line, self._max_line_bytes))
            return False
        is_result = False

        def settled(call_id: int | str, result: dict[str, Any]) -> bool:
            nonlocal is_result
            is_result = self._reader.settled(call_id, result)
            return is_result

        messages = read_line(line, settled)
        if not messages and not is_result:
            self._reader.pace.spend(NOISE)
        for message in messages:
            self._hand_over(message, len(line) // len(messages))
        return is_result

    def _hand_over(self, item: SessionMessage | Exception, size: int = 0) -> None:
        if isinstance(item, UnreadableLineError):
            self.unreadable_lines += 1
            if self.unreadable_lines > _UNREADABLE_SURFACED:
                self._reader.pace.spend(NOISE, size)
                return
        if isinstance(item, Exception) and self.unreadable_lines <= _UNREADABLE_LOGGED:
            self._log.note(str(item))
        self._reader.put(item, size)

    def _on_reader_empty(self) -> None:
        if self._reader.closed:
            self._unread.clear()
            self._stdout.resume()
        elif self._unread and self._later is None:
            self._later = asyncio.get_running_loop().call_soon(self._read_lines)

    def _on_stall(self) -> None:
        self.does_not_read = True
        self._log.note(f"the server has not read what it was sent for {self._write_timeout_s:g} s, so it is ended")
        self._reader.end()

    def _on_exit(self) -> None:
        # Its last words are already in the pipe, and belong in the log before anyone is told of its end.
        self._stderr.drain()
        self._log.note(f"the server {self.describe_exit()}")
        self._on_last_words()

    def _on_last_words(self) -> None:
        """After the end of stdout or of the process: usually the other follows at once, and is waited for a little."""
        if self._stdout.closed and self.exit_status is not None and not self._unread:
            self._reader.end()
        elif self._last_wait is None:
            loop = asyncio.get_running_loop()
            self._last_wait = loop.call_later(self._kill_grace_s + MARGIN_S, self._reader.end)


def _nothing() -> None:
    """The end of stderr means nothing."""
