"""What a run comes to for whoever called its agent as a tool, and what is told of it meanwhile. Pure."""

from typing import cast

from application.tools.agent_calls import AgentReply
from domain.json_value import JsonObject, JsonValue
from domain.runs.events import RunEvent, RunEventType
from domain.runs.run import Run, RunStatus
from domain.runs.run_json import run_to_json
from domain.threads.message import ToolUse
from domain.tools.result import ToolResult

_TOLD = ("thread_id", "status", "output", "error", "incomplete_reason", "usage")


def reply_of(run: Run) -> AgentReply:
    """The answer of a run that has ended, or how the others stand."""
    return AgentReply(result=_result(run), run=_shape(run))


def progress_of(event: RunEvent) -> str | None:
    """What a caller is told of an event, in a few words; None for nothing. Names of tools are told, arguments are not."""
    match event.type:
        case RunEventType.RUN_STARTED:
            return f"{event.run_id} started"
        case RunEventType.TURN_STARTED:
            return f"turn {event.data['turn']}"
        case RunEventType.TOOL_STARTED:
            return f"calls {event.data['name']}"
        case RunEventType.RUN_REQUIRES_ACTION:
            pending = cast("list[JsonObject]", event.data["pending"])
            return f"{event.run_id} waits for: {', '.join(str(use['name']) for use in pending)}"
        case RunEventType.RUN_RESUMED:
            return f"{event.run_id} goes on"
        case _:
            return None


def _result(run: Run) -> ToolResult:
    match run.status:
        case RunStatus.COMPLETED:
            return ToolResult.succeeded(run.output or "")
        case RunStatus.INCOMPLETE:
            reason = run.incomplete_reason
            why = "" if reason is None else f": {reason.explanation} ({reason.value})"
            notice = f"[This is not the agent's whole answer{why}. Run: {run.id}.]"
            return ToolResult.succeeded(f"{run.output}\n{notice}" if run.output else notice)
        case RunStatus.FAILED:
            said = "" if run.error is None else f": {run.error.detail} ({run.error.code})"
            return ToolResult.failed("agent_run_failed", f"The agent's run {run.id} failed{said}")
        case RunStatus.CANCELLED:
            return ToolResult.failed("agent_run_cancelled", f"The agent's run {run.id} was cancelled.")
        case RunStatus.HALTED:
            return ToolResult.failed("agent_run_halted", f"The agent's run {run.id} was halted by its policy.")
        case RunStatus.REQUIRES_ACTION:
            waits = "\n".join(f"- {_wait(use)}" for use in run.pending)
            return ToolResult.succeeded(
                f"The agent is not finished: its run {run.id} waits.\n{waits}\nCall this tool again with that run_id, and"
                " without input, to have the answer once this is settled."
            )
        case _:
            return ToolResult.succeeded(
                f"The agent is not finished: its run {run.id} goes on. Call this tool again with that run_id, and without input,"
                " to have the answer."
            )


def _wait(use: ToolUse) -> str:
    if use.approval is not None:
        until = f"{use.approval.expires_at:%Y-%m-%dT%H:%M:%SZ}"
        return f"{use.name}: for the approval {use.approval.approval_id}, until {until}"
    if use.elicitation is not None:
        return f"{use.name}: for the answer to a question of its server"
    return f"{use.name}: for somebody who shows it to a person and says what came of it"


def _shape(run: Run) -> JsonObject:
    whole = run_to_json(run)
    pending: list[JsonValue] = [_pending(use) for use in run.pending]
    return {"run_id": run.id, **{name: whole[name] for name in _TOLD}, "pending": pending}


def _pending(use: ToolUse) -> JsonObject:
    """Without its arguments, which are for those who settle it."""
    shape: JsonObject = {"tool_call_id": use.id, "name": use.name}
    if use.approval is not None:
        shape["approval_id"] = use.approval.approval_id
        shape["expires_at"] = f"{use.approval.expires_at:%Y-%m-%dT%H:%M:%SZ}"
    return shape
