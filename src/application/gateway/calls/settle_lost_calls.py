"""SettleLostCalls: calls whose process died before it could say what became of them."""

import logging
from datetime import datetime, timedelta

from application.gateway.ports import ExpiredNotes, GatewayLedger, LostCalls
from application.system.ports import Clock
from domain.gateway.call import GatewaySettlement, gateway_call_audit
from domain.tools.result import outcome_unknown

logger = logging.getLogger(__name__)

EVERY_S = 60.0
ABANDON_AFTER_S = 2.0
"""How much longer than its own timeout a tool may take to stop before it is abandoned."""
SETTLE_WITHIN_S = 60.0
"""How long after that the outcome may take to be stored, and by how much clocks may differ, before a call counts as lost."""
_BATCH = 200


def due_at(recorded_at: datetime, timeout_s: float) -> datetime:
    """When a call that may take so long is lost if it is not settled."""
    return recorded_at + timedelta(seconds=timeout_s + ABANDON_AFTER_S + SETTLE_WITHIN_S)


class SettleLostCalls:
    """Rules: a call that was recorded and is not settled long after its own timeout (`GatewayCall.due_at`) is of a dead
    process, and its outcome is unknown; it is not sent again. Where this process has the database alone, whatever is there
    when it starts is lost. A call that is under way is never due, so processes that share a database need no lease for this;
    two that settle the same one store it once. What was left for others about calls, and was not fetched in time, is removed."""

    def __init__(
        self,
        *,
        calls: LostCalls,
        ledger: GatewayLedger,
        notes: ExpiredNotes,
        clock: Clock,
    ) -> None:
        self._calls = calls
        self._ledger = ledger
        self._notes = notes
        self._clock = clock

    async def execute(self, *, sole_owner: bool = False) -> int:
        """Settle them; how many were lost. `sole_owner`: nobody makes calls now, so all that are open are."""
        count = 0
        await self._notes.forget(before=self._clock.now())
        while True:
            now = self._clock.now()
            lost = await self._calls.lost(before=None if sole_owner else now, limit=_BATCH)
            for session, call in lost:
                settlement = GatewaySettlement(call=call, result=outcome_unknown(), duration_ms=0, at=now)
                audit = gateway_call_audit(session, settlement, decision=None)
                count += await self._ledger.settle(settlement, audit)
            if len(lost) < _BATCH:
                break
        if count:
            logger.warning("gateway calls of a dead process were settled as unknown", extra={"calls": count})
        return count
