"""Executes one checked tool call (native tool, MCP tool, agent) within its deadline. The outcome is
always a value."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace

from application.mcp.ports import McpProgress
from application.tools import failure_text
from application.tools.agent_calls import AgentCall, AgentCalls, as_mcp_reply
from application.tools.call_context import ToolCallContext
from application.tools.execute_mcp_tool import ExecuteMcpTool
from application.tools.ports import NativeTool, NativeToolContext, NativeToolError, NativeToolOutput
from application.tools.result_limits import limited_text, limited_value
from application.tools.result_text import TEXT_LIMIT_BYTES, cleaned, cut, value_text
from application.tools.wired_tools import ComponentTools
from domain.errors import is_storage_away
from domain.json_value import JsonObject
from domain.tools.capabilities import ToolType
from domain.tools.result import ToolResult
from domain.tools.tool import Tool

logger = logging.getLogger(__name__)


class ExecuteTool:
    """Rules:
    - MCP tools go to `ExecuteMcpTool`, agents to `agents`, workflow components to `components`,
      native tools to the tool of their kind.
    - A timeout, a failure or an internal error becomes text for the model.
    - Control characters are removed; text is truncated at 64 KiB or at policy's limit, with a
      notice.
    - A result with more entries than policy allows is truncated.
    """

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

    async def execute(self, tool: Tool, arguments: JsonObject, context: ToolCallContext) -> ToolResult:
        """Execute a call that passed `CheckToolCall`. Raises: InputAwaited, CapabilitiesMissing,
        UNAVAILABLE `storage_unavailable`."""
        if tool.type is ToolType.MCP_TOOL and tool.component is None:
            result = await self._execute_mcp_tool.execute(tool, arguments, context)
        elif tool.type is ToolType.AGENT:
            result = await self._call_agent(tool, arguments, context)
        else:
            result = await self._run_native(tool, arguments, context)
        if result.is_error:
            return result
        limit_bytes = TEXT_LIMIT_BYTES if context.max_result_bytes is None else context.max_result_bytes
        text = cut(cleaned(result.text), limit_bytes)
        return result if text is result.text else replace(result, text=text)

    async def _call_agent(self, tool: Tool, arguments: JsonObject, context: ToolCallContext) -> ToolResult:
        if self._agents is None or tool.agent is None or context.caller is None:
            return failure_text.unknown_tool(tool.name)
        reply = await self._agents.call(
            AgentCall(
                caller=context.caller,
                agent=tool.agent,
                tool_call_id=context.tool_call_id,
                arguments=arguments,
                timeout_s=context.timeout_s,
                on_progress=context.on_progress,
            )
        )
        if context.on_reply is not None and reply.run is not None:
            context.on_reply(as_mcp_reply(reply))
        return reply.result

    async def _run_native(self, tool: Tool, arguments: JsonObject, context: ToolCallContext) -> ToolResult:
        scope = context.scope
        assert scope.thread_id is not None  # runs and gateway sessions have a thread
        native_context = NativeToolContext(
            organization_id=scope.organization_id,
            thread_id=scope.thread_id,
            run_id=scope.run_id,
            tool_call_id=context.tool_call_id,
            timeout_s=context.timeout_s,
            holds_canary=context.holds_canary,
        )
        deadline = asyncio.timeout(context.timeout_s)
        try:
            async with deadline:
                output = await self._output(tool, arguments, native_context)
        except NativeToolError as error:
            return failure_text.native_failure(error.code, error.message)
        except Exception as error:
            if isinstance(error, TimeoutError) and deadline.expired():
                return failure_text.native_timeout(context.timeout_s)
            if is_storage_away(error):
                raise
            logger.exception(
                "Native tool failed unexpectedly",
                extra={
                    "organization_id": scope.organization_id,
                    "thread_id": scope.thread_id,
                    "run_id": scope.run_id,
                    "gateway_session_id": scope.gateway_session_id,
                    "tool_call_id": context.tool_call_id,
                    "tool": tool.name,
                },
            )
            return failure_text.native_unexpected(context.tool_call_id)
        value, notice = output.value, None
        if context.max_results is not None:
            most = context.max_results
            value, notice = limited_text(value, most) if isinstance(value, str) else limited_value(value, most)
        text = value_text(value)
        return ToolResult.succeeded(text if notice is None else f"{text}\n{notice}", output.images)

    async def _output(self, tool: Tool, arguments: JsonObject, context: NativeToolContext) -> NativeToolOutput:
        component = tool.component
        if component is None:
            return await self._native_tools[tool.type].run(arguments, context)
        if self._components is None:
            raise NativeToolError("tool_unavailable", "Tools of workflows are not executed here.")
        return await self._components.call(component, arguments, context)


def progress_data(progress: McpProgress) -> JsonObject:
    data: JsonObject = {"progress": progress.progress}
    if progress.total is not None:
        data["total"] = progress.total
    if progress.message is not None:
        data["message"] = progress.message
    return data
