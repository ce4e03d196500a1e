"""Stores a model's reply with the decisions about its calls, before any call is executed."""

import logging
from collections import Counter
from datetime import datetime

from application.runs.execution.ask_model import Answer
from application.runs.execution.check_output import CheckOutput
from application.runs.execution.recheck_calls import Decisions, asks_for_approval, awaiting_approval
from application.runs.execution.reply_steps import answered_step, paused_step, repair_step, reply_message, whole_text
from application.runs.execution.run_session import RunSession
from application.runs.ports import RunReader
from application.system.ports import Clock
from application.tools import failure_text
from application.tools.check_tool_call import CheckToolCall
from application.tools.toolset import Toolset
from domain.ids import tool_call_id
from domain.runs.audit_trail import tool_call_audit
from domain.runs.events import NewEvent
from domain.runs.finish_reason import FinishReason
from domain.runs.halting import halted_end, halting_call
from domain.runs.ledger import ToolCall, ToolCallState
from domain.runs.limits import IncompleteReason
from domain.runs.run_events import message_completed, tool_settled, tool_started
from domain.runs.step import Step
from domain.runs.turn_end import turn_end
from domain.threads.message import Message, ToolUse
from domain.tools.meta_tools import called_name
from domain.tools.result import ToolOutcome

logger = logging.getLogger(__name__)


