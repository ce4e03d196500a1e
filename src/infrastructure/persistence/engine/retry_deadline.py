"""How long a unit of work retries while the database is away. Requests do not wait: their clients
retry. Units of a run wait, because giving up costs an attempt and perhaps the result of a tool
call."""

from contextvars import ContextVar
from types import TracebackType
from typing import Final

RUN_RETRY_S: Final = 15.0
"""For units of a run, in seconds. Less than the default timeout of a tool, so that its call is not
reported as timed out; as long as a lease, which expires meanwhile."""
STEP_RETRY_S: Final = 300.0
"""For what has happened already and would be lost with the worker's memory."""

_retry_s: ContextVar[float] = ContextVar("storage_retry_s", default=0.0)


class retrying_for:  # noqa: N801  # reads as a phrase: `with retrying_for(STEP_RETRY_S):`
    """Units begun inside, in this task and those it starts, retry up to `seconds` each while the
    database is away."""

    __slots__ = ("_seconds", "_token")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        self._token = _retry_s.set(self._seconds)

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _retry_s.reset(self._token)


def retry_s() -> float:
    """How long a unit begun here may retry, in seconds."""
    return _retry_s.get()
