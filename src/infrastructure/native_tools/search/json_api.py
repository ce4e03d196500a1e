"""One bounded exchange with a search provider that speaks JSON over HTTP, and the classification of
its failures."""

import asyncio
from http import HTTPStatus

import httpx
import msgspec

from infrastructure.native_tools.search.provider import SearchError, SearchFault

_MAX_BYTES = 4 * 1024 * 1024
_MAX_RETRY_AFTER_S = 86_400
_FAULTS: dict[int, SearchFault] = {
    HTTPStatus.BAD_REQUEST: SearchFault.INVALID_QUERY,
    HTTPStatus.UNPROCESSABLE_ENTITY: SearchFault.INVALID_QUERY,
    HTTPStatus.UNAUTHORIZED: SearchFault.REFUSED,
    HTTPStatus.FORBIDDEN: SearchFault.REFUSED,
    HTTPStatus.PAYMENT_REQUIRED: SearchFault.RATE_LIMITED,
    HTTPStatus.TOO_MANY_REQUESTS: SearchFault.RATE_LIMITED,
}


async def exchanged(
    client: httpx.AsyncClient,
    request: httpx.Request,
    *,
    timeout_s: float,
    exhausted: frozenset[int] = frozenset(),
) -> object:
    """The JSON response to a request. `exhausted` are additional statuses that mean that the plan
    has no searches left. Raises SearchError."""
    timeout = asyncio.timeout(timeout_s)
    try:
        async with timeout:
            response = await client.send(request, stream=True)
            try:
                if response.status_code != HTTPStatus.OK:
                    raise _refusal(response, exhausted)
                return msgspec.json.decode(await _bounded(response))
            finally:
                await response.aclose()
    except TimeoutError as error:
        if not timeout.expired():
            raise
        raise SearchError(SearchFault.TIMEOUT) from error
    except httpx.TimeoutException as error:
        raise SearchError(SearchFault.TIMEOUT) from error
    except httpx.HTTPError as error:
        raise SearchError(SearchFault.UNAVAILABLE, "no HTTP answer") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SearchError(SearchFault.UNAVAILABLE, "the answer is not JSON") from error


async def _bounded(response: httpx.Response) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > _MAX_BYTES:
            raise SearchError(SearchFault.UNAVAILABLE, "the answer is too large")
    return bytes(body)


def _refusal(response: httpx.Response, exhausted: frozenset[int]) -> SearchError:
    status = response.status_code
    if status in exhausted:
        return SearchError(SearchFault.RATE_LIMITED, f"HTTP {status}")
    fault = _FAULTS.get(status, SearchFault.UNAVAILABLE)
    after = response.headers.get("retry-after", "")
    return SearchError(
        fault,
        f"HTTP {status}",
        retry_after_s=min(int(after), _MAX_RETRY_AFTER_S) if after.isdecimal() and len(after) < 10 else None,
    )


def listed(value: object, *path: str) -> list[dict[str, object]]:
    """The objects in the list at `path`; empty if it is missing."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
