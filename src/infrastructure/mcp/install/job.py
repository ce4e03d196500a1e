"""One installation in progress: its steps as progress, the installers' output in the server's
log."""

import errno
import os
from collections import deque
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from application.mcp.installer import InstallProgressCallback, McpInstallFailure, McpInstallFailureKind
from application.mcp.ports import InstallProgress
from infrastructure.mcp.install.process import run_to_end
from infrastructure.mcp.transports.launch import Confined

_LOG_LIMIT_BYTES = 256 * 1024
_KEPT_LINES = 400
_APPROACH = 0.97
"""Remaining part of a step after each line of output, as the number of lines is unknown."""


class InstallLog:
    """A size-limited log file, truncated by each installation."""

    def __init__(self, path: Path) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self._file = os.fdopen(descriptor, "w", encoding="utf-8", errors="replace")
        self._left = _LOG_LIMIT_BYTES

    def line(self, text: str) -> None:
        """Add a line, unless the file is full."""
        self._left -= len(text) + 1
        if self._left > 0:
            self._file.write(f"{text}\n")
            self._file.flush()

    def note(self, text: str) -> None:
        """Add a remark of Dragoman."""
        self.line(f"[dragoman] {text}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()


class ConfineInstaller(Protocol):
    """What an installer's process may use."""

    def __call__(
        self, target: Path, environment: Mapping[str, str], command: tuple[str, ...], *, runs_packages: bool
    ) -> Awaitable[Confined]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """Exit status of an installer, and its last lines of output."""

    status: int
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


class InstallJob:
    """Context of the installers. `environment` is the environment of their processes, and `confine`
    says what they may use."""

    def __init__(
        self,
        *,
        log: InstallLog,
        on_progress: InstallProgressCallback,
        environment: Mapping[str, str],
        confine: ConfineInstaller | None = None,
    ) -> None:
        self._log = log
        self._on_progress = on_progress
        self._environment = environment
        self._confine = confine
        self._step = ""
        self._done = 0.0
        self._until = 0.0
        self._told = -1

    def step(self, step: str, *, until: int) -> None:
        """Begin a step that ends at `until` percent."""
        self._step, self._done, self._until, self._told = step, self._until, float(until), -1
        self._log.note(step)
        self._tell()

    def advance(self) -> None:
        self._done = self._until - (self._until - self._done) * _APPROACH
        self._tell()

    def note(self, text: str) -> None:
        self._log.note(text)

    def line(self, text: str) -> None:
        """Record a line of output."""
        self._log.line(text)
        self.advance()

    async def run(
        self, command: str, *args: str, cwd: Path, env: Mapping[str, str] | None = None, runs_packages: bool = False
    ) -> Ended:
        """Run an installer to its end. `runs_packages`: whether it may run code of what it
        installs."""
        lines: deque[str] = deque(maxlen=_KEPT_LINES)

        def on_line(line: str) -> None:
            lines.append(line)
            self.line(line)

        environment = {**self._environment, **(env or {})}
        confined = Confined()
        if self._confine is not None:
            confined = await self._confine(cwd, environment, (command, *args), runs_packages=runs_packages)
        given = {name: value for name, value in environment.items() if name not in confined.without}
        try:
            status = await run_to_end(
                command,
                args,
                cwd=cwd,
                environment={**given, **confined.environment},
                on_line=on_line,
                confinement=confined.options,
            )
        except OSError as exc:
            raise disk_failure(exc) from exc
        return Ended(status=status, lines=tuple(lines))

    def _tell(self) -> None:
        percent = int(self._done)
        if percent != self._told:
            self._told = percent
            self._on_progress(InstallProgress(step=self._step, percent=percent))


def disk_failure(error: OSError) -> McpInstallFailure:
    """The failure for an error of the operating system."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return McpInstallFailure(McpInstallFailureKind.DISK_FULL, "There is no space left on the disk.")
    reason = (error.strerror or "unknown error").lower()
    return McpInstallFailure(McpInstallFailureKind.FAILED, f"The installation failed: {reason}.")
