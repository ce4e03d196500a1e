"""TryTool: one call of an agent's tool by a person, as a gateway client would make it."""

from dataclasses import dataclass
from typing import cast

from application.gateway.calls.call_command import CallGatewayToolCommand
from application.gateway.calls.call_tool import CallGatewayTool
from application.gateway.sessions.gateway_access import GatewayAccess
from application.mcp.log_messages import LogTap, McpLogMessage
from application.mcp.ports import McpProgress
from application.system.ports import Clock
from application.tools.execute_tool import progress_data
from domain.approvals.approval import Approval
from domain.identity.api_key import Principal
from domain.json_value import JsonObject, JsonValue
from domain.mcp.log_level import LogLevel
from domain.tools.result import ToolResult

MAX_NOTES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class TryToolCommand:
    """`agent` is an id or a name, `tool` the model-facing name of one of its tools."""

    principal: Principal
    agent: str
    tool: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedTool:
    """`reply` is the unchanged result of the MCP server, None if policy does not pass it on or
    nothing was sent. `notes` are its progress and log messages. `waiting` is the approval that the
    call needs."""

    result: ToolResult
    reply: JsonValue
    notes: tuple[JsonObject, ...]
    duration_s: float
    waiting: Approval | None


class TryTool:
    """Rules:
    - Requires `runner`. The call belongs to the caller's own gateway session with the agent: the
      agent's policy, its limits, the ledger, the audit trail and the canary rules apply as for
      every client.
    - A call that requires approval returns at once. The same call again, once approved, is sent.
    - What a server asks during the call is declined, because nothing answers it.

    Raises: FORBIDDEN, and what CallGatewayTool raises.
    """

    def __init__(self, *, access: GatewayAccess, call_tool: CallGatewayTool, clock: Clock) -> None:
        self._access = access
        self._call_tool = call_tool
        self._clock = clock

    async def execute(self, command: TryToolCommand) -> TriedTool:
        session = await self._access.of_principal(command.principal, command.agent)
        notes: list[JsonObject] = []

        def note(kind: str, data: JsonObject) -> None:
            if len(notes) < MAX_NOTES:
                notes.append({"method": kind, "params": data})

        async def on_progress(progress: McpProgress) -> None:
            note("notifications/progress", progress_data(progress))

        async def on_log(message: McpLogMessage) -> None:
            note("notifications/message", message.as_json())

        began = self._clock.monotonic()
        answer = await self._call_tool.execute(
            CallGatewayToolCommand(
                session=session,
                name=command.tool,
                arguments=command.arguments,
                on_progress=on_progress,
                logs=LogTap(level=LogLevel.DEBUG, tell=on_log),
                as_task=True,
            )
        )
        return TriedTool(
            result=answer.result,
            reply=None if answer.reply is None else cast(JsonValue, answer.reply.raw),
            notes=tuple(notes),
            duration_s=self._clock.monotonic() - began,
            waiting=None if answer.waiting is None else answer.waiting.approval,
        )
