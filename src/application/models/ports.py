"""Ports to language models: requests, streamed replies, fallbacks, prices."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Protocol

from domain.ids import OrganizationId, RunId
from domain.json_value import JsonObject
from domain.runs.finish_reason import FinishReason
from domain.runs.model_settings import ModelSettings
from domain.runs.provider_error import ProviderError
from domain.runs.usage import ModelUsage
from domain.threads.message import Message
from domain.threads.provider_items import ProviderItems
from domain.tools.tool import Tool


class ToolChoice(StrEnum):
    """Whether the model may call tools in this turn. `none` keeps the tool definitions, so that
    provider caches stay valid."""

    AUTO = "auto"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryLimits:
    """`attempts` per model, and `total_s` of waiting between all attempts of one call."""

    attempts: int = 3
    total_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One request to a model. `model` has the form `PROVIDER:NAME`.

    - `messages` never hold a tool use without its result.
    - `run_id` and `turn` identify the request in logs and for scripted models.
    - `max_output_tokens` None uses the provider's default.
    - `reasoning_summary`: the agent wants summaries of the model's reasoning, as ReasoningDelta.
    - `output_schema`: the answer is a JSON object that matches it. A provider that cannot be held
      to it is asked in the prompt, so replies may not match.
    - `settings` that the model does not take are not sent. `max_output_tokens` decides, not theirs.
    """

    organization_id: OrganizationId
    run_id: RunId
    turn: int
    model: str
    system: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    tool_choice: ToolChoice = ToolChoice.AUTO
    max_output_tokens: int | None = None
    retries: RetryLimits = RetryLimits()
    reasoning_summary: bool = False
    settings: ModelSettings | None = None
    output_schema: JsonObject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedCall:
    """A tool call in a reply. `malformed` is the raw argument text if it is not a JSON object;
    `arguments` is then empty. A call at the end of a truncated reply is always malformed."""

    name: str
    arguments: JsonObject
    malformed: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """A part of the reply's text."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningDelta:
    """A part of the reasoning, or of its summary, that the provider shows. It is not part of the
    reply's text."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRetrying:
    """The attempt failed and another one starts after `wait_s`; `attempt` counts from 1 over all
    models. Text streamed so far is void. `provider_error` is the error of the failed attempt's
    provider."""

    model: str
    attempt: int
    reason: str
    wait_s: float = 0.0
    provider_error: ProviderError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """The complete reply; always the last event of a stream.

    - `text` is the concatenation of the deltas since the last ModelRetrying.
    - `usage` without reported tokens is `ModelUsage(estimated=True)`; the caller estimates the
      counts.
    - `items` is the reply in the provider's own format, if text and calls alone lose a part of it.
      Its calls are `calls`, in the same order. A malformed call is in it with the arguments of the
      neutral form, so that the provider accepts them.
    - `streamed`: the provider sent it as a stream, not whole.
    """

    model: str
    text: str
    calls: tuple[RequestedCall, ...]
    usage: ModelUsage
    finish_reason: FinishReason
    items: ProviderItems | None = field(default=None, repr=False)
    streamed: bool = True


ModelEvent = TextDelta | ReasoningDelta | ModelRetrying | ModelReply


class ModelError(Exception):
    """A failed model call.

    - `code` is stable: `model_rate_limited`, `model_unavailable`, `model_timeout`, `model_stalled`,
      `model_rejected`, `model_auth`, `model_invalid_reply`, `model_context_exceeded`.
    - `detail` is a fixed sentence that is safe to show.
    - `retryable`: another attempt may succeed; `retry_after_s` is the pause that the provider
      requested.
    - `provider_error` is the provider's error without secrets.
    """

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        retryable: bool,
        retry_after_s: float | None = None,
        provider_error: ProviderError | None = None,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        self.provider_error = provider_error


class LanguageModel(Protocol):
    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Deltas as they arrive, then one ModelReply. Closing the iterator ends the request. Raises
        ModelError.

        - A message goes back as it came, unchanged and in order, if the origin of its `items` is
          that of this request (provider, wire, model family); else neutrally, from its content.
        - Ids of tool calls are ours (ADR 0005). Items keep those of the provider: the calls of a
          message and of its items correspond by position, and results carry the provider's id where
          the items are sent.
        """


class ModelList(Protocol):
    async def names(self) -> tuple[str, ...]:
        """Names of the provider's models, without the provider, in order. Raises ModelError."""
        ...


class FallbackModels(Protocol):
    """The models of an agent, tried in order with retries."""

    def stream(self, request: ModelRequest, fallbacks: tuple[str, ...]) -> AsyncIterator[ModelEvent]:
        """Like LanguageModel.stream. Retryable errors are retried with backoff within
        `request.retries`. A model with a successor among `fallbacks` has few attempts and gives way
        to it; the last model has the rest. Each new attempt is announced by ModelRetrying. Raises
        the last ModelError."""


class PriceTable(Protocol):
    def cost_usd(self, model: str, usage: ModelUsage) -> Decimal | None:
        """The price of these tokens for `PROVIDER:NAME`; None if the model has no known price."""
