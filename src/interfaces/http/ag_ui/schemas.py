"""The input of a run of AG-UI (RunAgentInput)."""

from typing import Annotated, Literal, cast

from pydantic import Field

from domain.errors import Violation, invalid
from domain.json_value import JsonValue
from domain.tools.client_tool import ClientTool
from interfaces.http.bodies import Name
from interfaces.http.openai.bodies import Function, OpenAiBody
from interfaces.http.openai.chat_schemas import ChatToolCall

Part = dict[str, object]


class AgUiMessage(OpenAiBody):
    """A message of any role; only those of conversations are read."""

    id: Name
    role: Name
    content: str | Annotated[list[Part], Field(max_length=1_000)] | dict[str, object] | None = None
    tool_calls: list[ChatToolCall] | None = Field(default=None, alias="toolCalls", max_length=1_000)
    tool_call_id: Name | None = Field(default=None, alias="toolCallId")
    error: str | None = None


class Context(OpenAiBody):
    description: str
    value: str


class ResumeEntry(OpenAiBody):
    """The answer to an interrupt."""

    interrupt_id: Name = Field(alias="interruptId")
    status: Literal["resolved", "cancelled"]
    payload: object = None


class RunAgentInputBody(OpenAiBody):
    """`state` and `context` are of the application; the agent reads both, and changes the state."""

    thread_id: Annotated[str, Field(alias="threadId", min_length=1, max_length=256)]
    run_id: Annotated[str, Field(alias="runId", min_length=1, max_length=256)]
    messages: Annotated[list[AgUiMessage], Field(max_length=10_000)]
    tools: list[Function] = Field(default_factory=list, max_length=1_000)
    context: list[Context] = Field(default_factory=list, max_length=1_000)
    state: object = None
    resume: Annotated[list[ResumeEntry], Field(max_length=1_000)] | None = None

    def last(self) -> AgUiMessage:
        """Raises INVALID `body_invalid`."""
        if not self.messages:
            wrong = Violation(path="messages", message="must end with a message of the user or the result of a tool")
            raise invalid("body_invalid", "The request body is not valid.", wrong)
        return self.messages[-1]

    def client_tools(self) -> tuple[ClientTool, ...]:
        return tuple(tool.to_domain() for tool in self.tools)

    @property
    def own_state(self) -> JsonValue:
        """What the client sent; None for what a client has before its first snapshot, too."""
        return cast(JsonValue, self.state) or None
