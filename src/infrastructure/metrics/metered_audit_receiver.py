"""Counts audit entries that were sent, and batches that were not."""

from collections.abc import Sequence

from application.audit.ports import AuditReceiver, Receipt
from domain.audit.chain_check import StoredLink
from infrastructure.metrics.instruments import Instruments


class MeteredAuditReceiver:
    def __init__(self, receiver: AuditReceiver, *, instruments: Instruments) -> None:
        self._receiver = receiver
        self._instruments = instruments

    async def send(self, links: Sequence[StoredLink]) -> Receipt:
        receipt = await self._receiver.send(links)
        if receipt.failure is None:
            self._instruments.audit_sent.inc(len(links))
        else:
            self._instruments.audit_failures.inc()
        return receipt

    async def close(self) -> None:
        await self._receiver.close()
