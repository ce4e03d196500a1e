"""Ends a run for a call that policy blocks with `on_block: halt`; every call gets a result."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from domain.ids import ToolCallId
from domain.policy.decision import Decision
from domain.runs.audit_trail import run_ended_audit, session_halted_audit
from domain.runs.closing import tool_message
from domain.runs.ledger import ToolCall, ToolCallState
from domain.runs.run import Run, RunStatus
from domain.runs.run_events import message_completed, run_halted
from domain.runs.step import Step

POLICY = "policy"


def halting_call(calls: Sequence[ToolCall], decisions: Mapping[ToolCallId, Decision | None]) -> ToolCall | None:
    """The first call that is blocked by a decision that halts the run. `decisions` are those of
    policy, by call."""
    for call in calls:
        decision = decisions.get(call.id)
        if decision is not None and decision.halts and call.state is ToolCallState.SETTLED:
            return call
    return None


def halted_end(run: Run, calls: tuple[ToolCall, ...], blocked: ToolCall, *, said: str | None, at: datetime) -> Step:
    """The end of a run whose last turn has these settled `calls`, including `blocked`."""
    answer = tool_message(run, calls, at=at)
    messages = () if answer is None else (answer,)
    ended = run.ended(RunStatus.HALTED, at=at, output=said)
    return Step(
        run=ended,
        messages=messages,
        events=(
            *(message_completed(message) for message in messages),
            run_halted(reason=POLICY, tool_call_id=blocked.id, at=at),
        ),
        audit=(
            run_ended_audit(ended, at=at),
            session_halted_audit(ended, {"reason": POLICY, "tool_call_id": blocked.id, "tool": blocked.name}, at=at),
        ),
    )
