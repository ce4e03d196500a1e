"""A thread: the conversation that runs of one organization's agents share."""

from dataclasses import dataclass
from datetime import datetime

from domain.errors import ErrorKind, ServiceError, conflict
from domain.ids import OrganizationId, RunId, ThreadId
from domain.json_value import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantine:
    """A lock on a thread after its run was halted by the canary token `canary_id`. Nothing is added
    to the thread until it is released."""

    run_id: RunId
    canary_id: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """A conversation. Its messages are stored separately."""

    id: ThreadId
    organization_id: OrganizationId
    metadata: JsonObject
    created_at: datetime
    quarantine: Quarantine | None = None


def thread_not_yours(thread_id: ThreadId) -> ServiceError:
    """The error for a runner that deletes what belongs to runs of another key."""
    detail = (
        f"Another key has run agents on the thread {thread_id}; deleting it or its files requires the role operator."
    )
    return ServiceError("thread_not_yours", ErrorKind.FORBIDDEN, detail)


def not_quarantined(thread_id: ThreadId) -> ServiceError:
    """The error for releasing a thread that is not in quarantine."""
    return conflict("thread_not_quarantined", f"The thread {thread_id} is not in quarantine.")


def thread_quarantined(thread_id: ThreadId, run_id: RunId) -> ServiceError:
    """The error for adding to a thread in quarantine."""
    detail = f"The thread {thread_id} is in quarantine since run {run_id} was halted; an operator has to release it."
    return conflict("thread_quarantined", detail, run_id=run_id)
