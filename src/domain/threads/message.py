"""Messages of a thread and their content: text, images, files, tool calls and tool results."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from domain.approvals.approval import PendingApproval
from domain.errors import Violation, invalid
from domain.ids import MessageId, RunId, ThreadId, ToolCallId
from domain.json_value import JsonObject
from domain.mcp.elicitation import Elicitation
from domain.threads.provider_items import ProviderItems


class Role(StrEnum):
    """The author of a message. `tool` carries the tool results of one turn."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextContent:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageContent:
    """An image, either inline (`data`: base64) or by `url`."""

    media_type: str
    data: str | None = None
    url: str | None = None

    def __post_init__(self) -> None:
        _require_one_place("image", self.data, self.url)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileContent:
    """A file (PDF, audio, text or any other), either inline (`data`: base64) or by `url`."""

    media_type: str
    name: str | None = None
    data: str | None = None
    url: str | None = None

    def __post_init__(self) -> None:
        _require_one_place("file", self.data, self.url)


def _require_one_place(what: str, data: str | None, url: str | None) -> None:
    """Raises INVALID `image_invalid` or `file_invalid`."""
    if (data is None) == (url is None):
        fault = Violation(path="content", message="give exactly one of data and url")
        raise invalid(f"{what}_invalid", f"The {what} needs either data or url.", fault)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """A tool call of the model.

    - `malformed` holds the model's raw arguments if they were not a JSON object; `params` is then
      empty and the call is never executed.
    - `elicitation` and `approval` are set only while a run waits for them. No stored message has
      them.
    """

    id: ToolCallId
    name: str
    params: JsonObject
    malformed: str | None = None
    elicitation: Elicitation | None = None
    approval: PendingApproval | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResultContent:
    """A tool result, as the model reads it."""

    tool_id: ToolCallId
    tool_name: str
    result: str
    is_error: bool = False
    images: tuple[ImageContent, ...] = ()
    files: tuple[FileContent, ...] = ()

    @property
    def attachments(self) -> tuple[ImageContent | FileContent, ...]:
        return (*self.images, *self.files)


Content = TextContent | ImageContent | FileContent | ToolUse | ToolResultContent
UserContent = TextContent | ImageContent | FileContent


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One entry of a thread; immutable. `items` is what the provider said in its own format, for a
    model's message that needs it; a message with changed content has none."""

    id: MessageId
    thread_id: ThreadId
    run_id: RunId | None
    role: Role
    content: tuple[Content, ...]
    created_at: datetime
    items: ProviderItems | None = field(default=None, repr=False)

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return "".join([part.text for part in self.content if isinstance(part, TextContent)])

    @property
    def attachments(self) -> tuple[ImageContent | FileContent, ...]:
        """Images and files, those of tool results too."""
        found: list[ImageContent | FileContent] = []
        for part in self.content:
            if isinstance(part, ToolResultContent):
                found += part.images
                found += part.files
            elif isinstance(part, ImageContent | FileContent):
                found.append(part)
        return tuple(found)

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        return tuple([part for part in self.content if isinstance(part, ToolUse)])

    @property
    def tool_results(self) -> tuple[ToolResultContent, ...]:
        """The tool results, in the order of their calls."""
        return tuple([part for part in self.content if isinstance(part, ToolResultContent)])


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorMessage:
    """A message that a client had before it made a thread. Each tool use is followed by its
    result."""

    role: Role
    content: tuple[Content, ...]


def is_blank(content: Iterable[object]) -> bool:
    """Whether the content has no image, no file, and only white space as text."""
    return not any(not isinstance(part, TextContent) or part.text.strip() for part in content)
