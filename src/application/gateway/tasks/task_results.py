"""Results of tasks with an ended run, under the canary rules and limits of the session."""

from dataclasses import replace

from application.gateway.sessions.halt_session import HaltGatewaySession
from application.gateway.tools.gateway_toolset import GatewayToolsets
from application.runs.agent_reply import reply_of
from application.system.ports import Clock, IdSource
from application.tools.result_text import TEXT_LIMIT_BYTES, cleaned, cut
from domain.gateway.call import GatewayCall, GatewaySettlement
from domain.gateway.session import GatewaySession
from domain.gateway.task import TaskName
from domain.ids import ToolCallId
from domain.json_value import JsonObject
from domain.runs.run import Run
from domain.tools.capabilities import ToolType
from domain.tools.result import ToolResult


class TaskResults:
    """Rules:
    - Policy's limit cuts the text. Under a limit, the shape of the run is left out.
    - A canary token in the result, or in the shape of the run, halts the session.
    """

    def __init__(self, *, toolsets: GatewayToolsets, halting: HaltGatewaySession, clock: Clock, ids: IdSource) -> None:
        self._toolsets = toolsets
        self._halting = halting
        self._clock = clock
        self._ids = ids

    async def of(self, session: GatewaySession, name: TaskName, run: Run) -> tuple[ToolResult, JsonObject | None]:
        """The result, and the shape of the run for programs. Raises CONFLICT
        `gateway_session_halted`, FORBIDDEN."""
        tools = await self._toolsets.of(session)
        limit = tools.toolset.policy_of(name.tool).max_result_bytes
        reply = reply_of(run)
        text = cut(cleaned(reply.result.text), TEXT_LIMIT_BYTES if limit is None else limit)
        result, leaked = tools.guard.result(replace(reply.result, text=text))
        if leaked is None and reply.run is not None:
            leaked = tools.guard.arguments(reply.run)
        if leaked is not None:
            raise await self._halting.execute(session, self._settlement(session, name, result), None, leaked)
        return result, None if limit is not None else reply.run

    def _settlement(self, session: GatewaySession, name: TaskName, result: ToolResult) -> GatewaySettlement:
        """An entry for reading the result: the call itself was settled when its run began."""
        now = self._clock.now()
        call = GatewayCall(
            id=ToolCallId(self._ids.new("call")),
            session_id=session.id,
            organization_id=session.organization_id,
            name=name.tool,
            type=ToolType.AGENT,
            server_id=None,
            params={},
            recorded_at=now,
        )
        return GatewaySettlement(call=call, result=result, duration_ms=0, at=now)
