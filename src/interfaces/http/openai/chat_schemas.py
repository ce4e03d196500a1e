"""The body of a chat completion."""

from typing import Annotated, Literal, cast

from pydantic import Field

from domain.json_value import JsonObject
from domain.runs.model_settings import ModelSettings
from domain.tools.client_tool import ClientTool
from interfaces.http.bodies import Name
from interfaces.http.openai.bodies import (
    Efforts,
    Function,
    OpenAiBody,
    SampledBody,
    SchemaFormat,
    Verbosities,
    schema_of,
)
from interfaces.http.openai.errors import unsupported

_MOST_TOKENS = 10**7
Texts = Annotated[tuple[str, ...], Field(strict=False)]


class CalledFunction(OpenAiBody):
    name: Name
    arguments: str = ""


class ChatToolCall(OpenAiBody):
    """A call of a client's function, in the history."""

    id: Name
    type: Literal["function"] = "function"
    function: CalledFunction


class ChatMessage(OpenAiBody):
    """A message of any role; `messages_of` checks what a role takes."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | Annotated[list[dict[str, object]], Field(max_length=1_000)] | None = None
    tool_calls: Annotated[list[ChatToolCall], Field(max_length=1_000)] | None = None
    tool_call_id: Name | None = None


class ChatTool(OpenAiBody):
    type: Literal["function"]
    function: Function


class NamedSchema(OpenAiBody):
    name: str | None = None
    schema_: dict[str, object] | None = Field(default=None, alias="schema")


class ResponseFormat(SchemaFormat):
    json_schema: NamedSchema | None = None


class StreamOptions(OpenAiBody):
    include_usage: bool | None = None


class ChatBody(SampledBody):
    """A conversation, and what its next message shall be like. `model` is an agent."""

    model: Name
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=10_000)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    tools: Annotated[list[ChatTool], Field(max_length=1_000)] | None = None
    response_format: ResponseFormat | None = None
    max_tokens: int | None = Field(default=None, gt=0, le=_MOST_TOKENS)
    max_completion_tokens: int | None = Field(default=None, gt=0, le=_MOST_TOKENS)
    reasoning_effort: Efforts = None
    verbosity: Verbosities = None
    stop: str | Texts | None = None
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)
    n: int | None = None
    logprobs: bool | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    logit_bias: dict[str, object] | None = None
    modalities: list[str] | None = None
    functions: list[object] | None = None
    web_search_options: dict[str, object] | None = None

    def require_supported(self) -> None:
        """Raises INVALID `unsupported_parameter`: what would change the answer is not ignored."""
        if self.n not in (None, 1):
            raise unsupported("n", "A run has one answer: n may be 1.")
        for name in ("logprobs", "frequency_penalty", "presence_penalty", "logit_bias"):
            if getattr(self, name):
                raise unsupported(name, f"{name} is not supported; the agent's model settings are.")
        if self.modalities not in (None, ["text"]):
            raise unsupported("modalities", "Answers are text.")
        if self.functions:
            raise unsupported("functions", "Send functions as tools.")
        if self.web_search_options is not None:
            raise unsupported("web_search_options", "Agents search with their own tools.")

    def client_tools(self) -> tuple[ClientTool, ...]:
        offered = self.offers_functions()
        return tuple(tool.function.to_domain() for tool in self.tools or ()) if offered else ()

    def model_settings(self) -> ModelSettings:
        return self.settings(
            max_output_tokens=self.max_completion_tokens or self.max_tokens,
            effort=self.reasoning_effort,
            verbosity=self.verbosity,
            stop=(self.stop,) if isinstance(self.stop, str) else self.stop,
            seed=self.seed,
        )

    def output_schema(self) -> JsonObject | None:
        wanted = self.response_format
        if wanted is None:
            return None
        schema = None if wanted.json_schema is None else wanted.json_schema.schema_
        return schema_of(wanted.type, schema, "response_format.json_schema.schema")

    def metadata_of_run(self) -> JsonObject:
        return cast(JsonObject, dict(self.metadata or {}))
