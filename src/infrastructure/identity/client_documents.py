"""Metadata documents of OAuth clients, over the guarded HTTP client: bounded in size and time, no
redirects."""

import json
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

from application.system.lru import LruCache
from application.system.ports import Clock
from application.system.shared_work import SharedWork
from application.workflows.http_request import HttpCall, HttpCaller, HttpCallFailed
from domain.errors import ServiceError, invalid
from domain.json_value import JsonObject

MAX_DOCUMENT = 10 * 1024
FRESH_S = 600.0
RETRY_S = 5.0
"""How long a failed read is not repeated."""
_TIMEOUT_S = 5.0
_MAX_KNOWN = 500
_OK = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """A document, or why there is none."""

    found: JsonObject | ServiceError
    valid_until: float


class HttpClientDocuments:
    """The `ClientDocuments` port. Documents are cached for `FRESH_S`, failures for `RETRY_S`."""

    def __init__(self, *, http: HttpCaller, clock: Clock) -> None:
        self._http = http
        self._clock = clock
        self._known: LruCache[str, _Known] = LruCache(_MAX_KNOWN)
        self._reading = SharedWork[str, _Known](name="client-metadata")

    async def read(self, url: str) -> JsonObject:
        known = self._known.get(url)
        if known is None or known.valid_until <= self._clock.monotonic():
            known = await self._reading.result(url, partial(self._read, url))
        if isinstance(known.found, ServiceError):
            raise known.found
        return known.found

    async def _read(self, url: str) -> _Known:
        found: JsonObject | ServiceError
        try:
            found, valid_s = await self._document(url), FRESH_S
        except ServiceError as error:
            found, valid_s = error, RETRY_S
        known = _Known(found=found, valid_until=self._clock.monotonic() + valid_s)
        self._known.put(url, known)
        return known

    async def _document(self, url: str) -> JsonObject:
        headers = (("accept", "application/json"),)
        call = HttpCall(method="GET", url=url, headers=headers, query=(), body=None, timeout_s=_TIMEOUT_S)
        try:
            answer = await self._http.send(call)
        except HttpCallFailed as failed:
            raise _unusable(url, f"cannot be reached: {str(failed).rstrip('.')}") from failed
        if answer.status != _OK:
            raise _unusable(url, f"answered with HTTP status {answer.status}")
        if len(answer.text) > MAX_DOCUMENT:
            raise _unusable(url, "sent a document that is too large")
        try:
            document = json.loads(answer.text)
        except (ValueError, RecursionError) as error:
            raise _unusable(url, "sent no JSON") from error
        if not isinstance(document, dict):
            raise _unusable(url, "sent no JSON object")
        return document


def _unusable(url: str, what: str) -> ServiceError:
    return invalid("invalid_client", f"The client's metadata cannot be read: {urlsplit(url).hostname} {what}.")
