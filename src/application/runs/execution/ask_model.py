"""One model call of a run: the request, published deltas, price and trace."""

import logging
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from datetime import datetime

from application.models.ports import (
    FallbackModels,
    ModelError,
    ModelReply,
    ModelRequest,
    ModelRetrying,
    PriceTable,
    ReasoningDelta,
    RetryLimits,
    TextDelta,
    ToolChoice,
)
from application.policy.canary_guard import CanaryFound, CleanReply
from application.runs.execution.interruption import Interrupted, TimeUp
from application.runs.execution.prepare_prompt import Prompt
from application.runs.execution.provider_error_text import masked
from application.runs.execution.published_reply import PublishedReply
from application.runs.execution.run_session import RunSession
from application.system.ports import Clock
from application.tracing.ports import GenerationRecord, Tracer
from domain.ids import MessageId
from domain.runs.finish_reason import FinishReason
from domain.runs.model_settings import NO_SETTINGS, ModelSettings
from domain.runs.provider_error import ProviderError
from domain.runs.run_events import message_discarded
from domain.runs.usage import ModelSpending, ModelUsage
from domain.threads.message import Message

CLOSING_OUTPUT_TOKENS = 1_024
"""Token limit of the closing turn's answer if tokens or cost are limited. The same amount is
reserved for it."""
BUDGETED_OUTPUT_TOKENS = 8_192
"""Token limit of a turn's answer under a daily budget, because the turn must not exceed its
reservation."""
MAX_CALLS_OF_REPLY = 4_096
"""A reply with more tool calls is invalid: each call has an entry in the ledger, even if it is not
executed."""
_TOO_MANY_CALLS = f"The model requested more than {MAX_CALLS_OF_REPLY} tool calls in one reply."

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A complete, priced reply, and the message id of its deltas."""

    reply: ModelReply
    message_id: MessageId

    def spending(self, session: RunSession, *, at: datetime) -> ModelSpending:
        """The reply's addition to the sums of the day."""
        return ModelSpending(
            model=self.reply.model, usage=self.reply.usage, at=at, still_reserved_usd=session.kept_reserve_usd
        )


class AskModel:
    """Rules:
    - No transaction is open during a model call.
    - Text of a failed attempt is discarded with `message.discarded`.
    - A wait for the model ends at once when the run is stopped or its time is up.
    - An attempt that is interrupted after the start of its reply counts with an estimate:
      providers report usage only at the end. So does a reply whose provider reports no usage.
    - Reasoning is published as `reasoning.delta` if the agent wants summaries. It is no part of the
      reply.
    - Provider errors are logged, and the last one is passed on: without canary tokens, cut at 2
      KiB.
    """

    def __init__(self, *, models: FallbackModels, prices: PriceTable, tracer: Tracer, clock: Clock) -> None:
        self._models = models
        self._prices = prices
        self._tracer = tracer
        self._clock = clock

    async def execute(
        self, session: RunSession, prompt: Prompt, messages: tuple[Message, ...], *, closing: bool = False
    ) -> Answer:
        """Raises ModelError, Interrupted, CanaryFound, and TimeUp when the run's time is up."""
        request = self._request(session, prompt, messages, closing=closing)
        timeout_s = session.time_left_s if closing else session.work_time_left_s
        published = PublishedReply(session, self._clock, request, part="closing" if closing else "reply")
        began = self._clock.now()
        try:
            with session.stop.interruptible(max(timeout_s, 0)):
                checked = await self._read(session, request, prompt, published)
        except (ModelError, Interrupted, TimeUp) as error:
            code = _error_code(error)
            said = None
            if isinstance(error, ModelError) and error.provider_error is not None:
                said = error.provider_error = masked(error.provider_error, session.guard)
                _log_refusal(session, request, model=published.model, code=code, said=said)
            published.discard(code, self._abandon(session, prompt, published))
            self._trace(session, request, None, code, began, provider_error=said)
            raise
        reply = self._priced(_counted(checked.reply, session, prompt, streamed_bytes=published.streamed_bytes))
        if not reply.usage.estimated:
            session.window.correct(fixed_bytes=prompt.fixed_bytes, reported_tokens=reply.usage.input_tokens)
        self._trace(session, request, reply, None if checked.found is None else "canary", began)
        if checked.found is not None:
            raise CanaryFound(
                checked.found, reply=reply, message_id=published.message_id, call_index=checked.call_index
            )
        return Answer(reply=reply, message_id=published.message_id)

    def abandon(self, session: RunSession, answer: Answer, stopped: Interrupted) -> None:
        """Count a reply that will not be stored, and discard its published text."""
        spending = answer.spending(session, at=self._clock.now())
        session.abandoned = (*session.abandoned, spending)
        if session.unfinished is not None:
            reason = _error_code(stopped)
            session.buffer.add(message_discarded(session.unfinished, reason=reason, at=spending.at, spent=spending))
            session.unfinished = None

    def _request(
        self, session: RunSession, prompt: Prompt, messages: tuple[Message, ...], *, closing: bool
    ) -> ModelRequest:
        limits = session.limits
        budgeted = session.kept_reserve_usd is not None
        capped = closing and (budgeted or limits.max_tokens is not None or limits.max_cost_usd is not None)
        settings = _settings(session)
        cap = CLOSING_OUTPUT_TOKENS if capped else BUDGETED_OUTPUT_TOKENS if budgeted and not closing else None
        return ModelRequest(
            organization_id=session.run.organization_id,
            run_id=session.run.id,
            turn=session.run.usage.turns + 1,
            model=session.model,
            system=prompt.system,
            messages=messages,
            tools=prompt.toolset.shown,
            tool_choice=ToolChoice.NONE if closing else ToolChoice.AUTO,
            max_output_tokens=cap if settings is None else _fewer(cap, settings.max_output_tokens),
            settings=settings,
            retries=RetryLimits(attempts=limits.model_attempts, total_s=limits.model_retry_s),
            reasoning_summary=session.agent.config.reasoning_summary,
            output_schema=session.output_schema,
        )

    async def _read(
        self, session: RunSession, request: ModelRequest, prompt: Prompt, published: PublishedReply
    ) -> CleanReply:
        fallbacks = tuple(model for model in session.agent.config.fallback_models if model != request.model)
        reply: ModelReply | None = None
        # Read to the end of the stream: otherwise the garbage collector would close it.
        stream = self._models.stream(request, fallbacks)
        async for event in stream:
            match event:
                case TextDelta() | ReasoningDelta():
                    found = published.delta(event)
                    if found is not None:
                        if isinstance(stream, AsyncGenerator):
                            await stream.aclose()  # ends the request; the rest is discarded
                        return _cut_short(session, request, prompt, published, found)
                case ModelRetrying():
                    if event.provider_error is not None:
                        said = masked(event.provider_error, session.guard)
                        _log_refusal(session, request, model=published.model, code=event.reason, said=said)
                    published.retrying(event, self._abandon(session, prompt, published))
                case ModelReply():
                    reply = event
        reply = _acceptable(reply)
        published.finish()
        return session.guard.reply(reply)

    def _abandon(self, session: RunSession, prompt: Prompt, published: PublishedReply) -> ModelSpending | None:
        """Count an interrupted attempt if its reply had begun."""
        if not published.streamed_bytes:
            return None
        usage = ModelUsage(
            input_tokens=session.window.estimate(fixed_bytes=prompt.fixed_bytes),
            output_tokens=session.window.tokens_of(published.streamed_bytes),
            estimated=True,
        )
        usage = replace(usage, cost_usd=self._prices.cost_usd(published.model, usage))
        spending = ModelSpending(model=published.model, usage=usage, at=self._clock.now())
        session.abandoned = (*session.abandoned, spending)
        return spending

    def _priced(self, reply: ModelReply) -> ModelReply:
        if reply.usage.cost_usd is not None:
            return reply
        cost_usd = self._prices.cost_usd(reply.model, reply.usage)
        return reply if cost_usd is None else replace(reply, usage=replace(reply.usage, cost_usd=cost_usd))

    def _trace(
        self,
        session: RunSession,
        request: ModelRequest,
        reply: ModelReply | None,
        error_code: str | None,
        began: datetime,
        *,
        provider_error: ProviderError | None = None,
    ) -> None:
        self._tracer.generation(
            GenerationRecord(
                run=session.run,
                agent=session.agent,
                turn=request.turn,
                request=session.guard.traced(request),
                reply=reply,
                error_code=error_code,
                provider_error=provider_error,
                started_at=began,
                finished_at=self._clock.now(),
            )
        )


