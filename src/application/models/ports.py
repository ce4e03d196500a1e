"""Ports to language models: the composed request, the streamed reply, fallbacks, prices."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Protocol

from domain.ids import OrganizationId, RunId
from domain.json_value import JsonObject
from domain.runs.finish_reason import FinishReason
from domain.runs.provider_error import ProviderError
from domain.runs.usage import ModelUsage
from domain.threads.message import Message
from domain.tools.tool import Tool


class ToolChoice(StrEnum):
    """Whether the model may call tools in this turn; `none` keeps the definitions (and provider caches) in place."""

    AUTO = "auto"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One request, composed in one place. `model` is `PROVIDER:NAME`. `messages` never hold a tool use without its
    result.
    `run_id` and `turn` identify the request (for logs and scripted models); `max_output_tokens` None leaves the
    provider's default."""

    organization_id: OrganizationId
    run_id: RunId
    turn: int
    model: str
    system: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    tool_choice: ToolChoice = ToolChoice.AUTO
    max_output_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedCall:
    """A tool call in a reply. `malformed` is the raw argument text if it is not a JSON object (`arguments` is then
    empty); so it is of a call that a cut reply ended in, even if that is no text at all."""

    name: str
    arguments: JsonObject
    malformed: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """A piece of the reply's text."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRetrying:
    """The attempt failed and another begins (attempt counts from 1, over all models). Text streamed so far is void.
    `provider_error` is what the provider of the failed attempt said."""

    model: str
    attempt: int
    reason: str
    provider_error: ProviderError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """The complete reply; always the last event of a stream. `text` equals the deltas since the last ModelRetrying,
    joined."""

    model: str
    text: str
    calls: tuple[RequestedCall, ...]
    usage: ModelUsage
    finish_reason: FinishReason


ModelEvent = TextDelta | ModelRetrying | ModelReply


class ModelError(Exception):
    """A model call that failed. `code` is stable (`model_rate_limited`, `model_unavailable`, `model_timeout`,
    `model_stalled`, `model_rejected`, `model_auth`, `model_invalid_reply`, `model_context_exceeded`), `detail` a
    fixed sentence safe to show,
    `retryable` whether trying again may help, `retry_after_s` what the provider asked for, `provider_error` what it
    said, without secrets."""

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
    """A model, reached by provider and name."""

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Deltas as they come, then one ModelReply. Raises ModelError. Closing the iterator ends the request."""
        ...


class FallbackModels(Protocol):
    """The models of an agent, tried in order with retries."""

    def stream(self, request: ModelRequest, fallbacks: tuple[str, ...]) -> AsyncIterator[ModelEvent]:
        """Like LanguageModel.stream; retries retryable errors with backoff, then goes on to the next of `fallbacks`,
        telling of
        each new attempt with ModelRetrying. Raises the last ModelError when all are exhausted."""
        ...


class PriceTable(Protocol):
    """Prices of models."""

    def cost_usd(self, model: str, usage: ModelUsage) -> Decimal | None:
        """The price of these tokens for `PROVIDER:NAME`, or None if the model is not priced."""
        ...
