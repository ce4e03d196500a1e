"""What a stdio transport needs of the server behind it: a process, or a container."""

import signal
from collections.abc import Callable
from typing import Protocol

from infrastructure.mcp.transports.pipes import Descriptor, ReadPipe

_SIGNAL_CODES = 128


class StartedServer(Protocol):
    """A started server. It reports its end once, on the event loop, to the `on_exit` of its
    start."""

    @property
    def exit_status(self) -> int | None:
        """The exit code, or 128 + N for signal N; None before the end."""
        ...

    def describe_exit(self) -> str | None:
        """How the server ended (`exited with code 3`); None before the end."""
        ...

    @property
    def stdin(self) -> Descriptor:
        """The taker closes it."""
        ...

    def outputs(
        self, on_output: Callable[[bytes], None], on_log: Callable[[bytes], None], on_end: Callable[[], None]
    ) -> tuple[ReadPipe, ReadPipe]:
        """The pipes of stdout and stderr, which may be one. `on_end` reports the end of stdout."""
        ...

    async def stop(self, *, close_grace_s: float, kill_grace_s: float) -> None:
        """Wait `close_grace_s` for the end after stdin was closed, then end everything. Bounded;
        completes under cancellation, which is raised at the end."""
        ...


class StartServer(Protocol):
    """Starts a server. Raises OSError, TransportFailedError."""

    async def __call__(self, *, kill_grace_s: float, on_exit: Callable[[], None]) -> StartedServer: ...


def describe_status(status: int) -> str:
    if status - _SIGNAL_CODES in signal.valid_signals():
        return f"was ended by {signal.Signals(status - _SIGNAL_CODES).name}"
    return f"exited with code {status}"
