"""The last step of a run ended by a canary token: content is stored without the token, and the
thread is quarantined."""

from dataclasses import replace
from datetime import datetime

from application.policy.canary_guard import CanaryFound
from application.runs.execution.ask_model import Answer
from application.runs.execution.reply_steps import reply_message
from application.runs.execution.run_session import RunSession
from domain.ids import tool_call_id
from domain.json_value import JsonObject
from domain.runs.audit_trail import session_halted_audit, tool_call_audit
from domain.runs.closing import closing_step
from domain.runs.events import RunEventType
from domain.runs.ledger import ToolCall, ToolCallState
from domain.runs.run import RunStatus
from domain.runs.run_events import message_completed, run_halted, tool_settled
from domain.runs.step import Step
from domain.threads.message import Role, ToolUse
from domain.threads.thread import Quarantine
from domain.tools.result import ToolResult

REASON = "canary"
_NOT_SENT = "The run was halted before this call was sent."
_UNFINISHED = "The run was halted before this call was finished."


def canary_step(session: RunSession, found: CanaryFound, *, at: datetime) -> Step:
    """One step with: the reply and its answered calls, or the outcome with the token and answers to
    the other calls; the end of the run; the quarantine; the audit."""
    if found.reply is not None and found.message_id is not None:
        return _halted_at_reply(session, found, Answer(reply=found.reply, message_id=found.message_id), at=at)
    return _halted_at_call(session, found, at=at)


def _halted_at_reply(session: RunSession, found: CanaryFound, answer: Answer, *, at: datetime) -> Step:
    turn = session.run.usage.turns + 1
    uses = tuple(
        ToolUse(
            id=tool_call_id(session.run.id, turn, index),
            name=call.name,
            params=call.arguments,
            malformed=call.malformed,
        )
        for index, call in enumerate(answer.reply.calls)
    )
    refused = ToolResult.blocked("run_halted", _NOT_SENT)
    calls = tuple(
        _unsent(session, use, turn=turn, index=index, at=at).settled(refused, at=at) for index, use in enumerate(uses)
    )
    message = reply_message(session, answer, uses, at=at)
    spent = answer.spending(session, at=at)
    run = session.run.advanced(usage=session.run.usage.after_turn(answer.reply.usage))
    ended = run.ended(RunStatus.HALTED, at=at, output=answer.reply.text or None)
    closing = closing_step(ended, calls, result=refused, at=at)
    culprit = None if found.call_index is None else uses[found.call_index].id
    step = replace(
        closing,
        events=(
            message_completed(message, spent),
            *(tool_settled(call, server=None) for call in calls),
            *closing.events,
        ),
        messages=(message, *closing.messages),
        recorded=calls,
        audit=(
            *(tool_call_audit(ended, call) for call in calls),
            *closing.audit,
        ),
        spent=(spent,),
    )
    return _halted(step, found.canary_id, culprit, at=at)


def _unsent(session: RunSession, use: ToolUse, *, turn: int, index: int, at: datetime) -> ToolCall:
    return ToolCall(
        id=use.id,
        run_id=session.run.id,
        turn=turn,
        index=index,
        name=use.name,
        type=None,
        server_id=None,
        params=use.params,
        repeatable=False,
        state=ToolCallState.RECORDED,
        recorded_at=at,
    )


def _halted_at_call(session: RunSession, found: CanaryFound, *, at: datetime) -> Step:
    own = (message for message in reversed(session.transcript) if message.run_id == session.run.id)
    said = next((message.text for message in own if message.role is Role.ASSISTANT and message.text), None)
    ended = session.run.ended(RunStatus.HALTED, at=at, output=said)
    unfinished = ToolResult.failed("run_halted", _UNFINISHED)
    known = () if found.settled is None else (found.settled,)
    step = closing_step(ended, tuple(session.open_calls.values()), result=unfinished, at=at, known=known)
    return _halted(step, found.canary_id, found.tool_call_id, at=at)


def _halted(step: Step, canary_id: str, culprit: str | None, *, at: datetime) -> Step:
    details: JsonObject = {"reason": REASON, "canary_id": canary_id}
    if culprit is not None:
        details["tool_call_id"] = culprit
    events = [event for event in step.events if event.type is not RunEventType.RUN_HALTED]
    return replace(
        step,
        events=(*events, run_halted(reason=REASON, canary_id=canary_id, tool_call_id=culprit, at=at)),
        audit=(*step.audit, session_halted_audit(step.run, details, at=at)),
        quarantine=Quarantine(run_id=step.run.id, canary_id=canary_id, at=at),
    )
