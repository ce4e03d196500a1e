"""The message of a model's reply, and the steps of a reply without calls."""

import logging
from datetime import datetime

from application.runs.execution.ask_model import Answer
from application.runs.execution.run_session import RunSession
from domain.json_value import JsonObject
from domain.runs.audit_trail import run_ended_audit
from domain.runs.limits import IncompleteReason
from domain.runs.output import CheckedOutput, output_invalid, repair_request
from domain.runs.run import RunStatus
from domain.runs.run_events import message_completed, run_ended, turn_started
from domain.runs.step import Step
from domain.threads.message import Content, Message, Role, TextContent, ToolUse
from domain.threads.provider_items import ProviderItems

logger = logging.getLogger(__name__)


def reply_message(session: RunSession, answer: Answer, uses: tuple[ToolUse, ...], *, at: datetime) -> Message:
    """The assistant's message: its text, if any, then its calls. Without the provider's items if
    calls were dropped or the items are too large."""
    text: tuple[Content, ...] = (TextContent(text=answer.reply.text),) if answer.reply.text or not uses else ()
    return Message(
        id=answer.message_id,
        thread_id=session.run.thread_id,
        run_id=session.run.id,
        role=Role.ASSISTANT,
        content=(*text, *uses),
        created_at=at,
        items=_stored_items(session, answer, uses),
    )


def _stored_items(session: RunSession, answer: Answer, uses: tuple[ToolUse, ...]) -> ProviderItems | None:
    items = answer.reply.items
    if items is None or len(uses) != len(answer.reply.calls):
        return None
    if items.is_too_large:
        ids = {"run_id": session.run.id, "thread_id": session.run.thread_id, "message_id": answer.message_id}
        logger.warning("provider items too large; the message is sent neutrally", extra={**ids, "bytes": items.size})
        return None
    return items


def paused_step(session: RunSession, answer: Answer, *, at: datetime) -> Step:
    """An unfinished reply, and the turn that continues it."""
    message = reply_message(session, answer, (), at=at)
    spent = answer.spending(session, at=at)
    run = session.run.advanced(usage=session.run.usage.after_turn(answer.reply.usage))
    events = (message_completed(message, spent), turn_started(run.usage.turns + 1, at=at))
    return Step(run=run, messages=(message,), events=events, spent=(spent,))


def repair_step(
    session: RunSession, answer: Answer, schema: JsonObject, faults: tuple[str, ...], *, at: datetime
) -> Step:
    """An answer that does not match the output schema, and the turn that repairs it."""
    message = reply_message(session, answer, (), at=at)
    spent = answer.spending(session, at=at)
    run = session.run.advanced(usage=session.run.usage.after_turn(answer.reply.usage))
    request = repair_request(run, schema, faults, at=at)
    events = (
        message_completed(message, spent),
        message_completed(request),
        turn_started(run.usage.turns + 1, at=at),
    )
    return Step(run=run, messages=(message, request), events=events, spent=(spent,))


def answered_step(
    session: RunSession,
    answer: Answer,
    *,
    at: datetime,
    limit: IncompleteReason | None,
    output: CheckedOutput | None = None,
) -> Step:
    """The last step of a run with its answer: completed, incomplete for a `limit`, or failed
    without a matching `output`. Calls of the reply are dropped. The text starts with the paused
    replies before this one."""
    message = reply_message(session, answer, (), at=at)
    spent = answer.spending(session, at=at)
    run = session.run.advanced(usage=session.run.usage.after_turn(answer.reply.usage))
    error, request = None, None
    schema, faults = session.output_schema, () if output is None else output.faults
    if limit is None and faults and schema is not None:
        error, request = output_invalid(faults), repair_request(run, schema, faults, at=at)
    ended = run.ended(
        RunStatus.INCOMPLETE if limit is not None else RunStatus.COMPLETED if error is None else RunStatus.FAILED,
        at=at,
        output=whole_text(session, answer),
        output_json=None if output is None else output.value,
        error=error,
        incomplete_reason=limit,
    )
    requests = () if request is None else (request,)
    return Step(
        run=ended,
        events=(message_completed(message, spent), *map(message_completed, requests), run_ended(ended, at=at)),
        messages=(message, *requests),
        audit=(run_ended_audit(ended, at=at),),
        spent=(spent,),
    )


def whole_text(session: RunSession, answer: Answer) -> str:
    """The text of the reply, after that of the paused replies just before, which no other message
    follows."""
    texts: list[str] = []
    for message in reversed(session.transcript):
        if message.run_id != session.run.id or message.role is not Role.ASSISTANT or message.tool_uses:
            break
        texts.append(message.text)
    return "".join([*reversed(texts), answer.reply.text])
