"""Ports of monitoring: the metrics of this process, and the backlog of all processes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from domain.runs.run import RunStatus
from domain.workflows.run import WorkflowRunStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """Unfinished work of all organizations. `oldest_queued_at` is the creation time of the oldest
    run that no worker has claimed; `oldest_delivery_at` is when the most overdue webhook delivery
    was due. None if there is none."""

    runs: Mapping[RunStatus, int] = field(default_factory=dict)
    workflow_runs: Mapping[WorkflowRunStatus, int] = field(default_factory=dict)
    oldest_queued_at: datetime | None = None
    pending_approvals: int = 0
    open_deliveries: int = 0
    oldest_delivery_at: datetime | None = None


class BacklogReader(Protocol):
    async def read(self) -> Backlog:
        """The current backlog. Raises UNAVAILABLE `storage_unavailable`."""


class RequestMeter(Protocol):
    def request(self, *, method: str, path: str, status: int | None, seconds: float) -> None:
        """A request has ended. `path` is its route template, "" without a route. `status` None
        means that no response was sent."""


class EventMeter(Protocol):
    """Measures the age of events when they are sent."""

    def event_sent(self, *, at: datetime) -> None:
        """An event that was stored at `at` is sent to a client that was connected then."""


class MetricsPage(Protocol):
    @property
    def media_type(self) -> str: ...

    async def render(self) -> bytes:
        """The page. Never raises: metrics that cannot be read are omitted and reported as
        missing."""
