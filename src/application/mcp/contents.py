"""What servers have besides tools (MCP server/resources, server/prompts, server/utilities/completion): the port."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from application.mcp.ports import ConnectionScope
from domain.json_value import JsonObject
from domain.mcp.server import McpServer


class ContentMethod(StrEnum):
    """What a server can be asked for; values are the protocol's."""

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
    """`params` as the protocol has them, with the server's own names. `timeout_s` covers connecting, too. `accepts_input`:
    whoever asked can answer forms and visit pages, so that the result may be `input_required`."""

    method: ContentMethod
    params: JsonObject
    timeout_s: float
    accepts_input: bool = False


class McpContents(Protocol):
    """Servers asked for their contents, on the connections that calls of their tools use."""

    async def ask(self, server: McpServer, scope: ConnectionScope, request: ContentRequest) -> Mapping[str, object]:
        """The server's result as it came, without its secrets. Raises McpFailure; SERVER_ERROR with `rpc_code` -32601 where
        the server has no such method."""
        ...
