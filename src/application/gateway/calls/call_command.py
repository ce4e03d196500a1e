"""The command of CallGatewayTool: one `tools/call` request."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from application.gateway.calls.ask_client import AskableClient
from application.mcp.log_messages import LogTap
from application.mcp.ports import ProgressCallback
from domain.gateway.session import GatewaySession, ToolSearch
from domain.json_value import JsonObject, JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class CallGatewayToolCommand:
    """`name` is the client's name of the tool; `meta` is passed to MCP servers.

    - A `resumable` client sends the `request_state` back after an approval, or with `responses`
      to questions. Other clients repeat the same call after the approval.
    - `client` can be asked in the middle of the call.
    - Requests with the same `retry_key` are one call of an agent. `as_task`: return without
      waiting for the agent.
    - `param_headers` are the arguments repeated as HTTP headers, or None.
    - `tool_search`: whether the client is listed meta tools.
    - `renders_apps`: the call may come from an app that the client renders.
    """

    session: GatewaySession
    name: str
    arguments: JsonObject
    meta: Mapping[str, str] = field(default_factory=dict)
    on_progress: ProgressCallback | None = None
    logs: LogTap | None = None
    resumable: bool = False
    request_state: str | None = None
    retry_key: str | None = None
    as_task: bool = False
    client: AskableClient | None = None
    responses: Mapping[str, JsonValue] = field(default_factory=dict)
    param_headers: Mapping[str, str | None] | None = None
    tool_search: ToolSearch = ToolSearch.AUTO
    renders_apps: bool = False
