"""One model call of a run: the request, published deltas, price and trace."""

import logging
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

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
from application.runs.execution.run_session import RunSession
from application.system.ports import Clock
from application.tracing.ports import GenerationRecord, Tracer
from domain.ids import MessageId, message_id
from domain.json_value import JsonObject
from domain.policy.canary import mark
from domain.policy.canary_scan import CanaryStream
from domain.runs.events import NewEvent, RunEventType
from domain.runs.finish_reason import FinishReason
from domain.runs.model_settings import NO_SETTINGS, ModelSettings
from domain.runs.provider_error import ProviderError
from domain.runs.run_events import message_discarded
from domain.runs.usage import ModelSpending, ModelUsage
from domain.threads.message import Message

CLOSING_OUTPUT_TOKENS = 1_024
"""Token limit of the closing turn's answer if tokens or cost are limited. The same amount is reserved for it."""
BUDGETED_OUTPUT_TOKENS = 8_192
"""Token limit of a turn's answer under a daily budget, because the turn must not exceed its reservation."""
MAX_CALLS_OF_REPLY = 4_096
"""A reply with more tool calls is invalid: each call has an entry in the ledger, even if it is not executed."""
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
    - Reasoning is published as `reasoning.delta` if the agent wants summaries. It is no part of the reply.
    - Provider errors are logged, and the last one is passed on: without canary tokens, cut at 2 KiB.
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
        publishing = _Publishing(session, self._clock, request, part="closing" if closing else "reply")
        began = self._clock.now()
        try:
            with session.stop.interruptible(max(timeout_s, 0)):
                checked = await self._read(session, request, prompt, publishing)
        except (ModelError, Interrupted, TimeUp) as error:
            code = _error_code(error)
            said = None
            if isinstance(error, ModelError) and error.provider_error is not None:
                said = error.provider_error = masked(error.provider_error, session.guard)
                _log_refusal(session, request, model=publishing.model, code=code, said=said)
            publishing.discard(code, self._abandon(session, prompt, publishing))
            self._trace(session, request, None, code, began, provider_error=said)
            raise
        reply = self._priced(_counted(checked.reply, session, prompt, streamed_bytes=publishing.streamed_bytes))
        if not reply.usage.estimated:
            session.window.correct(fixed_bytes=prompt.fixed_bytes, reported_tokens=reply.usage.input_tokens)
        self._trace(session, request, reply, None if checked.found is None else "canary", began)
        if checked.found is not None:
            raise CanaryFound(
                checked.found, reply=reply, message_id=publishing.message_id, call_index=checked.call_index
            )
        return Answer(reply=reply, message_id=publishing.message_id)

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
        self, session: RunSession, request: ModelRequest, prompt: Prompt, publishing: "_Publishing"
    ) -> CleanReply:
        fallbacks = tuple(model for model in session.agent.config.fallback_models if model != request.model)
        reply: ModelReply | None = None
        # Read to the end of the stream: otherwise the garbage collector would close it.
        stream = self._models.stream(request, fallbacks)
        async for event in stream:
            match event:
                case TextDelta() | ReasoningDelta():
                    found = publishing.delta(event)
                    if found is not None:
                        if isinstance(stream, AsyncGenerator):
                            await stream.aclose()  # ends the request; the rest is discarded
                        return _cut_short(session, request, prompt, publishing, found)
                case ModelRetrying():
                    if event.provider_error is not None:
                        said = masked(event.provider_error, session.guard)
                        _log_refusal(session, request, model=publishing.model, code=event.reason, said=said)
                    publishing.retrying(event, self._abandon(session, prompt, publishing))
                case ModelReply():
                    reply = event
        reply = _acceptable(reply)
        publishing.finish()
        return session.guard.reply(reply)

    def _abandon(self, session: RunSession, prompt: Prompt, publishing: "_Publishing") -> ModelSpending | None:
        """Count an interrupted attempt if its reply had begun."""
        if not publishing.streamed_bytes:
            return None
        usage = ModelUsage(
            input_tokens=session.window.estimate(fixed_bytes=prompt.fixed_bytes),
            output_tokens=session.window.tokens_of(publishing.streamed_bytes),
            estimated=True,
        )
        usage = replace(usage, cost_usd=self._prices.cost_usd(publishing.model, usage))
        spending = ModelSpending(model=publishing.model, usage=usage, at=self._clock.now())
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
    session: RunSession, request: ModelRequest, prompt: Prompt, publishing: "_Publishing", found: str
) -> CleanReply:
    """The reply up to the canary token. Its usage is estimated: providers report it only at the end."""
    usage = ModelUsage(
        input_tokens=session.window.estimate(fixed_bytes=prompt.fixed_bytes),
        output_tokens=session.window.tokens_of(publishing.streamed_bytes),
        estimated=True,
    )
    reply = ModelReply(
        model=request.model, text=publishing.said, calls=(), usage=usage, finish_reason=FinishReason.CANARY
    )
    return CleanReply(reply=reply, found=found)


