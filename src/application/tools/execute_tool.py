"""Executes one checked tool call, of a native or MCP tool or of an agent, within its deadline; the outcome is always a value."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from application.mcp.caller_relay import CallerRelay
from application.mcp.log_messages import LogTap
from application.mcp.ports import ConnectionScope, McpProgress, McpReply, ProgressCallback
from application.tools import failure_text
from application.tools.agent_calls import AgentCall, AgentCaller, AgentCalls, as_mcp_reply
from application.tools.execute_mcp_tool import ExecuteMcpTool, ExecuteMcpToolCommand
from application.tools.ports import NativeTool, NativeToolContext, NativeToolError, NativeToolOutput
from application.tools.result_limits import limited_text, limited_value
from application.tools.result_text import TEXT_LIMIT_BYTES, cleaned, cut, value_text
from application.tools.wired_tools import ComponentTools
from domain.errors import is_storage_away
from domain.ids import GatewaySessionId, OrganizationId, RunId, ThreadId, ToolCallId
from domain.json_value import JsonObject
from domain.mcp.elicitation import InputRound
from domain.tools.capabilities import ToolType
from domain.tools.result import ToolResult
from domain.tools.tool import Tool

logger = logging.getLogger(__name__)

IDEMPOTENCY_META = "dragoman/idempotency-key"
"""Key under which a call's id travels in `_meta`, so that a server can recognize a repeated call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecuteToolCommand:
    """A call that passed `CheckToolCall`, of a run or of a gateway session. `timeout_s` is the smallest of what run, turn and tool allow; `input` what its
    server asked for before, with the answers. `max_results` and `max_result_bytes` are how much of its result policy lets
    through. `relay` asks whoever made the call what an MCP server asks in the middle of it. `holds_canary` is for native tools:
    see `NativeToolContext`. `on_reply` is given what an MCP server or an agent answered, if all of it may be passed on. `caller`
    is for calls of agents, which nobody else can make."""

    organization_id: OrganizationId
    thread_id: ThreadId
    tool_call_id: ToolCallId
    tool: Tool
    arguments: JsonObject
    timeout_s: float
    meta: dict[str, str]
    on_progress: ProgressCallback | None = None
    input: InputRound | None = None
    max_results: int | None = None
    max_result_bytes: int | None = None
    holds_canary: Callable[[str], bool] | None = None
    run_id: RunId | None = None
    gateway_session_id: GatewaySessionId | None = None
    on_reply: Callable[[McpReply], None] | None = None
    logs: LogTap | None = None
    caller: AgentCaller | None = None
    relay: CallerRelay | None = None


class ExecuteTool:
    """Rules: MCP tools go to `ExecuteMcpTool`, agents, where they may be called, to `agents`, components of workflows to
    `components`, native ones by kind; a timeout, a failure or a fault of ours is text for the
    model; text is cleaned of control characters and cut at 64 KiB, or where policy says, with a notice; so is a
    result with more entries than policy allows."""

    def __init__(
        self,
        *,
        native_tools: Mapping[ToolType, NativeTool],
        execute_mcp_tool: ExecuteMcpTool,
        agents: AgentCalls | None = None,
        components: ComponentTools | None = None,
    ) -> None:
        self._native_tools = native_tools
        self._execute_mcp_tool = execute_mcp_tool
        self._agents = agents
        self._components = components

    async def execute(self, command: ExecuteToolCommand) -> ToolResult:
        """The outcome. Raises InputAwaited, CapabilitiesMissing, and UNAVAILABLE `storage_unavailable`: that is no outcome of
        the call."""
        if command.tool.type is ToolType.MCP_TOOL and command.tool.component is None:
            result = await self._execute_mcp_tool.execute(
                ExecuteMcpToolCommand(
                    tool=command.tool,
                    tool_call_id=command.tool_call_id,
                    arguments=command.arguments,
                    scope=ConnectionScope(
                        organization_id=command.organization_id,
                        thread_id=command.thread_id,
                        run_id=command.run_id,
                        gateway_session_id=command.gateway_session_id,
                    ),
                    timeout_s=command.timeout_s,
                    meta=command.meta,
                    on_progress=command.on_progress,
                    input=command.input,
                    max_results=command.max_results,
                    on_reply=command.on_reply,
                    logs=command.logs,
                    relay=command.relay,
                )
            )
        elif command.tool.type is ToolType.AGENT:
            result = await self._call_agent(command)
        else:
            result = await self._run_native(command)
        if result.is_error:
            return result
        limit_bytes = TEXT_LIMIT_BYTES if command.max_result_bytes is None else command.max_result_bytes
        text = cut(cleaned(result.text), limit_bytes)
        return result if text is result.text else ToolResult.succeeded(text, result.images)

    async def _call_agent(self, command: ExecuteToolCommand) -> ToolResult:
        if self._agents is None or command.tool.agent is None or command.caller is None:
            return failure_text.unknown_tool(command.tool.name)
        reply = await self._agents.call(
            AgentCall(
                caller=command.caller,
                agent=command.tool.agent,
                tool_call_id=command.tool_call_id,
                arguments=command.arguments,
                timeout_s=command.timeout_s,
                on_progress=command.on_progress,
            )
        )
        if command.on_reply is not None and reply.run is not None:
            command.on_reply(as_mcp_reply(reply))
        return reply.result

    async def _run_native(self, command: ExecuteToolCommand) -> ToolResult:
        context = NativeToolContext(
            organization_id=command.organization_id,
            thread_id=command.thread_id,
            run_id=command.run_id,
            tool_call_id=command.tool_call_id,
            timeout_s=command.timeout_s,
            holds_canary=command.holds_canary,
        )
        deadline = asyncio.timeout(command.timeout_s)
        try:
            async with deadline:
                output = await self._output(command, context)
        except NativeToolError as error:
            return failure_text.native_failure(error.code, error.message)
        except Exception as error:
            if isinstance(error, TimeoutError) and deadline.expired():
                return failure_text.native_timeout(command.timeout_s)
            if is_storage_away(error):
                raise
            logger.exception(
                "Native tool failed unexpectedly",
                extra={
                    "organization_id": command.organization_id,
                    "thread_id": command.thread_id,
                    "run_id": command.run_id,
                    "gateway_session_id": command.gateway_session_id,
                    "tool_call_id": command.tool_call_id,
                    "tool": command.tool.name,
                },
            )
            return failure_text.native_unexpected(command.tool_call_id)
        value, notice = output.value, None
        if command.max_results is not None:
            most = command.max_results
            value, notice = limited_text(value, most) if isinstance(value, str) else limited_value(value, most)
        text = value_text(value)
        return ToolResult.succeeded(text if notice is None else f"{text}\n{notice}", output.images)

    async def _output(self, command: ExecuteToolCommand, context: NativeToolContext) -> NativeToolOutput:
        component = command.tool.component
        if component is None:
            return await self._native_tools[command.tool.type].run(command.arguments, context)
        if self._components is None:
            raise NativeToolError("tool_unavailable", "Tools of workflows are not executed here.")
        return await self._components.call(component, command.arguments, context)


def progress_data(progress: McpProgress) -> JsonObject:
    """The fields of a `tool.progress` event."""
    data: JsonObject = {"progress": progress.progress}
    if progress.total is not None:
        data["total"] = progress.total
    if progress.message is not None:
        data["message"] = progress.message
    return data
