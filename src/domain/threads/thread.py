"""A thread: the conversation that runs of one organization's agents share."""

from dataclasses import dataclass
from datetime import datetime

from domain.errors import ErrorKind, ServiceError, Violation, conflict, invalid
from domain.ids import MessageId, OrganizationId, RunId, ThreadId
from domain.json_value import JsonObject
from domain.threads.message import Message, Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantine:
    """A lock on a thread after its run was halted by the canary token `canary_id`. Nothing is added
    to the thread until it is released."""

    run_id: RunId
    canary_id: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkPoint:
    """The place where a fork left a thread: before the message `before`, which the fork replaces,
    or after all messages. The thread may have been deleted since."""

    thread_id: ThreadId
    before: MessageId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """A conversation. Its messages are stored separately. A fork began with messages of another
    thread. `team` is the group that it belongs to; None: to the organization."""

    id: ThreadId
    organization_id: OrganizationId
    metadata: JsonObject
    created_at: datetime
    quarantine: Quarantine | None = None
    forked_from: ForkPoint | None = None
    team: str | None = None


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


def require_fork_before(message: Message) -> None:
    """Raise INVALID `fork_place_invalid` for a message that is not a user's: a tool call before it
    may lack its result."""
    if message.role is not Role.USER:
        wrong = Violation(path="before_message_id", message="must be a message of the role user")
        detail = f"A thread is not forked before the message {message.id}, which has the role {message.role}."
        raise invalid("fork_place_invalid", detail, wrong)
