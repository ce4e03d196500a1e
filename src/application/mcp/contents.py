"""Port for contents of servers other than tools (MCP server/resources, server/prompts,
server/utilities/completion)."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from application.mcp.ports import ConnectionScope
from domain.json_value import JsonObject
from domain.mcp.server import McpServer


class ContentMethod(StrEnum):
    """Content requests; values are the methods of the protocol."""

    RESOURCES = "resources/list"
    TEMPLATES = "resources/templates/list"
    READ_RESOURCE = "resources/read"
    PROMPTS = "prompts/list"
    GET_PROMPT = "prompts/get"
    COMPLETE = "completion/complete"
    SUBSCRIBE = "resources/subscribe"
    UNSUBSCRIBE = "resources/unsubscribe"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentRequest:
    """`params` as in the protocol, with the server's own names. `timeout_s` includes connecting.
    With `accepts_input`, the client answers forms, and the result may be `input_required`."""

    method: ContentMethod
    params: JsonObject
    timeout_s: float
    accepts_input: bool = False


class McpContents(Protocol):
    """Requests contents on the connections used for tool calls."""

    async def ask(self, server: McpServer, scope: ConnectionScope, request: ContentRequest) -> Mapping[str, object]:
        """The raw result, without the server's secrets. Raises McpFailure; SERVER_ERROR with
        `rpc_code` -32601 if the server lacks the method."""
        ...
