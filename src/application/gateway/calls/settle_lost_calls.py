"""SettleLostCalls: settles calls whose process ended before it stored their outcome."""

import logging
from datetime import datetime, timedelta

from application.gateway.ports import ExpiredNotes, GatewayLedger, LostCalls
from application.system.ports import Clock
from domain.gateway.call import GatewaySettlement, gateway_call_audit
from domain.tools.result import outcome_unknown

logger = logging.getLogger(__name__)

EVERY_S = 60.0
ABANDON_AFTER_S = 2.0
"""How long a tool may take to stop after its own timeout before it is abandoned."""
SETTLE_WITHIN_S = 60.0
"""How long storing the outcome may take after that, including clock differences, before a call is
lost."""
_BATCH = 200


def due_at(recorded_at: datetime, timeout_s: float) -> datetime:
    """When an unsettled call with this timeout is lost."""
    return recorded_at + timedelta(seconds=timeout_s + ABANDON_AFTER_S + SETTLE_WITHIN_S)


class SettleLostCalls:
    """Rules:
    - A recorded call without an outcome after `GatewayCall.due_at` is lost: its outcome is
      unknown, and it is not sent again.
    - A process that owns the database alone settles all open calls when it starts.
    - A running call is never due, so processes that share a database need no lease. An outcome is
      stored once.
    - Expired notes about calls are removed.
    """

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
        """Settle lost calls and return their number. `sole_owner`: no call is running, so all open
        calls are lost."""
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
            logger.warning("settled gateway calls of an ended process as unknown", extra={"calls": count})
        return count
