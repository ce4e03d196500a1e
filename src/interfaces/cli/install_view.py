"""Progress of an installation: a bar on a terminal, otherwise a line per step."""

from types import TracebackType
from typing import Self

from interfaces.cli.terminal import Terminal
from interfaces.http.mcp_servers.views import InstallProgressView


class InstallView:
    """Context manager: on exit the bar disappears, lines stay."""

    def __init__(self, terminal: Terminal, slug: str) -> None:
        self._terminal = terminal
        self._slug = slug
        self._step = ""
        self._bar = terminal.progress_bar(f"Installing {slug}") if terminal.is_interactive else None

    def show(self, progress: InstallProgressView) -> None:
        if self._bar is not None:
            self._bar.update(progress["step"], progress["percent"])
        elif progress["step"] != self._step:
            self._terminal.note(f"{self._slug}: {progress['step']}")
        self._step = progress["step"]

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
