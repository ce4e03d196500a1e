"""Sends webhooks through the egress guard: resolved addresses are vetted and connected to, and
redirects are not followed."""

import asyncio
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx
from aiohttp.abc import AbstractResolver

from application.system.ports import Clock
from domain.webhooks.delivery import Attempt, SendFailure
from infrastructure.http.client import HttpClients
from infrastructure.http.egress import EgressBlockedError, EgressPolicy
from infrastructure.http.sessions import causes_of, refusal_in

TIMEOUT_S = 15.0
"""For everything from the name look-up to the end of the response; much less than the lease of a
delivery."""
MAX_ANSWER_BYTES = 64 * 1024
"""The response body is ignored. It is read up to this size so that the connection can be reused."""


class HttpWebhookSender:
    """The `WebhookSender` port: one client for all receivers, without cookies or credentials."""

    def __init__(
        self,
        *,
        egress: EgressPolicy,
        user_agent: str,
        clock: Clock,
        timeout_s: float = TIMEOUT_S,
        resolver: AbstractResolver | None = None,
        http: HttpClients | None = None,
    ) -> None:
        self._egress = egress
        self._user_agent = user_agent
        self._clock = clock
        self._timeout_s = timeout_s
        self._resolver = resolver
        self._http = http or HttpClients()
        self._client: httpx.AsyncClient | None = None

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Attempt:
        try:
            self._egress.check(url)
            async with asyncio.timeout(self._timeout_s):
                return await self._post(url, headers, body)
        except TimeoutError:
            return Attempt(failure=SendFailure.TIMEOUT)
        except EgressBlockedError:
            return Attempt(failure=SendFailure.BLOCKED)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:  # OSError: trusted certificates cannot be loaded
            return Attempt(failure=_failure(error))

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _post(self, url: str, headers: Mapping[str, str], body: bytes) -> Attempt:
        client = self._opened()
        request = client.build_request(
            "POST",
            url,
            content=body,
            headers={
                "content-type": "application/json",
                **headers,
                "user-agent": self._user_agent,
                "accept-encoding": "identity",
            },
        )
        response = await client.send(request, stream=True)
        try:
            await _read_some(response)
            return Attempt(
                status=response.status_code,
                retry_after_s=_retry_after_s(response.headers.get("retry-after"), self._clock.now()),
            )
        finally:
            await response.aclose()

    def _opened(self) -> httpx.AsyncClient:
        if self._client is None:
            self._client = self._http.create(
                egress=self._egress,
                resolver=self._resolver,
                connect_timeout_s=self._timeout_s,
                pool_timeout_s=self._timeout_s,
                read_timeout_s=self._timeout_s,
                max_connections=100,
                keepalive_s=15.0,
            )
        return self._client


async def _read_some(response: httpx.Response) -> None:
    """Drain the response. The status is valid even if the body breaks off."""
    read = 0
    try:
        async for chunk in response.aiter_raw():
            read += len(chunk)
            if read > MAX_ANSWER_BYTES:
                return
    except httpx.HTTPError:
        return


def _retry_after_s(value: str | None, now: datetime) -> float | None:
    """Seconds from a number or a date (RFC 9110, section 10.2.3); None for anything else."""
    if value is None:
        return None
    if value.strip().isdecimal():
        return float(value) if len(value) < 10 else None
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):  # offsets with too many digits
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max((moment - now).total_seconds(), 0.0)


def _failure(error: Exception) -> SendFailure:
    if refusal_in(error) is not None:
        return SendFailure.BLOCKED
    if any(isinstance(cause, ssl.SSLError) for cause in causes_of(error)):
        return SendFailure.INSECURE
    if isinstance(error, httpx.TimeoutException):
        return SendFailure.TIMEOUT
    if isinstance(error, httpx.ConnectError | httpx.UnsupportedProtocol | httpx.InvalidURL):
        return SendFailure.UNREACHABLE
    return SendFailure.BROKEN
