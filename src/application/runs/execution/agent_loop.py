"""The agent loop: ask the model, store its reply, execute its calls, until it answers, waits, or
reaches a limit."""

import logging
from decimal import Decimal

from application.models.ports import ModelError, PriceTable
from application.policy.canary_guard import CanaryFound
from application.runs.execution.ask_model import CLOSING_OUTPUT_TOKENS, AskModel
from application.runs.execution.call_tools import CallTools
from application.runs.execution.canary_halt import canary_step
from application.runs.execution.daily_budget import DailyBudgets
from application.runs.execution.interruption import Interrupted, TimeUp
from application.runs.execution.prepare_prompt import AgentDisabled, PreparePrompt, Prompt
from application.runs.execution.recheck_calls import RecheckCalls
from application.runs.execution.record_reply import RecordReply
from application.runs.execution.run_session import RunSession
from application.system.ports import Clock
from domain.runs.closing import closing_step
from domain.runs.limits import IncompleteReason, Reserve
from domain.runs.run import RunError, RunStatus
from domain.runs.step import Step
from domain.runs.usage import ModelUsage
from domain.threads.message import Message, Role
from domain.tools.result import ToolResult

logger = logging.getLogger(__name__)

_DISABLED = "The agent of this run is disabled."
_UNLIMITED = Reserve()
_UNFINISHED = "The run reached its limit {limit} before this call was finished."


