"""Tasks of gateway sessions: calls of agents whose answers are not waited for (MCP 2025-11-25, basic/utilities/tasks; MCP
2026-07-28, extension `io.modelcontextprotocol/tasks`)."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from domain.gateway.session import GatewaySession
from domain.ids import ApprovalId, GatewaySessionId, RunId, ToolCallId
from domain.json_value import JsonObject
from domain.runs.run import Run, RunStatus
from domain.tools.result import ToolResult


class TaskStatus(StrEnum):
    """Where a task stands; values are the protocol's. What an agent waits for is nothing that its client could give, so that the
    task is at work meanwhile."""

    WORKING = "working"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_terminal(self) -> bool:
        """Whether nothing more can happen to the task."""
        return self is not TaskStatus.WORKING


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskName:
    """What a task's id names: a call of a tool, and the run that it has started, or the approval that it waits for."""

    session_id: GatewaySessionId
    tool: str
    call_id: ToolCallId
    created_at: datetime
    run_id: RunId | None = None
    approval_id: ApprovalId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayTask:
    """A task as it stands. `result` is what the call came to, once there is one, and `run` the same for programs;
    `ttl_ms` counts from its creation."""

    id: str
    status: TaskStatus
    message: str
    created_at: datetime
    updated_at: datetime
    ttl_ms: int
    result: ToolResult | None = None
    run: JsonObject | None = None


def ttl_ms(session: GatewaySession, created_at: datetime) -> int:
    """A task can be asked about for as long as its session is open."""
    return max(1, int((session.expires_at - created_at).total_seconds() * 1000))


def status_of(run: Run) -> TaskStatus:
    """A run that did not come to an answer has failed, whatever the reason."""
    match run.status:
        case RunStatus.COMPLETED | RunStatus.INCOMPLETE:
            return TaskStatus.COMPLETED
        case RunStatus.FAILED | RunStatus.HALTED:
            return TaskStatus.FAILED
        case RunStatus.CANCELLED:
            return TaskStatus.CANCELLED
        case _:
            return TaskStatus.WORKING
