"""ForwardAudit: send the sealed entries of the audit trail to a receiver outside, a SIEM."""

import logging

from application.audit.ports import AuditChain, AuditForwards, AuditReceiver, ForwardTurn, Receipt, Unsent
from application.system.periodic import when_due
from application.system.ports import Clock

logger = logging.getLogger(__name__)

FORWARD_EVERY_S = 2.0
LONGEST_PAUSE_S = 300.0
BATCH = 100
ORGANIZATIONS = 100


class ForwardAudit:
    """Rules:
    - Entries of an organization are sent in the order of its chain, at least once: the place is stored after the receiver
      has accepted a batch. A batch without a stored place is sent again.
    - One process sends at a time.
    - Organizations take turns, one batch each, the longest waiting first.
    - After a failure nothing is sent for a pause, which doubles up to five minutes. The receiver may ask for a longer one.
      No entry is skipped.
    - Memory is bounded by one batch. A batch that the receiver finds too large is halved.
    - Entries that retention removed before they were sent are reported in the log.
    """

    def __init__(
        self,
        *,
        forwards: AuditForwards,
        chain: AuditChain,
        receiver: AuditReceiver,
        turn: ForwardTurn,
        clock: Clock,
        batch: int = BATCH,
    ) -> None:
        self._forwards = forwards
        self._chain = chain
        self._receiver = receiver
        self._turn = turn
        self._clock = clock
        self._full = self._batch = batch
        self._pause_s = 0.0

    async def execute(self) -> float:
        """Send what is unsent; returns the seconds until the next look."""
        if not await self._forwards.unsent(1):
            return FORWARD_EVERY_S
        async with self._turn.taken() as is_ours:
            return await self._send_all() if is_ours else FORWARD_EVERY_S

    async def keep(self) -> None:
        """Send until cancelled."""
        await when_due(self.execute, task="audit-forwarding", retry_s=FORWARD_EVERY_S)

    async def close(self) -> None:
        await self._receiver.close()

    async def _send_all(self) -> float:
        while waiting := await self._forwards.unsent(ORGANIZATIONS):
            for each in waiting:
                receipt = await self._send(each)
                if receipt.failure is not None and not self._halved(receipt):
                    return self._pause_after(receipt)
        return FORWARD_EVERY_S

    async def _send(self, unsent: Unsent) -> Receipt:
        ids = {"organization_id": unsent.organization_id}
        if unsent.lost:
            logger.error("%d audit entries were removed by retention before they were sent", unsent.lost, extra=ids)
        links = await self._chain.links(unsent.organization_id, unsent.after, self._batch)
        present = [link for link in links if link.entry is not None]
        if len(present) < len(links):
            logger.error("sealed audit entries are missing: see `audit verify`", extra=ids)
        receipt = await self._receiver.send(present) if present else Receipt()
        if receipt.failure is None and links:
            await self._forwards.sent(unsent.organization_id, links[-1].link.number, self._clock.now())
            self._succeeded()
        return receipt

    def _succeeded(self) -> None:
        if self._pause_s:
            logger.info("sending audit entries resumed")
        self._pause_s = 0.0
        self._batch = min(self._batch * 2, self._full)

    def _halved(self, receipt: Receipt) -> bool:
        can_be = receipt.too_large and self._batch > 1
        if can_be:
            self._batch //= 2
        return can_be

    def _pause_after(self, receipt: Receipt) -> float:
        if not self._pause_s:
            logger.warning("audit entries cannot be sent; they wait: %s", receipt.failure)
        self._pause_s = min(max(self._pause_s * 2, FORWARD_EVERY_S), LONGEST_PAUSE_S)
        return max(self._pause_s, min(receipt.retry_after_s or 0.0, 3_600.0))
