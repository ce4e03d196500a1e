"""What resuming stores: settled calls, answered questions, and the run's way back to the queue once nothing is pending."""

from dataclasses import replace
from datetime import datetime

from application.runs.ports import Step
from application.runs.run_events import run_resumed, tool_settled
from domain.errors import Violation, conflict, invalid
from domain.ids import ToolCallId
from domain.runs.audit_trail import tool_call_audit
from domain.runs.ledger import InputAnswer, Settlement, ToolCall, ToolCallState
from domain.runs.run import Run, RunStatus
from domain.threads.message import ToolUse


def resuming_step(
    run: Run,
    open_calls: tuple[ToolCall, ...],
    settlements: tuple[Settlement, ...],
    answers: tuple[InputAnswer, ...],
    *,
    actor: str,
    at: datetime,
) -> Step:
    """The step of a waiting run that `actor` gives results and answers. Raises CONFLICT `run_not_waiting`, INVALID
    `tool_call_not_pending`."""
    if run.status is not RunStatus.REQUIRES_ACTION:
        raise conflict("run_not_waiting", f"Run {run.id} is {run.status}, not requires_action.", run_id=run.id)
    calls = {call.id: call for call in open_calls}
    _refuse_unless_pending(run, calls, settlements, answers)
    questions = {answer.tool_call_id: answer.next for answer in answers}
    settled_ids = {settlement.tool_call_id for settlement in settlements}
    pending: list[ToolUse] = []
    for use in run.pending:
        question = questions.get(use.id, use.elicitation)
        if use.id in settled_ids or (use.id in questions and question is None):
            continue
        pending.append(replace(use, elicitation=question))
    settled = [(calls[settlement.tool_call_id], settlement) for settlement in settlements]
    return Step(
        run=replace(run, pending=tuple(pending)) if pending else run.resumed(),
        events=(
            *(tool_settled(call, settlement, server=None) for call, settlement in settled),
            *(() if pending else (run_resumed(at=at),)),
        ),
        changed=tuple(_answered(calls[answer.tool_call_id], answer) for answer in answers),
        settled=settlements,
        audit=tuple(tool_call_audit(run, call, settlement, actor=actor) for call, settlement in settled),
    )


def _answered(call: ToolCall, answer: InputAnswer) -> ToolCall:
    state = ToolCallState.INPUT_GIVEN if answer.next is None else ToolCallState.AWAITING_INPUT
    return replace(call, state=state, elicitation=answer.next, input=answer.input)


def _refuse_unless_pending(
    run: Run,
    calls: dict[ToolCallId, ToolCall],
    settlements: tuple[Settlement, ...],
    answers: tuple[InputAnswer, ...],
) -> None:
    """Against what is pending now, whoever else may have been faster."""
    pending = {use.id for use in run.pending}
    asked = {id_: calls[id_].elicitation for id_ in pending if calls[id_].state is ToolCallState.AWAITING_INPUT}
    wrong = []
    for index, settlement in enumerate(settlements):
        if settlement.tool_call_id not in pending or settlement.tool_call_id in asked:
            wrong.append(Violation(path=f"tool_results.{index}.tool_call_id", message="is not pending"))
        pending.discard(settlement.tool_call_id)
    for answer in answers:
        question = asked.pop(answer.tool_call_id, None)
        if question is None or question.request_id != answer.request_id:
            wrong.append(Violation(path="tool_results", message=f"{answer.tool_call_id} does not ask this (any more)"))
    if wrong:
        raise invalid("tool_call_not_pending", f"Run {run.id} does not wait for all of these calls.", *wrong)
