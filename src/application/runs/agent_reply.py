"""The reply of a run to the caller of its agent, and progress messages. Pure."""

from typing import cast

from application.tools.agent_calls import AgentReply
from domain.json_value import JsonObject, JsonValue
from domain.runs.events import RunEvent, RunEventType
from domain.runs.run import Run, RunStatus
from domain.runs.run_json import run_to_json
from domain.threads.message import ToolUse
from domain.tools.result import ToolResult

_TOLD = ("thread_id", "status", "output", "output_json", "error", "incomplete_reason", "usage")


def reply_of(run: Run) -> AgentReply:
    """The answer of an ended run, or the state of an unfinished one."""
    return AgentReply(result=_result(run), run=_shape(run))


def progress_of(event: RunEvent) -> str | None:
    """The progress message for an event, or None. It contains names of tools, not arguments."""
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
            return f"{event.run_id} continues"
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
                f"The agent is not finished: its run {run.id} continues. Call this tool again with that run_id, and without input,"
                " to have the answer."
            )


def _wait(use: ToolUse) -> str:
    if use.approval is not None:
        until = f"{use.approval.expires_at:%Y-%m-%dT%H:%M:%SZ}"
        return f"{use.name}: for the approval {use.approval.approval_id}, until {until}"
    if use.elicitation is not None:
        return f"{use.name}: for the answer to a question of its server"
    return f"{use.name}: for a client that shows it to a person and reports the result"


def _shape(run: Run) -> JsonObject:
    whole = run_to_json(run)
    pending: list[JsonValue] = [_pending(use) for use in run.pending]
    return {"run_id": run.id, **{name: whole[name] for name in _TOLD}, "pending": pending}


def _pending(use: ToolUse) -> JsonObject:
    """Without arguments: those are for the client that settles the call."""
    shape: JsonObject = {"tool_call_id": use.id, "name": use.name}
    if use.approval is not None:
        shape["approval_id"] = use.approval.approval_id
        shape["expires_at"] = f"{use.approval.expires_at:%Y-%m-%dT%H:%M:%SZ}"
    return shape
