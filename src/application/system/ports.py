"""Ports to the surroundings: the clock and the source of fresh identifiers."""

from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time for records, monotonic time for durations and deadlines."""

    def now(self) -> datetime:
        """The present moment, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds on a clock that never steps back."""
        ...


class LogContext(Protocol):
    """Ids on every log line, whoever writes it."""

    def __call__(self, **ids: str) -> AbstractContextManager[None]:
        """Lines logged inside, in this task and those it starts, carry `ids`."""
        ...


class OutboundPolicy(Protocol):
    """Which addresses that users name may be requested."""

    def refusal(self, url: str) -> str | None:
        """Why a URL may not be requested, in a sentence that is safe to show, as far as its text tells: names are looked
        at again when they are resolved. None if it may."""
        ...


class IdSource(Protocol):
    """Fresh identifiers."""

    def new(self, prefix: str) -> str:
        """`prefix_` and 26 characters that sort by time and cannot be guessed (80 random bits)."""
        ...

    def new_token(self) -> str:
        """An API token: the public prefix and 256 random bits."""
        ...
