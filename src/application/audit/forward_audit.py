"""ForwardAudit: send the sealed entries of the audit trail to a receiver outside, a SIEM."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from application.audit.ports import AuditChain, AuditForwards, AuditReceiver, ForwardTurn, Receipt, Unsent
from application.system.periodic import when_due
from application.system.ports import Clock
from domain.audit.chain_check import StoredLink
from domain.ids import OrganizationId

logger = logging.getLogger(__name__)

FORWARD_EVERY_S = 2.0
LONGEST_PAUSE_S = 300.0
LONGEST_ASKED_S = 3_600.0
BATCH = 100
BATCH_CHARACTERS = 1_000_000
ORGANIZATIONS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trouble:
    """Of an organization: how many entries the next batch has at most (0: as many as usual), and
    the pause after failures."""

    batch: int = 0
    pause_s: float = 0.0
    until: float = 0.0


_NONE = _Trouble()


class ForwardAudit:
    """Rules:
    - Entries of an organization are sent in the order of its chain, at least once: the place is
      stored after the receiver has accepted a batch. A batch without a stored place is sent again.
    - One process sends at a time.
    - Organizations take turns, one batch each, the longest waiting first.
    - After a failure nothing of that organization is sent for a pause, which doubles up to five
      minutes; the others are sent, those without a failure first. If the receiver asks for a pause,
      nothing is sent for so long. No entry is skipped.
    - A process that takes the turn from another one does not know of its pauses.
    - A batch is bounded in entries and in the length of their texts. One that the receiver finds
      too large is halved.
    - Entries that were removed before they were sent are reported in the log, once.
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
        self._batch = batch
        self._troubles: dict[OrganizationId, _Trouble] = {}

    async def execute(self) -> float:
        """Send what is unsent; returns the seconds until the next look."""
        if not await self._due():
            return FORWARD_EVERY_S
        async with self._turn.taken() as is_ours:
            return await self._send_all() if is_ours else FORWARD_EVERY_S

    async def keep(self) -> None:
        """Send until cancelled."""
        await when_due(self.execute, task="audit-forwarding", retry_s=FORWARD_EVERY_S)

    async def close(self) -> None:
        await self._receiver.close()

    async def _due(self) -> list[Unsent]:
        """Organizations that are not in a pause, those without a failure first."""
        now = self._clock.monotonic()
        found = await self._forwards.unsent(ORGANIZATIONS + len(self._troubles))
        due = [each for each in found if self._trouble(each).until <= now]
        return sorted(due, key=lambda each: self._trouble(each).pause_s > 0)

    async def _send_all(self) -> float:
        while due := await self._due():
            for each in due:
                receipt = await self._send(each)
                if receipt.retry_after_s:
                    return max(min(receipt.retry_after_s, LONGEST_ASKED_S), FORWARD_EVERY_S)
        return FORWARD_EVERY_S

    async def _send(self, unsent: Unsent) -> Receipt:
        found = await self._chain.links(
            unsent.organization_id, unsent.after, self._trouble(unsent).batch or self._batch
        )
        links = _bounded(found)
        present = [link for link in links if link.entry is not None]
        receipt = await self._receiver.send(present) if present else Receipt()
        if receipt.failure is not None:
            await self._failed(unsent, len(links), receipt)
        elif links:
            await self._forwards.sent(unsent.organization_id, links[-1].link.number, self._clock.now())
            self._succeeded(unsent, links, missing=len(links) - len(present))
        return receipt

    def _trouble(self, unsent: Unsent) -> _Trouble:
        return self._troubles.get(unsent.organization_id, _NONE)

    def _succeeded(self, unsent: Unsent, links: Sequence[StoredLink], *, missing: int) -> None:
        ids = {"organization_id": unsent.organization_id}
        lost = links[-1].link.number - (unsent.after - unsent.lost) - len(links)
        if lost:
            logger.error("%d audit entries were removed before they were sent", lost, extra=ids)
        if missing:
            logger.error("sealed audit entries are missing: see `audit verify`", extra=ids)
        trouble = self._troubles.pop(unsent.organization_id, _NONE)
        if trouble.pause_s:
            logger.info("sending audit entries resumed", extra=ids)
        if 0 < trouble.batch * 2 < self._batch:
            self._troubles[unsent.organization_id] = _Trouble(batch=trouble.batch * 2)

    async def _failed(self, unsent: Unsent, count: int, receipt: Receipt) -> None:
        id, trouble = unsent.organization_id, self._trouble(unsent)
        if receipt.too_large and count > 1:
            self._troubles[id] = replace(trouble, batch=count // 2)
            return
        if not trouble.pause_s:
            # From now on the place is stored: what retention removes during the pause is counted.
            await self._forwards.sent(id, unsent.after - unsent.lost, self._clock.now())
            logger.warning(
                "audit entries cannot be sent; they wait: %s", receipt.failure, extra={"organization_id": id}
            )
        pause_s = min(max(trouble.pause_s * 2, FORWARD_EVERY_S), LONGEST_PAUSE_S)
        self._troubles[id] = replace(trouble, pause_s=pause_s, until=self._clock.monotonic() + pause_s)


def _bounded(links: Sequence[StoredLink]) -> Sequence[StoredLink]:
    """The first links, with texts of at most `BATCH_CHARACTERS` together, but at least one link."""
    sizes = accumulate(sum(len(part) for part in link.entry or () if isinstance(part, str)) for link in links)
    return links[: max(sum(size <= BATCH_CHARACTERS for size in sizes), 1)]
