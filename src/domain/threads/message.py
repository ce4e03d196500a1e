"""Messages of a thread and their content: what was said, which tools were asked for, what they answered."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from domain.approvals.approval import PendingApproval
from domain.errors import Violation, invalid
from domain.ids import MessageId, RunId, ThreadId, ToolCallId
from domain.json_value import JsonObject
from domain.mcp.elicitation import Elicitation


class Role(StrEnum):
    """Who speaks. `tool` carries the results of one turn's calls."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextContent:
    """Plain text."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageContent:
    """An image, inline (`data`: base64) or by `url`; exactly one of the two."""

    media_type: str
    data: str | None = None
    url: str | None = None

    def __post_init__(self) -> None:
        if (self.data is None) == (self.url is None):
            raise invalid(
                "image_invalid",
                "An image needs either data or url.",
                Violation(path="content", message="give exactly one of data and url"),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """A call the model asks for.

    `malformed` keeps the model's raw argument text where it was not a JSON object; `params` is then empty and the call
    is never run. `elicitation` and `approval` are there while a run waits for them, and in no message.
    """

    id: ToolCallId
    name: str
    params: JsonObject
    malformed: str | None = None
    elicitation: Elicitation | None = None
    approval: PendingApproval | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResultContent:
    """The answer to one tool use, as the model reads it."""

    tool_id: ToolCallId
    tool_name: str
    result: str
    is_error: bool = False
    images: tuple[ImageContent, ...] = ()


Content = TextContent | ImageContent | ToolUse | ToolResultContent
UserContent = TextContent | ImageContent


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One entry of a thread; never changed once written."""

    id: MessageId
    thread_id: ThreadId
    run_id: RunId | None
    role: Role
    content: tuple[Content, ...]
    created_at: datetime

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return "".join([part.text for part in self.content if isinstance(part, TextContent)])

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        """The calls asked for, in the model's order."""
        return tuple([part for part in self.content if isinstance(part, ToolUse)])

    @property
    def tool_results(self) -> tuple[ToolResultContent, ...]:
        """The answers carried, in the order of their calls."""
        return tuple([part for part in self.content if isinstance(part, ToolResultContent)])


def is_blank(content: Iterable[UserContent]) -> bool:
    """Whether nothing is said: no image, and no text but white space."""
    return not any(not isinstance(part, TextContent) or part.text.strip() for part in content)
