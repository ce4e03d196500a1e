"""The outcome of a tool call, as a value. Success, failure and refusal all reach the model as
text."""

from dataclasses import dataclass
from enum import StrEnum

from domain.ids import ToolCallId
from domain.threads.message import FileContent, ImageContent, ToolResultContent

OUTCOME_UNKNOWN = (
    "The outcome of this call is unknown: the service was interrupted after it may have been sent, and it was not "
    "sent again. Check whether it took effect before you repeat it."
)


class ToolOutcome(StrEnum):
    """How a call ended. `unknown`: it may have been executed, the reply is lost, and it must not be
    sent again."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    BLOCKED = "blocked"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The text of one call for the model.

    - `text` is the complete text, never empty for a failure.
    - `error_code` is stable (`tool_timeout`, `mcp_error`, …), and present exactly when the call did
      not succeed.
    """

    outcome: ToolOutcome
    text: str
    images: tuple[ImageContent, ...] = ()
    files: tuple[FileContent, ...] = ()
    error_code: str | None = None

    def __post_init__(self) -> None:
        if (self.outcome is ToolOutcome.SUCCEEDED) != (self.error_code is None):
            raise ValueError("a tool result has an error code exactly when the call did not succeed")
        if self.is_error and not self.text:
            raise ValueError("a failed tool result needs a text for the model")

    @classmethod
    def succeeded(
        cls, text: str, images: tuple[ImageContent, ...] = (), files: tuple[FileContent, ...] = ()
    ) -> "ToolResult":
        return cls(outcome=ToolOutcome.SUCCEEDED, text=text, images=images, files=files)

    @classmethod
    def failed(cls, error_code: str, text: str) -> "ToolResult":
        """The tool failed or was unreachable."""
        return cls(outcome=ToolOutcome.FAILED, text=text, error_code=error_code)

    @classmethod
    def blocked(cls, error_code: str, text: str) -> "ToolResult":
        """The call was refused and never sent."""
        return cls(outcome=ToolOutcome.BLOCKED, text=text, error_code=error_code)

    @classmethod
    def unknown(cls, text: str) -> "ToolResult":
        """The call may have taken effect, but the reply is lost."""
        return cls(outcome=ToolOutcome.UNKNOWN, text=text, error_code="outcome_unknown")

    @property
    def is_error(self) -> bool:
        return self.outcome is not ToolOutcome.SUCCEEDED

    def as_content(self, tool_id: ToolCallId, tool_name: str) -> ToolResultContent:
        return ToolResultContent(
            tool_id=tool_id,
            tool_name=tool_name,
            result=self.text,
            is_error=self.is_error,
            images=self.images,
            files=self.files,
        )


def outcome_unknown() -> ToolResult:
    """A call recorded before a crash that must not be sent again."""
    return ToolResult.unknown(OUTCOME_UNKNOWN)
