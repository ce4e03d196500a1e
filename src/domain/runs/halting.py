"""Ends a run for a call that policy blocks with `on_block: halt`; every call gets a result."""

from dataclasses import dataclass
from datetime import datetime

from domain.policy.decision import Decision
from domain.runs.audit_trail import run_ended_audit, session_halted_audit
from domain.runs.closing import tool_message
from domain.runs.ledger import ToolCall, ToolCallState
from domain.runs.run import Run, RunStatus
from domain.runs.run_events import message_completed, run_halted
from domain.runs.step import Step

POLICY = "policy"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedCall:
    """A call after its check: settled if it is not executed. `decision` is that of policy, if policy was evaluated."""

    call: ToolCall
    decision: Decision | None = None

    @property
    def is_settled(self) -> bool:
        return self.call.state is ToolCallState.SETTLED

    @property
    def halts(self) -> bool:
        return self.is_settled and self.decision is not None and self.decision.halts


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
