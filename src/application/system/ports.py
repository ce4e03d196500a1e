"""Ports to the clock, log context, egress checks and the source of identifiers."""

from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time for records, monotonic time for durations and deadlines."""

    def now(self) -> datetime:
        """The present time in UTC."""

    def monotonic(self) -> float:
        """Monotonic seconds."""


class LogContext(Protocol):
    """Ids on every log line."""

    def __call__(self, **ids: str) -> AbstractContextManager[None]:
        """Lines logged inside, in this task and those it starts, have `ids`."""


class OutboundPolicy(Protocol):
    """Checks addresses from users before requests."""

    def refusal(self, url: str) -> str | None:
        """Why a URL may not be requested, as a public sentence, judged by its text; names are
        checked again when they are resolved. None if it may."""


class IdSource(Protocol):
    """New identifiers."""

    def new(self, prefix: str) -> str:
        """`prefix_` and 26 characters that sort by time and cannot be guessed (80 random bits)."""
        ...

    def new_token(self) -> str:
        """An API token: the public prefix and 256 random bits."""
        ...
