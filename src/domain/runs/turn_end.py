"""The end of a turn with tool calls: the next turn, a suspended run, or a failed run."""

from dataclasses import replace
from datetime import datetime

from domain.approvals.approval import Approval, PendingApproval
from domain.runs.approvals import new_approvals
from domain.runs.audit_trail import run_ended_audit
from domain.runs.closing import tool_message
from domain.runs.ledger import ToolCall
from domain.runs.repeated_failure import repeatedly_failing_tool
from domain.runs.run import Run, RunError, RunStatus
from domain.runs.run_events import message_completed, run_ended, run_requires_action, turn_started
from domain.runs.step import Step
from domain.threads.message import Message, Role, ToolUse


def turn_end(run: Run, calls: tuple[ToolCall, ...], transcript: list[Message], *, at: datetime) -> Step | None:
    """The end of the turn with these `calls`, or None while one is executable."""
    if any(call.state.is_executable for call in calls):
        return None
    awaiting = {call.id: call for call in calls if call.state.is_waiting}
    if awaiting:
        reply = next(message for message in reversed(transcript) if message.role is Role.ASSISTANT)
        approvals = new_approvals(run, awaiting.values(), at=at)
        asked = {approval.tool_call_id: approval for approval in approvals}
        pending: tuple[ToolUse, ...] = tuple(
            _pending(use, awaiting[use.id], asked.get(use.id)) for use in reply.tool_uses if use.id in awaiting
        )
        return Step(
            run=run.suspended(pending, output=reply.text or None),
            events=(run_requires_action(pending, at=at),),
            approvals=approvals,
        )
    answer = tool_message(run, calls, at=at)
    if answer is None:
        return None
    failing = repeatedly_failing_tool([*transcript[-8:], answer], run.id)
    if failing is None:
        events = (message_completed(answer), turn_started(run.usage.turns + 1, at=at))
        return Step(run=run, messages=(answer,), events=events)
    error = RunError(
        code="tool_repeatedly_failing",
        detail=f"The tool {failing} failed with the same error three turns in a row.",
    )
    ended = run.ended(RunStatus.FAILED, at=at, error=error)
    return Step(
        run=ended,
        messages=(answer,),
        events=(message_completed(answer), run_ended(ended, at=at)),
        audit=(run_ended_audit(ended, at=at),),
    )


def _pending(use: ToolUse, call: ToolCall, approval: Approval | None) -> ToolUse:
    """The call for those who settle it, under the name of its tool."""
    waits_for = None
    if approval is not None:
        waits_for = PendingApproval(
            approval_id=approval.id,
            expires_at=approval.expires_at,
            reason=approval.cause,
            outcome_unknown=call.approval is not None and call.approval.outcome_unknown,
        )
    return replace(use, name=call.name, params=call.params, elicitation=call.elicitation, approval=waits_for)
