"""Transport of the MCP SDK's client to a server on stdin and stdout. Above: the connection's owner
task. Below: `stdio_process`, `pipes`, `stdio_pipes`, `stdio_framing`."""

import asyncio
from collections import deque
from types import TracebackType
from typing import Any

from mcp.shared.message import SessionMessage

from infrastructure.mcp.pace import DROPPED, NOISE, Pace
from infrastructure.mcp.transports.pipes import WritePipe
from infrastructure.mcp.transports.started_server import StartedServer, StartServer
from infrastructure.mcp.transports.stderr_log import StderrLog
from infrastructure.mcp.transports.stdio_framing import (
    BoundedLines,
    OversizedLine,
    UnreadableLineError,
    read_counted,
    read_oversized,
)
from infrastructure.mcp.transports.stdio_pipes import MessageReader, MessageWriter
from infrastructure.mcp.transports.stdio_process import MARGIN_S

DEFAULT_MAX_LINE_BYTES = 4 * 1024 * 1024
DEFAULT_CLOSE_GRACE_S = 1.0
DEFAULT_KILL_GRACE_S = 2.0
DEFAULT_WRITE_TIMEOUT_S = 60.0

_UNREADABLE_LOGGED = 5
_UNREADABLE_SURFACED = 20
_LINES_AT_ONCE = 32
"""Limit of lines read before yielding to the event loop; replies to calls do not count."""


class StdioTransport:
    """One life of a started server: ``async with Client(transport)`` starts it, and leaves nothing
    behind.

    - A message over `max_line_bytes` is dropped on arrival, and fails the call it replies to
      (REPLY_TOO_LARGE).
    - Invalid lines are counted; the first ones are logged in `log` and passed to the session as
      exceptions.
    - Reading pauses while the `Pace` is exceeded or the reader is full. A server that has not read
      a message after `write_timeout_s` is stopped.
    - Leaving is bounded and completes under cancellation: stdin closes, after `close_grace_s`
      SIGTERM is sent (of a process to every descendant), after `kill_grace_s` SIGKILL.
    - There are no tasks.
    """

    def __init__(
        self,
        start: StartServer,
        *,
        log: StderrLog,
        max_line_bytes: int = DEFAULT_MAX_LINE_BYTES,
        close_grace_s: float = DEFAULT_CLOSE_GRACE_S,
        kill_grace_s: float = DEFAULT_KILL_GRACE_S,
        write_timeout_s: float = DEFAULT_WRITE_TIMEOUT_S,
        pace: Pace | None = None,
    ) -> None:
        self._start = start
        self._pace = pace
        self._log = log
        self._max_line_bytes = max_line_bytes
        self._close_grace_s = close_grace_s
        self._kill_grace_s = kill_grace_s
        self._write_timeout_s = write_timeout_s
        self._lines = BoundedLines(max_line_bytes)
        self._unread: deque[bytes | OversizedLine] = deque()
        self._server: StartedServer | None = None
        self._later: asyncio.Handle | None = None
        self._last_wait: asyncio.TimerHandle | None = None
        self.unreadable_lines = 0
        """Number of lines on stdout that were not messages."""
        self.does_not_read = False
        """Whether it was stopped for not reading its input."""

    @property
    def exit_status(self) -> int | None:
        """The server's exit code, 128 + N for signal N, 127 for an unknown command, 126 for one
        that cannot run; None before the end. Set when the read stream ends, unless the server
        closed its stdout and continues."""
        return None if self._server is None else self._server.exit_status

    def describe_exit(self) -> str | None:
        """How the server ended (`exited with code 3`); None before the end."""
        return None if self._server is None else self._server.describe_exit()

    async def __aenter__(self) -> tuple[MessageReader, MessageWriter]:
        """Start the server. Raises what starting raises, RuntimeError on reuse."""
        if self._server is not None:
            raise RuntimeError("a transport is one life of a server")
        self._server = await self._start(kill_grace_s=self._kill_grace_s, on_exit=self._on_exit)
        self._stdin = WritePipe(self._server.stdin, stall_s=self._write_timeout_s, on_stall=self._on_stall)
        self._stdout, self._stderr = self._server.outputs(self._on_stdout, self._log.append, self._on_last_output)
        self._reader = MessageReader(self._on_reader_empty, max_bytes=self._max_line_bytes, pace=self._pace)
        return self._reader, MessageWriter(self._stdin)

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._server is not None
        # Remaining output is read and dropped: with a full stdout the server could not end.
        self._reader.close()
        self._stdin.close()
        try:
            await self._server.stop(close_grace_s=self._close_grace_s, kill_grace_s=self._kill_grace_s)
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
            if discarded := self._lines.take_discarded():
                self._reader.pace.spend(0, discarded // DROPPED)
            self._read_lines()

    def _read_lines(self) -> None:
        """Process the lines that reader and pace allow; reading from the server pauses while lines
        are left."""
        self._later = None
        count = 0
        while self._unread and count < _LINES_AT_ONCE and not self._reader.is_full and not self._reader.pace.delay_s:
            count += not self._read_line(self._unread.popleft())
        if not self._reader.closed and self._reader.pace.take_flood():
            self._on_flood()
        if not self._unread and (self._stdout.closed or self._reader.closed or not self._reader.pace.delay_s):
            self._stdout.resume()
            if self._stdout.closed:
                self._on_last_output()
            return
        self._stdout.pause()
        if not self._unread or not self._reader.is_full:  # a full reader reports when it is empty
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

        messages, values = read_counted(line, settled, self._reader.is_list)
        if is_result:
            self._reader.pace.charge_reply(len(line), values)
        elif not messages:
            self._reader.pace.spend(NOISE)
        for message in messages:
            self._hand_over(message, len(line) // len(messages), values)
        return is_result

    def _hand_over(self, item: SessionMessage | Exception, size: int = 0, values: int = 0) -> None:
        if isinstance(item, UnreadableLineError):
            self.unreadable_lines += 1
            if self.unreadable_lines > _UNREADABLE_SURFACED:
                self._reader.pace.spend(NOISE, size)
                return
        if isinstance(item, Exception) and self.unreadable_lines <= _UNREADABLE_LOGGED:
            self._log.note(str(item))
        self._reader.put(item, size, values)

    def _on_reader_empty(self) -> None:
        if self._reader.closed:
            self._unread.clear()
            self._stdout.resume()
        elif self._unread and self._later is None:
            self._later = asyncio.get_running_loop().call_soon(self._read_lines)

    def _on_flood(self) -> None:
        self._log.note("the server sends unasked messages without end and is stopped")
        self._unread.clear()
        self._reader.end()

    def _on_stall(self) -> None:
        self.does_not_read = True
        self._log.note(f"the server has not read its input for {self._write_timeout_s:g} s and is stopped")
        self._reader.end()

    def _on_exit(self) -> None:
        # The last output is in the pipe, and belongs in the log before the end is reported.
        self._stderr.drain()
        self._log.note(f"the server {self.describe_exit()}")
        self._on_last_output()

    def _on_last_output(self) -> None:
        """After the end of stdout or of the process; the other usually follows within a moment."""
        if self._stdout.closed and self.exit_status is not None and not self._unread:
            self._reader.end()
        elif self._last_wait is None:
            loop = asyncio.get_running_loop()
            self._last_wait = loop.call_later(self._kill_grace_s + MARGIN_S, self._reader.end)
