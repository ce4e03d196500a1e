"""What a client asks for with `tools/call`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from application.gateway.calls.ask_client import AskableClient
from application.mcp.log_messages import LogTap
from application.mcp.ports import ProgressCallback
from domain.gateway.session import GatewaySession
from domain.json_value import JsonObject, JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class CallGatewayToolCommand:
    """`name` is the client's; `meta` goes along to an MCP server. A `resumable` client comes back with the `request_state` that
    it is given while its call waits for an approval, or, with `responses`, for itself; any other is told to make the same call
    again once it is approved. `client` can be asked in the middle of the call. With the same `retry_key` it means the same call
    of an agent, of which nothing is waited for `as_task`. `param_headers` are the arguments as HTTP headers repeat them, or None."""

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
