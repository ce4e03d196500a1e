"""SettleGatewayCall: stores the outcome of a call with its audit entry, then traces it."""

import asyncio
from collections.abc import Sequence

from application.gateway.ports import GatewayLedger
from application.gateway.sessions.halt_session import HaltGatewaySession
from application.gateway.tools.gateway_toolset import GatewayToolset
from application.system.ports import Clock
from application.tracing.ports import GatewayCallRecord, GatewayTracer
from domain.errors import ServiceError
from domain.gateway.call import GatewayCall, GatewaySettlement, gateway_call_audit
from domain.gateway.session import GatewaySession
from domain.json_value import JsonValue
from domain.policy.decision import Decision
from domain.tools.result import ToolResult, outcome_unknown


class SettleGatewayCall:
    """Rules:
    - A call has one outcome. An interrupted call has an unknown one, which is stored even
      without a waiting client.
    - A canary token ends the session, however the call ended.
    """

    def __init__(
        self, *, ledger: GatewayLedger, halting: HaltGatewaySession, tracer: GatewayTracer, clock: Clock
    ) -> None:
        self._ledger = ledger
        self._halting = halting
        self._tracer = tracer
        self._clock = clock

    async def settle(
        self,
        session: GatewaySession,
        tools: GatewayToolset,
        call: GatewayCall,
        result: ToolResult,
        *,
        decision: Decision | None,
        duration_s: float = 0.0,
        asked: Sequence[JsonValue] = (),
    ) -> None:
        settlement = self._settlement(call, result, duration_s)
        await self._ledger.settle(settlement, gateway_call_audit(session, settlement, decision=decision, asked=asked))
        self._trace(session, tools, settlement)

    async def refuse(
        self,
        session: GatewaySession,
        tools: GatewayToolset,
        call: GatewayCall,
        refusal: ToolResult,
        *,
        decision: Decision | None,
    ) -> None:
        """Store a call that is not sent and was not stored before."""
        settlement = self._settlement(call, refusal, 0.0)
        await self._ledger.refuse(settlement, gateway_call_audit(session, settlement, decision=decision))
        self._trace(session, tools, settlement)

    async def cut_short(
        self,
        session: GatewaySession,
        tools: GatewayToolset,
        call: GatewayCall,
        *,
        decision: Decision | None,
        duration_s: float,
        asked: Sequence[JsonValue],
    ) -> None:
        """Store an unknown outcome after the client left. A cancellation does not stop the
        storing."""
        result, found = outcome_unknown(), tools.guard.seen(call.id)
        if found is not None:
            await self.halt(session, tools, call, result, found, decision=decision, duration_s=duration_s)
            return
        settling = self.settle(session, tools, call, result, decision=decision, duration_s=duration_s, asked=asked)
        await asyncio.shield(settling)

    async def halt(
        self,
        session: GatewaySession,
        tools: GatewayToolset,
        call: GatewayCall,
        result: ToolResult,
        canary_id: str,
        *,
        decision: Decision | None,
        duration_s: float,
    ) -> ServiceError:
        """Store the outcome of a call with a canary token, which ends its session. Returns the
        error for its client."""
        settlement = self._settlement(call, result, duration_s)
        halted = await self._halting.execute(session, settlement, decision, canary_id)
        self._trace(session, tools, settlement)
        return halted

    def _settlement(self, call: GatewayCall, result: ToolResult, duration_s: float) -> GatewaySettlement:
        return GatewaySettlement(call=call, result=result, duration_ms=round(duration_s * 1000), at=self._clock.now())

    def _trace(self, session: GatewaySession, tools: GatewayToolset, settlement: GatewaySettlement) -> None:
        if self._tracer.enabled:
            tool = tools.toolset.find(settlement.call.name)
            self._tracer.gateway_call(
                GatewayCallRecord(session=session, agent=tools.agent, tool=tool, settlement=settlement)
            )
