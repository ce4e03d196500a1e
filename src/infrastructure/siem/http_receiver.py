"""Audit entries over HTTP: a batch of events in one request."""

from collections.abc import Mapping, Sequence

import msgspec

from application.audit.ports import Receipt
from application.webhooks.ports import WebhookSender
from domain.audit.chain_check import StoredLink
from infrastructure.siem.ocsf import OcsfEvents

_TOO_LARGE = 413
_MEDIA_TYPES = {"ndjson": "application/x-ndjson", "json": "application/json"}


class HttpAuditReceiver:
    """The `AuditReceiver` port. A status from 200 to 299 accepts the batch; redirects are not
    followed.

    `form` is `ndjson`, a JSON object a line, or `json`, an array.
    """

    def __init__(
        self, *, url: str, headers: Mapping[str, str], form: str, events: OcsfEvents, sender: WebhookSender
    ) -> None:
        self._url = url
        self._headers = {**headers, "content-type": _MEDIA_TYPES[form]}
        self._form = form
        self._events = events
        self._sender = sender

    async def send(self, links: Sequence[StoredLink]) -> Receipt:
        encoded = [msgspec.json.encode(self._events.of(link)) for link in links]
        body = b"\n".join((*encoded, b"")) if self._form == "ndjson" else b"[" + b",".join(encoded) + b"]"
        attempt = await self._sender.send(self._url, self._headers, body)
        if attempt.succeeded:
            return Receipt()
        return Receipt(
            failure=attempt.error, too_large=attempt.status == _TOO_LARGE, retry_after_s=attempt.retry_after_s
        )

    async def close(self) -> None:
        await self._sender.close()
