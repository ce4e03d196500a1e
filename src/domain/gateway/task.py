"""Tasks of gateway sessions: calls whose results are fetched later (MCP 2025-11-25,
basic/utilities/tasks; MCP 2026-07-28, extension `io.modelcontextprotocol/tasks`)."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from domain.gateway.session import GatewaySession
from domain.ids import ApprovalId, GatewaySessionId, RunId, ToolCallId
from domain.json_value import JsonObject
from domain.runs.run import Run, RunStatus
from domain.tools.result import ToolResult


class TaskStatus(StrEnum):
    """The status of a task; the values are the protocol's. A suspended run is `working`, because
    the client can provide nothing that the run waits for."""

    WORKING = "working"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_terminal(self) -> bool:
        return self is not TaskStatus.WORKING


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskName:
    """The content of a task id: a tool call, and the run that it started or the approval that it
    waits for."""

    session_id: GatewaySessionId
    tool: str
    call_id: ToolCallId
    created_at: datetime
    run_id: RunId | None = None
    approval_id: ApprovalId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayTask:
    """The current state of a task.

    `result` is the outcome of the call once it is known; `run` is the same for programs. `ttl_ms`
    is measured from `created_at`.
    """

    id: str
    status: TaskStatus
    message: str
    created_at: datetime
    updated_at: datetime
    ttl_ms: int
    result: ToolResult | None = None
    run: JsonObject | None = None


def ttl_ms(session: GatewaySession, created_at: datetime) -> int:
    """A task can be queried as long as its session is open."""
    return max(1, int((session.expires_at - created_at).total_seconds() * 1000))


def status_of(run: Run) -> TaskStatus:
    """The task status of a run. A failed or halted run is `failed`, whatever the reason."""
    match run.status:
        case RunStatus.COMPLETED | RunStatus.INCOMPLETE:
            return TaskStatus.COMPLETED
        case RunStatus.FAILED | RunStatus.HALTED:
            return TaskStatus.FAILED
        case RunStatus.CANCELLED:
            return TaskStatus.CANCELLED
        case _:
            return TaskStatus.WORKING
