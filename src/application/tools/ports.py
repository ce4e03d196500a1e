"""Ports of the tools slice."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol

from domain.ids import OrganizationId, RunId, ThreadId, ToolCallId, UserId
from domain.json_value import JsonObject, JsonValue
from domain.mcp.elicitation import InputRound
from domain.threads.message import ImageContent
from domain.tools.tool import Tool


class Box(Protocol):
    """Encrypts what must not be readable in storage."""

    def encrypt(self, plain: bytes, /) -> bytes: ...

    def decrypt(self, sealed: bytes, /) -> bytes:
        """Raises: ServiceError `secret_undecryptable`."""
        ...


class KnownUsers(Protocol):
    """Who is a user of an organization."""

    async def strangers(self, organization_id: OrganizationId, users: Collection[UserId], /) -> tuple[UserId, ...]:
        """Which of these ids are no users of the organization, or removed ones; in order."""
        ...


class InputAwaited(Exception):
    """The server requests input; the call is sent again with the answers."""

    def __init__(self, awaited: InputRound) -> None:
        super().__init__("the tool's server asks for input")
        self.awaited = awaited


class CapabilitiesMissing(Exception):
    """The call was not executed: its server requires capabilities that the caller lacks."""

    def __init__(self, capabilities: JsonObject) -> None:
        super().__init__("the tool's server needs capabilities of the client")
        self.capabilities = capabilities


class NativeToolError(Exception):
    """Expected failure of a native tool; `code` is stable, `message` is text for the model."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeToolContext:
    """Context of a native tool call, in a run or a gateway session (without `run_id`).

    - `timeout_s`: the remaining time for the call.
    - `holds_canary`: whether a text contains a canary token. Tools check texts that they store
      outside their output; such a text must not be stored, and the run ends with the call.
    """

    organization_id: OrganizationId
    thread_id: ThreadId
    run_id: RunId | None
    tool_call_id: ToolCallId
    timeout_s: float
    holds_canary: Callable[[str], bool] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeToolOutput:
    """A JSON value and images. The model reads strings as they are, and other values as indented
    JSON."""

    value: JsonValue
    images: tuple[ImageContent, ...] = ()


class NativeTool(Protocol):
    """A tool built into Dragoman."""

    @property
    def tool(self) -> Tool: ...

    async def run(self, arguments: JsonObject, context: NativeToolContext) -> NativeToolOutput:
        """Execute with validated arguments. Raises NativeToolError. Cancellation stops the work."""
        ...