def _settings(session: RunSession) -> ModelSettings | None:
    of_agent, of_run = session.agent.config.model_settings, session.run.model_settings
    return None if of_agent is NO_SETTINGS and of_run is NO_SETTINGS else of_agent.changed_by(of_run)


def _fewer(one: int | None, other: int | None) -> int | None:
    return one if other is None else other if one is None else min(one, other)


def _acceptable(reply: ModelReply | None) -> ModelReply:
    if reply is None:
        raise ModelError("model_invalid_reply", "The model's stream ended without a reply.", retryable=False)
    if len(reply.calls) > MAX_CALLS_OF_REPLY:
        raise ModelError("model_invalid_reply", _TOO_MANY_CALLS, retryable=False)
    return reply


def _counted(reply: ModelReply, session: RunSession, prompt: Prompt, *, streamed_bytes: int) -> ModelReply:
    """The reply with estimated tokens if the provider reported none."""
    usage = reply.usage
    if not usage.estimated or usage.input_tokens or usage.output_tokens:
        return reply
    in_calls = sum(len(call.name) + len(call.malformed or str(call.arguments)) for call in reply.calls)
    estimate = replace(
        usage,
        input_tokens=session.window.estimate(fixed_bytes=prompt.fixed_bytes),
        output_tokens=session.window.tokens_of(streamed_bytes + in_calls),
    )
    return replace(reply, usage=estimate)


def _error_code(error: ModelError | Interrupted | TimeUp) -> str:
    match error:
        case ModelError():
            return error.code
        case Interrupted():
            return f"run_{error.reason.value}"
        case TimeUp():
            return "run_timeout"


def _log_refusal(session: RunSession, request: ModelRequest, *, model: str, code: str, said: ProviderError) -> None:
    run = session.run
    logger.warning(
        "model provider answered with an error",
        extra={
            "run_id": run.id,
            "thread_id": run.thread_id,
            "organization_id": run.organization_id,
            "agent_id": run.agent_id,
            "turn": request.turn,
            "model": model,
            "code": code,
            "http_status": said.status,
            "provider_code": said.code,
            "provider_message": said.message,
        },
    )


def _cut_short(
    session: RunSession, request: ModelRequest, prompt: Prompt, published: PublishedReply, found: str
) -> CleanReply:
    """The reply up to the canary token. Its usage is estimated: providers report it only at the
    end."""
    usage = ModelUsage(
        input_tokens=session.window.estimate(fixed_bytes=prompt.fixed_bytes),
        output_tokens=session.window.tokens_of(published.streamed_bytes),
        estimated=True,
    )
    reply = ModelReply(
        model=request.model, text=published.said, calls=(), usage=usage, finish_reason=FinishReason.CANARY
    )
    return CleanReply(reply=reply, found=found)
