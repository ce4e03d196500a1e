"""The port through which agents are called as tools: a call is a run of the agent, and its answer what became of that."""

from dataclasses import dataclass
from typing import Protocol

from application.mcp.ports import ContentBlock, ContentKind, McpReply, ProgressCallback
from domain.identity.api_key import Principal
from domain.ids import GatewaySessionId, ToolCallId
from domain.json_value import JsonObject
from domain.tools.result import ToolResult
from domain.tools.tool import AgentBinding

DEPTH_META = "dragoman/agent-depth"
"""Key under which MCP servers are told in `_meta` how many agents deep a call is: one may lead back here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCaller:
    """For whom agents are called: `principal` makes the run, which belongs to the session. `depth` is how many agents have called
    each other to get here, 0 for a client of its own. With the same `retry_key` a session means the same call.
    Who does not `wait` is answered how the run stands once it is stored."""

    principal: Principal
    gateway_session_id: GatewaySessionId
    depth: int = 0
    retry_key: str | None = None
    waits: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCall:
    """A call that passed `CheckToolCall`."""

    caller: AgentCaller
    agent: AgentBinding
    tool_call_id: ToolCallId
    arguments: JsonObject
    timeout_s: float
    on_progress: ProgressCallback | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReply:
    """`result` is the answer as text. `run` says the same for programs: `{run_id, thread_id, status, output, error,
    incomplete_reason, pending, usage}`; None if there was no run."""

    result: ToolResult
    run: JsonObject | None = None


def as_mcp_reply(reply: AgentReply) -> McpReply:
    """The answer as a server gives one: the text, and the run as structured content."""
    text, is_error = reply.result.text, reply.result.is_error
    raw = {"content": [{"type": "text", "text": text}], "structuredContent": reply.run, "isError": is_error}
    block = ContentBlock(kind=ContentKind.TEXT, text=text)
    return McpReply(is_error=is_error, content=(block,), structured=reply.run, raw=raw)


class AgentCalls(Protocol):
    """Agents that can be called."""

    async def call(self, call: AgentCall) -> AgentReply:
        """Start a run of the agent and wait for its answer; who cancels this cancels the run. Raises UNAVAILABLE
        `storage_unavailable`."""
        ...
