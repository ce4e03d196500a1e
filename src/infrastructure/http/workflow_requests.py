"""HTTP requests of workflows: egress guard, bounded size and time, no redirects."""

import asyncio

import httpx

from application.workflows.http_request import HttpAnswer, HttpCall, HttpCallFailed
from infrastructure.http.client import HttpClients
from infrastructure.http.egress import EgressBlockedError, EgressPolicy
from infrastructure.http.sessions import refusal_in

MAX_BYTES = 4 * 1024 * 1024


class GuardedHttpCaller:
    """The `HttpCaller` port. The client is created at the first request."""

    def __init__(self, *, egress: EgressPolicy, user_agent: str, http: HttpClients | None = None) -> None:
        self._egress = egress
        self._user_agent = user_agent
        self._http = http or HttpClients()
        self._client: httpx.AsyncClient | None = None

    async def send(self, call: HttpCall) -> HttpAnswer:
        """The response, with any status."""
        try:
            async with asyncio.timeout(call.timeout_s):
                return await self._answer(call)
        except TimeoutError as error:
            message = f"The server did not answer within {call.timeout_s:g} s."
            raise HttpCallFailed("http_timeout", message, retryable=True) from error
        except EgressBlockedError as blocked:
            raise HttpCallFailed("http_blocked", blocked.reason, retryable=False) from blocked
        except (httpx.InvalidURL, httpx.UnsupportedProtocol, UnicodeError) as error:
            raise HttpCallFailed("http_request_invalid", "The request has no valid URL.", retryable=False) from error
        except httpx.TimeoutException as error:
            raise HttpCallFailed("http_timeout", "The server did not answer in time.", retryable=True) from error
        except httpx.HTTPError as error:
            if (blocked_by := refusal_in(error)) is not None:
                raise HttpCallFailed("http_blocked", blocked_by.reason, retryable=False) from error
            raise HttpCallFailed("http_failed", "The server could not be reached.", retryable=True) from error

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _answer(self, call: HttpCall) -> HttpAnswer:
        if self._client is None:
            self._client = self._http.create(egress=self._egress)
        url = httpx.URL(call.url)
        if call.query:
            url = url.copy_merge_params(list(call.query))
        self._egress.check(str(url))
        headers = [("User-Agent", self._user_agent), ("Accept", "application/json, */*;q=0.5"), *call.headers]
        request = self._client.build_request(call.method, url, headers=headers, content=call.body)
        response = await self._client.send(request, stream=True)
        try:
            data = bytearray()
            async for chunk in response.aiter_bytes():
                data += chunk
                if len(data) > MAX_BYTES:
                    message = f"The response is larger than {MAX_BYTES // (1024 * 1024)} MiB."
                    raise HttpCallFailed("http_answer_too_large", message, retryable=False)
        finally:
            await response.aclose()
        media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        return HttpAnswer(
            status=response.status_code, media_type=media_type, text=_decoded(bytes(data), response.charset_encoding)
        )


def _decoded(data: bytes, charset: str | None) -> str:
    try:
        return data.decode(charset or "utf-8", "replace")
    except LookupError:
        return data.decode("utf-8", "replace")
