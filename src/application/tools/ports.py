"""Ports of the tools slice."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from domain.ids import OrganizationId, RunId, ThreadId, ToolCallId
from domain.json_value import JsonObject, JsonValue
from domain.mcp.elicitation import InputRound
from domain.threads.message import ImageContent
from domain.tools.tool import Tool


class Box(Protocol):
    """Encrypts what must not be readable in storage."""

    def encrypt(self, plain: bytes, /) -> bytes:
        """The sealed form, which `decrypt` opens."""
        ...

    def decrypt(self, sealed: bytes, /) -> bytes:
        """The inverse of `encrypt`. Raises ServiceError `secret_undecryptable`."""
        ...


class InputAwaited(Exception):
    """The call is not finished: its server asks for input, and it is to be sent again with the answers."""

    def __init__(self, awaited: InputRound) -> None:
        super().__init__("the tool's server asks for input")
        self.awaited = awaited


class CapabilitiesMissing(Exception):
    """The call was not made: its server needs capabilities that whoever made it, and can be asked, has not."""

    def __init__(self, capabilities: JsonObject) -> None:
        super().__init__("the tool's server needs capabilities of the client")
        self.capabilities = capabilities


class NativeToolError(Exception):
    """An expected failure of a native tool; `code` is stable, the message is written for the model."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeToolContext:
    """Where a native tool runs: in a run, or for a gateway session, which has no `run_id`. `timeout_s` is what is left for the call. `holds_canary` is asked, where it is given, about
    texts that the tool is about to keep elsewhere than in its output: one that holds a canary token must not be kept, and
    the run ends with the call."""

    organization_id: OrganizationId
    thread_id: ThreadId
    run_id: RunId | None
    tool_call_id: ToolCallId
    timeout_s: float
    holds_canary: Callable[[str], bool] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeToolOutput:
    """A JSON value (strings reach the model as they are, everything else as indented JSON) and images."""

    value: JsonValue
    images: tuple[ImageContent, ...] = ()


class NativeTool(Protocol):
    """A tool that Dragoman itself brings."""

    @property
    def tool(self) -> Tool:
        """Its description for the model: name, type, parameters."""
        ...

    async def run(self, arguments: JsonObject, context: NativeToolContext) -> NativeToolOutput:
        """Execute with validated arguments. Raises NativeToolError. Cancellation stops the work."""
        ...
