"""The body of a chat request of the AI SDK."""

from typing import Annotated, Literal

from pydantic import Field

from domain.errors import Violation, invalid
from domain.tools.client_tool import ClientTool
from interfaces.http.bodies import Name
from interfaces.http.openai.bodies import Function, OpenAiBody

Part = dict[str, object]


class UiMessage(OpenAiBody):
    """A message as a front end has it: its parts are text, files, tool calls and their outcomes."""

    id: Name
    role: Literal["system", "user", "assistant"]
    parts: Annotated[list[Part], Field(max_length=10_000)]


class UiTool(OpenAiBody):
    """A tool that the front end executes."""

    description: str | None = None
    parameters: dict[str, object] | None = None


class ChatRequestBody(OpenAiBody):
    """`trigger` and `message_id` say whether the last message is new. `tools` are those of the
    front end, by name."""

    id: Annotated[str, Field(min_length=1, max_length=256)]
    messages: Annotated[list[UiMessage], Field(min_length=1, max_length=10_000)]
    trigger: Literal["submit-message", "regenerate-message"] = "submit-message"
    message_id: Name | None = Field(default=None, alias="messageId")
    tools: dict[str, UiTool] | None = None

    @property
    def branches(self) -> bool:
        """Whether the last message was there before: the user edited it, or wants another answer to
        it."""
        return self.trigger == "regenerate-message" or self.message_id == self.messages[-1].id

    def last(self) -> UiMessage:
        """A message of the user, or one of the assistant with outcomes. Raises INVALID
        `body_invalid`."""
        last = self.messages[-1]
        if last.role == "system":
            wrong = Violation(path="messages", message="must not end with a message of the system")
            raise invalid("body_invalid", "The request body is not valid.", wrong)
        return last

    def client_tools(self) -> tuple[ClientTool, ...]:
        return tuple(
            Function(name=name, description=tool.description, parameters=tool.parameters).to_domain()
            for name, tool in (self.tools or {}).items()
        )
