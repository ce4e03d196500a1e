"""Resuming a suspended run: settled calls, answered questions and decided approvals."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from domain.approvals.approval import ApprovalOutcome, ApprovalRequest, ApprovalState
from domain.approvals.decision import decision_audit
from domain.approvals.refusals import approval_decided, approval_expired
from domain.audit.event import AuditEvent
from domain.errors import Violation, conflict, invalid
from domain.ids import ToolCallId
from domain.json_value import JsonObject
from domain.runs.approvals import approved_call, denied_result
from domain.runs.audit_trail import answer_audit, tool_call_audit
from domain.runs.change import RunChange, RunFacts
from domain.runs.closing import lacks_display_only
from domain.runs.ledger import InputAnswer, ToolCall, ToolCallState
from domain.runs.run import Run, RunStatus
from domain.runs.run_events import run_resumed, tool_settled
from domain.runs.step import Step
from domain.threads.message import ToolUse
from domain.tools.result import ToolResult

_REFUSALS = (ApprovalState.DENIED, ApprovalState.EXPIRED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumption:
    """Results of tools, answers to servers' questions, and outcomes of approvals from `actor`.
    `client_request` is for the event.

    Rules:
    - Every result, answer and outcome must fit what is pending now. Otherwise all are rejected.
    - The run is queued once nothing is pending, or once a call must be checked again.
    - It is also queued if a message that settles all pending calls waits behind it (D5).
    """

    results: Mapping[ToolCallId, ToolResult] = field(default_factory=dict)
    answers: tuple[InputAnswer, ...] = ()
    outcomes: tuple[ApprovalOutcome, ...] = ()
    actor: str
    at: datetime
    client_request: JsonObject | None = None

    def decide(self, facts: RunFacts) -> RunChange:
        """Raises CONFLICT `run_not_waiting`, `approval_decided`, `approval_expired`, INVALID
        `tool_call_not_pending`."""
        run = facts.run
        if run.status is not RunStatus.REQUIRES_ACTION:
            raise conflict("run_not_waiting", f"Run {run.id} is {run.status}, not requires_action.", run_id=run.id)
        return RunChange(run=run, step=self._step(facts))

    def _step(self, facts: RunFacts) -> Step:
        run = facts.run
        calls = {call.id: call for call in facts.open_calls}
        decided = _decided(run, calls, self.outcomes, self.at)
        _refuse_unless_pending(run, calls, self.results, self.answers)
        refusals = {
            id_: _refused(calls[id_], outcome) for id_, outcome in decided.items() if outcome.state in _REFUSALS
        }
        settled = tuple(
            calls[id_].settled(result, at=self.at) for id_, result in (*self.results.items(), *refusals.items())
        )
        changed = tuple(
            _after(calls[id_], outcome) for id_, outcome in decided.items() if outcome.state not in _REFUSALS
        ) + tuple(_answered(calls[answer.tool_call_id], answer) for answer in self.answers)
        left = {**calls, **{call.id: call for call in changed}}
        for call in settled:
            del left[call.id]
        pending = self._pending(run, left, decided)
        undecided = any(call.state is ToolCallState.UNDECIDED for call in changed)
        stays = bool(pending) and not undecided and not (facts.queued_behind and lacks_display_only(left.values()))
        return Step(
            run=replace(run, pending=pending) if stays else run.resumed(),
            events=(
                *(tool_settled(call, server=None) for call in settled),
                *(() if stays else (run_resumed(at=self.at, client_request=self.client_request),)),
            ),
            changed=changed,
            settled=settled,
            outcomes=tuple(decided.values()),
            audit=(
                *(entry for id_, outcome in decided.items() for entry in _audit(run, calls[id_], outcome)),
                *(
                    entry
                    for answer in self.answers
                    for entry in answer_audit(run, calls[answer.tool_call_id], answer, actor=self.actor, at=self.at)
                ),
                *(tool_call_audit(run, call, actor=self.actor) for call in settled),
            ),
        )

    def _pending(
        self, run: Run, left: Mapping[ToolCallId, ToolCall], decided: Mapping[ToolCallId, ApprovalOutcome]
    ) -> tuple[ToolUse, ...]:
        """The calls that the run still waits for, with the next questions of servers."""
        questions = {answer.tool_call_id: answer.next for answer in self.answers}
        return tuple(
            replace(
                use,
                elicitation=questions.get(use.id, use.elicitation),
                approval=None if use.id in decided else use.approval,
            )
            for use in run.pending
            if use.id in left and left[use.id].state.is_waiting
        )


def resumed_step(run: Run, *, at: datetime) -> Step:
    """Resume a suspended run because the thread's next message settles its pending calls (D5)."""
    return Step(run=run.resumed(), events=(run_resumed(at=at),))


