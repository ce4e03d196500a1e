"""The queue as JSON."""

from collections.abc import Sequence
from typing import Annotated, TypedDict

from application.runs.queue_lines import QueueLine
from domain.runs.lane import Lane
from domain.threads.message_json import timestamp
from interfaces.http.view_fields import Format, Items

MOST_LINES = 1_000


class QueueLineView(TypedDict):
    """The runs of an agent in a lane."""

    organization_id: Annotated[str, "Id of the organization."]
    agent_id: Annotated[str, "Id of the agent."]
    lane: Annotated[Lane, "Lane of the runs."]
    queued: Annotated[int, "Number of queued runs."]
    running: Annotated[int, "Number of runs in progress."]
    oldest_queued_at: Annotated[
        Annotated[str, Format("date-time")] | None, "When the oldest queued run was created; null without any."
    ]


class QueueView(TypedDict):
    """Queued runs and runs in progress."""

    queued: Annotated[int, "Number of queued runs."]
    running: Annotated[int, "Number of runs in progress."]
    oldest_queued_at: Annotated[
        Annotated[str, Format("date-time")] | None, "When the oldest queued run was created; null without any."
    ]
    lines: Items[QueueLineView]


class RequeuedRunsView(TypedDict):
    """Runs that other workers execute now."""

    run_ids: Annotated[list[str], "Ids of the requeued runs."]


def queue_view(lines: Sequence[QueueLine]) -> QueueView:
    """Sums over all lines, and the lines with the most queued runs."""
    waiting = [line.oldest_queued_at for line in lines if line.oldest_queued_at is not None]
    return {
        "queued": sum(line.queued for line in lines),
        "running": sum(line.running for line in lines),
        "oldest_queued_at": timestamp(min(waiting)) if waiting else None,
        "lines": [_line_view(line) for line in lines[:MOST_LINES]],
    }


def _line_view(line: QueueLine) -> QueueLineView:
    return {
        "organization_id": line.organization_id,
        "agent_id": line.agent_id,
        "lane": line.lane,
        "queued": line.queued,
        "running": line.running,
        "oldest_queued_at": None if line.oldest_queued_at is None else timestamp(line.oldest_queued_at),
    }
