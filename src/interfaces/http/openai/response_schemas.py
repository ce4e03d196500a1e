"""The body of a response."""

from collections.abc import Iterator
from typing import Annotated, Literal, TypeVar, cast

from pydantic import Field

from domain.errors import ServiceError
from domain.json_value import JsonObject
from domain.runs.limits import LimitSettings
from domain.runs.model_settings import ModelSettings
from domain.tools.client_tool import ClientTool
from interfaces.http.bodies import Name, decoded_body
from interfaces.http.openai.bodies import (
    Efforts,
    Function,
    OpenAiBody,
    SampledBody,
    SchemaFormat,
    Verbosities,
    schema_of,
)
from interfaces.http.openai.errors import relocated, unsupported

ToolT = TypeVar("ToolT", bound=OpenAiBody)

_MOST_TOKENS = 10**7
_ELSEWHERE = ("server_url", "connector_id", "tunnel_id", "authorization", "headers")
_OWN_POLICY = (None, "never")


class TextFormat(SchemaFormat):
    name: str | None = None
    schema_: dict[str, object] | None = Field(default=None, alias="schema")


class TextConfig(OpenAiBody):
    format: TextFormat | None = None
    verbosity: Verbosities = None


class Reasoning(OpenAiBody):
    effort: Efforts = None


class ConversationRef(OpenAiBody):
    id: Name


class McpTools(OpenAiBody):
    """An `mcp` tool: a registered server of the agent, by its slug."""

    type: Literal["mcp"]
    server_label: Name
    allowed_tools: list[str] | None = None

    def allowed_names(self) -> frozenset[str] | None:
        """None for all tools of the server."""
        return None if self.allowed_tools is None else frozenset(self.allowed_tools)


Items = Annotated[list[dict[str, object]], Field(max_length=10_000)]


class ResponseBody(SampledBody):
    """A request for a response. `model` is an agent."""

    model: Name
    input: str | Items | None = None
    instructions: str | None = None
    previous_response_id: Name | None = None
    conversation: Name | ConversationRef | None = None
    stream: bool | None = None
    background: bool | None = None
    store: bool | None = None
    tools: Annotated[list[dict[str, object]], Field(max_length=1_000)] | None = None
    text: TextConfig | None = None
    reasoning: Reasoning | None = None
    max_output_tokens: int | None = Field(default=None, gt=0, le=_MOST_TOKENS)
    max_tool_calls: int | None = Field(default=None, gt=0)
    top_logprobs: int | None = None
    prompt: dict[str, object] | None = None

    def require_supported(self) -> None:
        """Raises INVALID `unsupported_parameter`: what would change the answer is not ignored."""
        if self.top_logprobs:
            raise unsupported("top_logprobs", "top_logprobs is not supported.")
        if self.prompt is not None:
            raise unsupported("prompt", "There are no stored prompts here: the agent has its instructions.")
        if self.conversation is not None and self.previous_response_id is not None:
            raise unsupported("conversation", "Give either a conversation or a previous response.")
        if self.background and self.store is False:
            raise unsupported("background", "A response in the background is read by its id: store must not be false.")
        for index, tool in enumerate(self.tools or ()):
            _require_known(tool, f"tools.{index}")

    def client_tools(self) -> tuple[ClientTool, ...]:
        if not self.offers_functions():
            return ()
        return tuple(tool.to_domain() for tool, _ in self._decoded("function", Function))

    def mcp_tools(self) -> tuple[tuple[McpTools, str], ...]:
        """Each with its path."""
        return tuple(self._decoded("mcp", McpTools))

    def _decoded(self, kind: str, model: type[ToolT]) -> Iterator[tuple[ToolT, str]]:
        for path, tool in ((f"tools.{index}", tool) for index, tool in enumerate(self.tools or ())):
            if tool.get("type") != kind:
                continue
            try:
                yield decoded_body(model, tool), path
            except ServiceError as error:
                raise relocated(error, f"{path}.{{}}".format) from error

    def model_settings(self) -> ModelSettings:
        return self.settings(
            max_output_tokens=self.max_output_tokens,
            effort=None if self.reasoning is None else self.reasoning.effort,
            verbosity=None if self.text is None else self.text.verbosity,
        )

    def limits(self) -> LimitSettings:
        return LimitSettings(max_tool_calls=self.max_tool_calls)

    def output_schema(self) -> JsonObject | None:
        wanted = None if self.text is None else self.text.format
        return None if wanted is None else schema_of(wanted.type, wanted.schema_, "text.format.schema")

    def metadata_of_run(self) -> JsonObject:
        return cast(JsonObject, dict(self.metadata or {}))

    def conversation_id(self) -> str | None:
        given = self.conversation
        return given.id if isinstance(given, ConversationRef) else given


def _require_known(tool: dict[str, object], path: str) -> None:
    kind = tool.get("type")
    if kind not in ("function", "mcp"):
        detail = f"Tools of the type {str(kind)[:100]!r} come from the agent, not from a request."
        raise unsupported(f"{path}.type", detail)
    if kind == "function":
        return
    for name in _ELSEWHERE:
        if tool.get(name) is not None:
            detail = "MCP servers are registered with the service: name one of the agent's by its server_label."
            raise unsupported(f"{path}.{name}", detail)
    if tool.get("require_approval") not in _OWN_POLICY:
        raise unsupported(f"{path}.require_approval", "The agent's policies decide which calls require approval.")