class RecordReply:
    """Rules:
    - A complete reply without calls completes the run.
    - With an output schema, the reply must match it. One that does not is stored with a request to
      repair it. The second one ends the run `failed` with `output_invalid`; a retry of the run
      begins with its request.
    - A reply without calls that was cut at the output limit ends the run `incomplete` with
      `max_output_tokens`.
    - A filtered or refused reply, or one that filled the context window, ends the run
      `incomplete` with that reason. Its calls are dropped.
    - Calls of a cut reply are treated as in any reply, except the incomplete one: it is settled
      with a text about the cut.
    - A paused reply without calls is stored, and the next turn asks the model to continue it.
    - Calls beyond `max_calls_per_turn` are settled with a text.
    - A call that is not allowed (no such tool, invalid arguments, a limit, policy) is settled
      with a text for the model; so is a tool search.
    - A call for which policy halts the run ends it; none of the other calls is executed.
    - A call may require approval; displayable calls wait for the client; all others are recorded
      and executed afterwards.
    - All of this is one step.
    """

    def __init__(self, *, check: CheckToolCall, check_output: CheckOutput, runs: RunReader, clock: Clock) -> None:
        self._check = check
        self._check_output = check_output
        self._runs = runs
        self._clock = clock

    async def execute(
        self, session: RunSession, toolset: Toolset, answer: Answer, *, limit: IncompleteReason | None
    ) -> IncompleteReason | None:
        """Store the reply. `limit` forbids all of its calls. Returns the limit that forbade any of
        them. Raises LeaseLost."""
        now = self._clock.now()
        reason = answer.reply.finish_reason
        if reason is FinishReason.PAUSED and not answer.reply.calls:
            await session.advance(lambda: paused_step(session, answer, at=now))
            return limit
        if reason.forbids_calls or not answer.reply.calls:
            return await self._answered(session, answer, limit=limit)
        uses = self._uses(session, answer)
        made = await self._calls_made(session, toolset, uses)
        was_cut = reason is FinishReason.LENGTH
        decisions: Decisions = {}
        calls, reached = self._decide(
            session, toolset, uses, limit, now, decisions=decisions, made=made, was_cut=was_cut
        )
        blocked = halting_call(calls, decisions)
        if blocked is not None:
            calls = [_left_out(call, blocked, now) for call in calls]
        message = reply_message(session, answer, uses, at=now)
        await session.advance(
            lambda: self._step(session, toolset, answer, decisions, message=message, calls=calls, blocked=blocked)
        )
        return reached

    async def close(self, session: RunSession, answer: Answer, *, limit: IncompleteReason) -> None:
        """Store the closing turn's reply and end the run `incomplete` for the limit. A reply that
        repairs the output ends it by its own result. Raises LeaseLost, CanaryFound."""
        now = self._clock.now()
        reason = answer.reply.finish_reason.incomplete_reason if session.repairs_output else limit
        output = await self._check_output.execute(session, answer, whole_text(session, answer))
        await session.advance(lambda: answered_step(session, answer, at=now, limit=reason, output=output))

    async def _answered(
        self, session: RunSession, answer: Answer, *, limit: IncompleteReason | None
    ) -> IncompleteReason | None:
        """Store a reply without calls. Returns `limit` if the model is asked to repair it."""
        now = self._clock.now()
        reason = answer.reply.finish_reason.incomplete_reason
        output = await self._check_output.execute(session, answer, whole_text(session, answer))
        schema, faults = session.output_schema, () if output is None else output.faults
        if schema is not None and faults and reason is None and not session.has_repaired_output:
            await session.advance(lambda: repair_step(session, answer, schema, faults, at=now))
            return limit
        await session.advance(lambda: answered_step(session, answer, at=now, limit=reason, output=output))
        return None

    def _uses(self, session: RunSession, answer: Answer) -> tuple[ToolUse, ...]:
        turn = session.run.usage.turns + 1
        return tuple(
            ToolUse(
                id=tool_call_id(session.run.id, turn, index),
                name=call.name,
                params=call.arguments,
                malformed=call.malformed,
            )
            for index, call in enumerate(answer.reply.calls)
        )

    async def _calls_made(self, session: RunSession, toolset: Toolset, uses: tuple[ToolUse, ...]) -> Counter[str]:
        """The run's calls by tool, read from the ledger when policy first needs them and counted
        afterwards."""
        if session.calls_made is not None:
            return session.calls_made
        if all(toolset.policy_of(called_name(use)).max_calls is None for use in uses):
            return Counter()
        ledger = await self._runs.tool_calls(session.run.organization_id, session.run.id)
        session.calls_made = Counter(call.name for call in ledger if _was_made(call))
        return session.calls_made

    def _decide(
        self,
        session: RunSession,
        toolset: Toolset,
        uses: tuple[ToolUse, ...],
        limit: IncompleteReason | None,
        now: datetime,
        *,
        decisions: Decisions,
        made: Counter[str],
        was_cut: bool,
    ) -> tuple[list[ToolCall], IncompleteReason | None]:
        """The calls, settled if they are not executed, and the limit that was reached. Adds to
        `decisions`."""
        left, of_turn = session.limits.tool_calls_left(session.run.usage), 0
        calls: list[ToolCall] = []
        for index, use in enumerate(uses):
            checked = self._check.check(use, toolset, made)
            refusal = checked.answer
            if was_cut and refusal is not None and refusal.error_code == failure_text.MALFORMED:
                refusal = failure_text.cut_arguments()
            if refusal is None and of_turn >= session.limits.max_calls_per_turn:
                refusal = failure_text.too_many_calls(session.limits.max_calls_per_turn)
            if refusal is None and limit is None and left is not None and left <= 0:
                limit = IncompleteReason.MAX_TOOL_CALLS
            if refusal is None and limit is not None:
                refusal = failure_text.limit_reached(limit.value)
            if refusal is None:
                made[checked.name] += 1
                of_turn += 1
                left = None if left is None else left - 1
            tool = checked.tool
            waits = tool is not None and tool.is_displayable
            call = ToolCall(
                id=use.id,
                run_id=session.run.id,
                turn=session.run.usage.turns + 1,
                index=index,
                name=checked.name,
                type=None if tool is None else tool.type,
                server_id=None if tool is None or tool.mcp is None else tool.mcp.server_id,
                params=checked.params,
                called_as=use.name if use.name != checked.name else None,
                repeatable=tool is not None and tool.repeatable,
                state=ToolCallState.AWAITING_CLIENT if waits else ToolCallState.RECORDED,
                recorded_at=now,
            )
            wanted = asks_for_approval(checked)
            if wanted is not None:
                call = awaiting_approval(call, wanted, checked.tool, agent_version=session.agent.version)
            if refusal is not None:
                call = call.settled(refusal, at=now)
            calls.append(call)
            decisions[call.id] = checked.decision
        return calls, limit

    def _step(
        self,
        session: RunSession,
        toolset: Toolset,
        answer: Answer,
        decisions: Decisions,
        *,
        message: Message,
        calls: list[ToolCall],
        blocked: ToolCall | None,
    ) -> Step:
        now, settled = message.created_at, [call for call in calls if call.state is ToolCallState.SETTLED]
        executing = len(calls) - len(settled)
        usage = session.run.usage.after_turn(answer.reply.usage, tool_calls=executing)
        run = session.run.advanced(usage=usage)
        recorded = tuple(calls)
        if blocked is None:
            end = turn_end(run, recorded, [*session.transcript[-8:], message], at=now)
        else:
            end = halted_end(run, recorded, blocked, said=answer.reply.text or None, at=now)
        spent = answer.spending(session, at=now)
        events: list[NewEvent] = [message_completed(message, spent)]
        for call in calls:
            if call.state is ToolCallState.RECORDED:
                events.append(tool_started(call))
            elif call.state is ToolCallState.SETTLED:
                server = toolset.server_slug_of(call.name)
                events.append(tool_settled(call, server=server, decision=decisions[call.id]))
        audit = tuple([tool_call_audit(run, call, decision=decisions[call.id]) for call in settled])
        if end is None:
            return Step(
                run=run, events=tuple(events), messages=(message,), recorded=recorded, audit=audit, spent=(spent,)
            )
        return Step(
            run=end.run,
            events=(*events, *end.events),
            messages=(message, *end.messages),
            recorded=recorded,
            approvals=end.approvals,
            audit=(*audit, *end.audit),
            spent=(spent,),
        )


def _left_out(call: ToolCall, blocked: ToolCall, now: datetime) -> ToolCall:
    """Refuse a call beside the one that halts the run."""
    return call if call.state is ToolCallState.SETTLED else call.settled(failure_text.halted(blocked.name), at=now)


def _was_made(call: ToolCall) -> bool:
    """Whether the call counts for `max_calls`: it was executed, or will be."""
    result = call.result
    if result is None:
        return True
    return result.outcome is not ToolOutcome.BLOCKED and result.error_code not in failure_text.NEVER_MADE
