"""Ports to what monitoring reads: the figures of this process, and the backlog of all of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from domain.runs.run import RunStatus
from domain.workflows.run import WorkflowRunStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """What is stored and not over, of all organizations together. `oldest_queued_at`: when the oldest run that no worker has
    begun yet was created, `oldest_delivery_at` when the most overdue webhook delivery was to be attempted; None without any."""

    runs: Mapping[RunStatus, int] = field(default_factory=dict)
    workflow_runs: Mapping[WorkflowRunStatus, int] = field(default_factory=dict)
    oldest_queued_at: datetime | None = None
    pending_approvals: int = 0
    open_deliveries: int = 0
    oldest_delivery_at: datetime | None = None


class BacklogReader(Protocol):
    """Counts what is stored."""

    async def read(self) -> Backlog:
        """The backlog at this moment. Raises UNAVAILABLE `storage_unavailable`."""
        ...


class RequestMeter(Protocol):
    """Counts requests."""

    def request(self, *, method: str, path: str, status: int | None, seconds: float) -> None:
        """A request is over. `path` is the template of its route, "" for none; `status` None if nothing was answered."""
        ...


class EventMeter(Protocol):
    """Measures how fresh events are when they go out."""

    def event_sent(self, *, at: datetime) -> None:
        """An event that was stored at `at` goes to somebody who was listening then."""
        ...


class MetricsPage(Protocol):
    """All figures as text."""

    @property
    def media_type(self) -> str:
        """The media type of `render`."""
        ...

    async def render(self) -> bytes:
        """The page. Never raises: what cannot be read now is left out, and said to be."""
        ...