def _answered(call: ToolCall, answer: InputAnswer) -> ToolCall:
    state = ToolCallState.INPUT_GIVEN if answer.next is None else ToolCallState.AWAITING_INPUT
    return replace(call, state=state, elicitation=answer.next, input=answer.input)


def _after(call: ToolCall, outcome: ApprovalOutcome) -> ToolCall:
    if outcome.state is ApprovalState.STALE:
        return replace(call, state=ToolCallState.UNDECIDED)
    return approved_call(call, _asked(call), outcome)


def _audit(run: Run, call: ToolCall, outcome: ApprovalOutcome) -> tuple[AuditEvent, ...]:
    return decision_audit(
        outcome,
        organization_id=run.organization_id,
        run_id=run.id,
        tool_call_id=call.id,
        tool=call.name,
        server_id=call.server_id,
        arguments=call.params,
    )


def _refused(call: ToolCall, outcome: ApprovalOutcome) -> ToolResult:
    return denied_result(outcome.state, outcome.reason, outcome_unknown=_asked(call).outcome_unknown)


def _asked(call: ToolCall) -> ApprovalRequest:
    if call.approval is None:
        raise ValueError(f"call {call.id} needs no approval")
    return call.approval


def _decided(
    run: Run, calls: Mapping[ToolCallId, ToolCall], outcomes: tuple[ApprovalOutcome, ...], at: datetime
) -> dict[ToolCallId, ApprovalOutcome]:
    """The outcomes by call. Raises unless every approval is pending."""
    uses = {use.approval.approval_id: use for use in run.pending if use.approval is not None}
    decided: dict[ToolCallId, ApprovalOutcome] = {}
    for outcome in outcomes:
        use = uses.pop(outcome.approval_id, None)
        if use is None or use.approval is None or calls[use.id].state is not ToolCallState.AWAITING_APPROVAL:
            raise approval_decided(outcome.approval_id)
        given = outcome.state in (ApprovalState.APPROVED, ApprovalState.DENIED)
        if given and at >= use.approval.expires_at:
            raise approval_expired(outcome.approval_id)
        decided[use.id] = outcome
    return decided


def _refuse_unless_pending(
    run: Run,
    calls: dict[ToolCallId, ToolCall],
    results: Mapping[ToolCallId, ToolResult],
    answers: tuple[InputAnswer, ...],
) -> None:
    """Raise unless all these calls are pending."""
    pending = {use.id for use in run.pending if calls[use.id].state is not ToolCallState.AWAITING_APPROVAL}
    asked = {id_: calls[id_].elicitation for id_ in pending if calls[id_].state is ToolCallState.AWAITING_INPUT}
    wrong = []
    for index, id_ in enumerate(results):
        if id_ not in pending or id_ in asked:
            wrong.append(Violation(path=f"tool_results.{index}.tool_call_id", message="is not pending"))
    for answer in answers:
        question = asked.pop(answer.tool_call_id, None)
        if question is None or question.request_id != answer.request_id:
            wrong.append(Violation(path="tool_results", message=f"{answer.tool_call_id} does not ask this question"))
    if wrong:
        raise invalid("tool_call_not_pending", f"Run {run.id} does not wait for all of these calls.", *wrong)