class AgentLoop:
    """Rules:
    - Results of open calls come before the next model call.
    - When a limit of tokens, cost or time is reached, open calls get a failure as result. The calls
      of the last of `max_turns` turns are executed.
    - When a limit forbids another ordinary turn, one closing turn follows with the same tools and
      tool choice none, if it fits into its reserve. The run ends `incomplete`.
    - A reply is stored and counted, also when the time is up before its calls are decided. If the
      run is stopped then, it counts as interrupted.
    - The run of a disabled agent ends `failed` before its next tool or model call.
    - A canary token in replies or results ends the run `halted`.
    """

    def __init__(
        self,
        *,
        prepare_prompt: PreparePrompt,
        ask_model: AskModel,
        record_reply: RecordReply,
        recheck_calls: RecheckCalls,
        call_tools: CallTools,
        budgets: DailyBudgets,
        prices: PriceTable,
        clock: Clock,
    ) -> None:
        self._prepare_prompt = prepare_prompt
        self._ask_model = ask_model
        self._record_reply = record_reply
        self._recheck_calls = recheck_calls
        self._call_tools = call_tools
        self._budgets = budgets
        self._prices = prices
        self._clock = clock

    async def run(self, session: RunSession) -> None:
        """Advance the run until it has ended or waits. Raises Interrupted, LeaseLost, and
        ModelError if no model of the agent answers."""
        session.stop.check()
        limit: IncompleteReason | None = None
        try:
            prompt = await self._prepare_prompt.execute(session)
            if session.open_calls:
                await self._recheck_calls.execute(session, prompt.toolset)
            if session.open_calls and session.run.status is RunStatus.IN_PROGRESS:
                await self._call_tools.execute(session, prompt.toolset)
            while session.run.status is RunStatus.IN_PROGRESS:
                session.stop.check()
                prompt = await self._prepare_prompt.execute(session, prompt)
                messages = session.window.fit(
                    session.transcript, fixed_bytes=prompt.fixed_bytes, budget_tokens=session.limits.context_tokens
                )
                limit = limit or self._limit_of_turn(session, prompt)
                if limit is None and not await self._budgets.admit_turn(session, input_tokens=_tokens(session, prompt)):
                    limit = IncompleteReason.DAILY_BUDGET
                if limit is not None:
                    await self._close(session, prompt, messages, limit)
                    return
                limit = await self._turn(session, prompt, messages)
        except TimeUp:
            await self._end_incomplete(session, IncompleteReason.TIMEOUT)
        except AgentDisabled:
            await self._end_disabled(session)
        except CanaryFound as found:
            await self._halt(session, found)

    async def _turn(
        self, session: RunSession, prompt: Prompt, messages: tuple[Message, ...]
    ) -> IncompleteReason | None:
        """One ordinary turn. Returns the limit that makes it the last one."""
        try:
            answer = await self._ask_model.execute(session, prompt, messages)
        except TimeUp:
            return IncompleteReason.TIMEOUT
        limit = self._limit(session, prompt, spent=answer.reply.usage)
        toolset = prompt.toolset
        try:
            if answer.reply.calls:
                toolset = await self._prepare_prompt.toolset_of_reply(session, prompt)
        except TimeUp:
            limit = limit or IncompleteReason.TIMEOUT  # forbids all calls, whatever decides about them
        except Interrupted as stopped:
            self._ask_model.abandon(session, answer, stopped)
            raise
        limit = await self._record_reply.execute(session, toolset, answer, limit=limit)
        if session.open_calls and session.run.status is RunStatus.IN_PROGRESS:
            await self._call_tools.execute(session, toolset)
        return limit

    async def _close(
        self, session: RunSession, prompt: Prompt, messages: tuple[Message, ...], limit: IncompleteReason
    ) -> None:
        """The closing turn, if it fits. The work so far is stored in both cases."""
        reserve = self._reserve(session, prompt)
        fits = session.limits.allow_closing_turn(session.usage, active_s=session.active_s, reserve=reserve)
        if fits and await self._budgets.admit_closing(session, input_tokens=_tokens(session, prompt)):
            try:
                answer = await self._ask_model.execute(session, prompt, messages, closing=True)
            except (ModelError, TimeUp):
                logger.warning("closing turn failed", extra={"run_id": session.run.id, "limit": limit.value})
            else:
                await self._record_reply.close(session, answer, limit=limit)
                return
        await self._end_incomplete(session, limit)

    async def _end_incomplete(self, session: RunSession, limit: IncompleteReason) -> None:
        """End with the run's last reply. Calls are open if the time was up first."""
        now = self._clock.now()
        own = (message for message in reversed(session.transcript) if message.run_id == session.run.id)
        said = next((message.text for message in own if message.role is Role.ASSISTANT and message.text), None)
        unfinished = ToolResult.failed("limit_reached", _UNFINISHED.format(limit=limit.value))

        def build() -> Step:
            ended = session.run.ended(RunStatus.INCOMPLETE, at=now, output=said, incomplete_reason=limit)
            return closing_step(ended, tuple(session.open_calls.values()), result=unfinished, at=now)

        await session.advance(build)

    async def _halt(self, session: RunSession, found: CanaryFound) -> None:
        now = self._clock.now()
        ids = {"run_id": session.run.id, "thread_id": session.run.thread_id, "agent_id": session.agent.id}
        logger.warning("run halted by a canary token", extra={**ids, "canary_id": found.canary_id})
        await session.advance(lambda: canary_step(session, found, at=now))

    async def _end_disabled(self, session: RunSession) -> None:
        now = self._clock.now()
        logger.info("run ended: its agent is disabled", extra={"run_id": session.run.id, "agent_id": session.agent.id})

        def build() -> Step:
            error = RunError(code="agent_disabled", detail=_DISABLED)
            ended = session.run.ended(RunStatus.FAILED, at=now, error=error)
            result = ToolResult.failed("agent_disabled", _DISABLED)
            return closing_step(ended, tuple(session.open_calls.values()), result=result, at=now)

        await session.advance(build)

    def _limit_of_turn(self, session: RunSession, prompt: Prompt) -> IncompleteReason | None:
        """The limit that forbids another ordinary turn."""
        if not session.limits.has_turns_left(session.usage):
            return IncompleteReason.MAX_TURNS
        return self._limit(session, prompt)

    def _limit(
        self, session: RunSession, prompt: Prompt, *, spent: ModelUsage | None = None
    ) -> IncompleteReason | None:
        reserve = self._reserve(session, prompt)
        usage = session.usage
        if spent is not None and reserve is not _UNLIMITED:
            usage = usage.after_turn(spent)
        return session.limits.reached_by(usage, active_s=session.active_s, reserve=reserve)

    def _reserve(self, session: RunSession, prompt: Prompt) -> Reserve:
        """Use of a model call over the present context; nothing without a limit on tokens or
        cost."""
        if session.limits.max_tokens is None and session.limits.max_cost_usd is None:
            return _UNLIMITED
        tokens = _tokens(session, prompt)
        cost = None
        if session.limits.max_cost_usd is not None:
            call = ModelUsage(input_tokens=tokens, output_tokens=CLOSING_OUTPUT_TOKENS)
            cost = self._prices.cost_usd(session.model, call)
        return Reserve(tokens=tokens + CLOSING_OUTPUT_TOKENS, cost_usd=cost or Decimal(0))


def _tokens(session: RunSession, prompt: Prompt) -> int:
    """Tokens of the present context."""
    return session.window.estimate(fixed_bytes=prompt.fixed_bytes)
