"""Runs an installer (npm, pip, …) to its end, under the launcher, which leaves no process
behind."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from infrastructure.mcp.text import capped, clean
from infrastructure.mcp.transports.pipes import ReadPipe
from infrastructure.mcp.transports.stdio_process import INHERITED_NAMES, ServerProcess, StdioCommand

_KILL_GRACE_S = 2.0
_MAX_LINE = 2_000
_LIMITS = {"core": 0, "cpu": 1_800, "fsize": 4 * 1024**3, "memory": 6 * 1024**3, "processes": 512}


async def run_to_end(
    command: str,
    args: tuple[str, ...],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    on_line: Callable[[str], None],
    confinement: tuple[str, ...] = (),
) -> int:
    """Returns the exit status (128 + N for signal N, 127 for an unknown command). `on_line`
    receives each line of both outputs, cleaned and capped. Cancelling ends the installer and its
    descendants first. Raises OSError."""
    ended = asyncio.Event()
    process = await ServerProcess.start(
        StdioCommand(
            command=command,
            args=args,
            env={name: value for name, value in environment.items() if name not in INHERITED_NAMES},
            cwd=cwd,
            limits=_LIMITS,
            confinement=confinement,
        ),
        environment=environment,
        kill_grace_s=_KILL_GRACE_S,
        on_exit=ended.set,
    )
    stdin, stdout, stderr = process.pipes
    stdin.close()
    outputs = [_Lines(on_line), _Lines(on_line)]
    pipes = [ReadPipe(file, lines.feed, lines.end) for file, lines in zip((stdout, stderr), outputs, strict=True)]
    try:
        await ended.wait()
    finally:
        try:
            await process.stop(close_grace_s=0, kill_grace_s=_KILL_GRACE_S)
        finally:
            for pipe, lines in zip(pipes, outputs, strict=True):
                pipe.drain()
                pipe.close()
                lines.end()
    assert process.exit_status is not None  # it has ended
    return process.exit_status


class _Lines:
    """Splits bytes into lines."""

    def __init__(self, on_line: Callable[[str], None]) -> None:
        self._on_line = on_line
        self._rest = b""

    def feed(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).replace(b"\r", b"\n").split(b"\n")
        for line in lines:
            self._tell(line)
        if len(self._rest) > _MAX_LINE:
            self.end()

    def end(self) -> None:
        rest, self._rest = self._rest, b""
        self._tell(rest)

    def _tell(self, line: bytes) -> None:
        text = capped(clean(line.decode(errors="replace")).rstrip(), _MAX_LINE)
        if text:
            self._on_line(text)
