"""Port for calling agents as tools: a call starts a run of the agent and returns its answer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from application.mcp.ports import ContentBlock, ContentKind, McpReply, ProgressCallback
from domain.identity.api_key import Principal
from domain.ids import AgentId, GatewaySessionId, RunId, ThreadId, ToolCallId
from domain.json_value import JsonObject
from domain.tools.result import ToolResult
from domain.tools.tool import AgentBinding

DEPTH_META = "dragoman/agent-depth"
"""Key in `_meta` of calls to MCP servers: the depth of nested agent calls, since a call may lead
back to Dragoman."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCaller:
    """The caller of an agent: a gateway session, or a run that this process executes (`run_id`).

    - `principal` starts the called run, which belongs to the caller.
    - `agent_id` is the agent of the session or run. Its allowlist and policies apply to the called
      run, too.
    - `thread_id` is the thread of the session or run, whose team the called run belongs to.
    - `depth` is the number of nested agent calls; 0 for a session's own client, and for a run that
      nothing called.
    - `retry_key` identifies repeated requests of one call within a session.
    - Without `waits`, the call returns the state of the run once it is stored.
    - `moves` says whether an interrupted call is made again by another worker, which then finds its
      run.
    """

    principal: Principal
    agent_id: AgentId
    thread_id: ThreadId
    gateway_session_id: GatewaySessionId | None = None
    run_id: RunId | None = None
    depth: int = 0
    retry_key: str | None = None
    waits: bool = True
    moves: Callable[[], bool] = lambda: False

    @property
    def id(self) -> str:
        """The run or the session."""
        return self.run_id or self.gateway_session_id or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCall:
    caller: AgentCaller
    agent: AgentBinding
    tool_call_id: ToolCallId
    arguments: JsonObject
    timeout_s: float
    on_progress: ProgressCallback | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReply:
    """The answer of an agent: `result` as text, and `run` as JSON `{run_id, thread_id, status,
    output, output_json, error, incomplete_reason, pending, usage}` (None if no run was started)."""

    result: ToolResult
    run: JsonObject | None = None


def as_mcp_reply(reply: AgentReply) -> McpReply:
    """The reply in the format of an MCP server: the text, and the run as structured content."""
    text, is_error = reply.result.text, reply.result.is_error
    raw = {"content": [{"type": "text", "text": text}], "structuredContent": reply.run, "isError": is_error}
    block = ContentBlock(kind=ContentKind.TEXT, text=text)
    return McpReply(is_error=is_error, content=(block,), structured=reply.run, raw=raw)


class AgentCalls(Protocol):
    async def call(self, call: AgentCall) -> AgentReply:
        """Start a run of the agent and wait for its answer. Cancelling the wait cancels the run,
        unless the caller moves. Raises: UNAVAILABLE `storage_unavailable`."""
        ...
