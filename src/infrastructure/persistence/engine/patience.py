"""How long work waits for a database that is away. Requests do not wait, their clients ask again; what a run has in hand does:
giving it up would cost an attempt, and perhaps what a tool has answered."""

from contextvars import ContextVar
from types import TracebackType
from typing import Final

RUN_PATIENCE_S: Final = 15.0
"""What a run waits for, and how long in seconds: less than a tool may take by default, so that its call is not said to have
taken too long, and as long as a lease, which lapses meanwhile."""
STEP_PATIENCE_S: Final = 300.0
"""The same for what has happened already, and would be lost with the worker's memory."""

_patience_s: ContextVar[float] = ContextVar("storage_patience_s", default=0.0)


class patient:  # noqa: N801  # read as what it does: `with patient(STEP_PATIENCE_S):`
    """Units of work begun inside, in this task and those it starts, wait up to `seconds` each for a database that is away."""

    __slots__ = ("_seconds", "_token")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        self._token = _patience_s.set(self._seconds)

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _patience_s.reset(self._token)


def patience_s() -> float:
    """How long a unit begun here may wait, in seconds."""
    return _patience_s.get()