class _Shown:
    """Text of one kind, published as it comes. Text that could start a canary token is delayed until it is complete. With
    tokens to watch, `said` has what was published."""

    def __init__(self, watched: CanaryStream | None, publish: Callable[[str], None]) -> None:
        self._publish = publish
        self.reset(watched)

    def reset(self, watched: CanaryStream | None) -> None:
        """Begin again with an empty text."""
        self._watched = watched
        self.said: list[str] = []

    def add(self, text: str) -> str | None:
        """Publish a piece. Returns the id of a canary token in it; its mark is published last."""
        if self._watched is None:
            self._publish(text)
            return None
        clean = self._watched.feed(text)
        shown = clean.text if clean.found is None else clean.text + mark(clean.found)
        if shown:
            self.said.append(shown)
            self._publish(shown)
        return clean.found

    def finish(self) -> None:
        """Publish delayed text."""
        rest = "" if self._watched is None else self._watched.finish()
        if rest:
            self._publish(rest)


class _Publishing:
    """The events of one model call.

    - Each attempt has its own message id; `message_id` is the current one.
    - `model` is the model of the attempt, `streamed_bytes` the size of its reply so far, reasoning included.
    """

    def __init__(self, session: RunSession, clock: Clock, request: ModelRequest, *, part: str) -> None:
        self.model = request.model
        self.streamed_bytes = 0
        self._session = session
        self._clock = clock
        self._turn = request.turn
        self._part = f"{part}.{session.run.attempt}"
        self._attempt = 0
        self.message_id = self._new_message_id()
        self._begun = False
        self._shows_reasoning = request.reasoning_summary
        self._text = _Shown(session.guard.stream(), partial(self._publish, RunEventType.MESSAGE_DELTA))
        self._reasoning = _Shown(session.guard.stream(), partial(self._publish, RunEventType.REASONING_DELTA))

    @property
    def said(self) -> str:
        """The published text of the current reply."""
        return "".join(self._text.said)

    def delta(self, event: TextDelta | ReasoningDelta) -> str | None:
        """Publish a piece of text or reasoning. Returns the id of a canary token that ends the reply."""
        self.streamed_bytes += len(event.text.encode(errors="replace"))
        if isinstance(event, TextDelta):
            return self._text.add(event.text)
        return self._reasoning.add(event.text) if self._shows_reasoning else None

    def finish(self) -> None:
        """Publish delayed text: the reply is complete."""
        self._reasoning.finish()
        self._text.finish()

    def _publish(self, kind: RunEventType, text: str) -> None:
        self._begun = True
        self._session.unfinished = self.message_id
        self._add(kind, {"message_id": self.message_id, "text": text})

    def retrying(self, event: ModelRetrying, spent: ModelSpending | None) -> None:
        """Discard the published text and report the new attempt."""
        self.discard(event.reason, spent)
        self.model = event.model
        data: JsonObject = {"model": event.model, "attempt": event.attempt, "wait_s": round(event.wait_s, 3)}
        self._add(RunEventType.MODEL_RETRYING, data)

    def discard(self, reason: str, spent: ModelSpending | None) -> None:
        """Discard the published text of the current reply, if any."""
        if self._begun:
            at = self._clock.now()
            self._session.buffer.add(message_discarded(self.message_id, reason=reason, at=at, spent=spent))
        self._begun = False
        self._session.unfinished = None
        self.streamed_bytes = 0
        self._text.reset(self._session.guard.stream())
        self._reasoning.reset(self._session.guard.stream())
        self._attempt += 1
        self.message_id = self._new_message_id()

    def _new_message_id(self) -> MessageId:
        return message_id(self._session.run.id, self._turn, self._part, self._attempt)

    def _add(self, kind: RunEventType, data: JsonObject) -> None:
        self._session.buffer.add(NewEvent(type=kind, at=self._clock.now(), data=data))
