"""The service over HTTP: problem documents and network faults become failures of one line each."""

from collections.abc import AsyncGenerator, Mapping
from typing import cast

import httpx
import msgspec

from application.system.event_stream import EventStream, OversizedEvent
from application.system.unreachable import cause_of
from domain.json_value import JsonObject, JsonValue
from interfaces.cli.api import Query, ServerEvent
from interfaces.cli.failures import ApiProblem, ConnectionLost, ServiceUnreachable, UnexpectedAnswer

CONNECT_TIMEOUT_S = 5.0
ANSWER_TIMEOUT_S = 90.0
"""Longer than the service's own deadlines, such as the 30 s of a server's test."""
SILENCE_TIMEOUT_S = 45.0
"""A stream's heartbeat comes every 15 s; three missed ones mean a dead connection."""


class ServiceClient:
    """One service at `address`, with an API key or another authentication. Its creator closes
    it."""

    def __init__(
        self,
        *,
        address: str,
        api_key: str | None = None,
        auth: httpx.Auth | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        through_proxies: bool = True,
        max_event_bytes: int = 64 * 1024 * 1024,
    ) -> None:
        self._address = address
        self._max_event_bytes = max_event_bytes
        self._http = httpx.AsyncClient(
            base_url=address,
            headers={} if api_key is None else {"Authorization": f"Bearer {api_key}"},
            auth=auth,
            transport=transport,
            timeout=httpx.Timeout(ANSWER_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
            trust_env=through_proxies,
            # Loading CA certificates takes longer than a request without TLS.
            verify=address.startswith("https:"),
        )

    @property
    def address(self) -> str:
        return self._address

    async def aclose(self) -> None:
        await self._http.aclose()

    async def get(self, path: str, query: Query | None = None) -> JsonObject:
        return await self._json("GET", path, query=query)

    async def post(
        self, path: str, body: JsonObject | None = None, *, headers: Mapping[str, str] | None = None
    ) -> JsonObject:
        return await self._json("POST", path, body=body, headers=headers)

    async def upload(self, path: str, content: bytes, query: Query) -> JsonObject:
        headers = {"Content-Type": "application/octet-stream"}
        try:
            response = await self._http.post(path, params=dict(query), content=content, headers=headers)
        except httpx.HTTPError as exc:
            raise self._failure(exc) from exc
        if not response.is_success:
            raise _problem(response.status_code, response.content)
        document = _parsed(response.content)
        if not isinstance(document, dict):
            raise UnexpectedAnswer(f"POST {path} gave no JSON object")
        return document

    async def patch(self, path: str, body: JsonObject, *, headers: Mapping[str, str] | None = None) -> JsonObject:
        return await self._json("PATCH", path, body=body, headers=headers)

    async def delete(self, path: str) -> JsonObject:
        response = await self._send("DELETE", path)
        return _object(response, "DELETE", path) if response.content else {}

    async def events(self, path: str, *, after: str | None = None) -> AsyncGenerator[ServerEvent, None]:
        """Follow an event stream. Raises ConnectionLost when it is interrupted."""
        headers = {"Accept": "text/event-stream", **({"Last-Event-ID": after} if after else {})}
        timeout = httpx.Timeout(SILENCE_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
        decoder = EventStream(self._max_event_bytes)
        try:
            async with self._http.stream("GET", path, headers=headers, timeout=timeout) as response:
                if response.is_error:
                    raise _problem(response.status_code, await response.aread())
                async for chunk in response.aiter_bytes():
                    for event in decoder.feed(chunk):
                        if isinstance(event, OversizedEvent):
                            raise UnexpectedAnswer(f"GET {path} sent an event of {event.size} bytes")
                        if event.data:
                            data = event.data.decode("utf-8", "replace")
                            yield ServerEvent(id=event.id or None, type=event.type, data=data)
        except httpx.HTTPError as exc:
            raise self._failure(exc) from exc

    async def lines(self, path: str, query: Query | None = None) -> AsyncGenerator[str, None]:
        """Read line by line. Raises ConnectionLost on an interruption."""
        timeout = httpx.Timeout(SILENCE_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
        rest = b""
        try:
            async with self._http.stream(
                "GET", path, params=dict(query) if query else None, timeout=timeout
            ) as response:
                if response.is_error:
                    raise _problem(response.status_code, await response.aread())
                async for chunk in response.aiter_bytes():
                    # Not aiter_lines: it also splits at characters that JSON leaves unescaped.
                    *whole, rest = (rest + chunk).split(b"\n")
                    for line in whole:
                        yield line.decode("utf-8", "replace")
        except httpx.HTTPError as exc:
            raise self._failure(exc) from exc
        if rest:
            raise ConnectionLost(self._address)

    async def _json(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: JsonObject | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> JsonObject:
        response = await self._send(method, path, query=query, body=body, headers=headers)
        return _object(response, method, path)

    async def _send(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: JsonObject | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        given = dict(headers or {})
        content = None
        if body is not None:
            content = msgspec.json.encode(body)
            given["Content-Type"] = "application/json"
        try:
            response = await self._http.request(
                method, path, params=dict(query) if query else None, content=content, headers=given
            )
        except httpx.HTTPError as exc:
            raise self._failure(exc) from exc
        if not response.is_success:
            raise _problem(response.status_code, response.content)
        return response

    def _failure(self, exc: httpx.HTTPError) -> ServiceUnreachable | ConnectionLost:
        match exc:
            case httpx.ConnectTimeout() | httpx.PoolTimeout():
                return ServiceUnreachable(self._address, "it does not answer")
            case httpx.ConnectError():
                return ServiceUnreachable(self._address, cause_of(exc))
            case httpx.ProxyError() | httpx.UnsupportedProtocol():
                return ServiceUnreachable(self._address, "no connection")
            case httpx.TimeoutException():
                return ConnectionLost(self._address)
            case _:
                return ConnectionLost(self._address)


def _object(response: httpx.Response, method: str, path: str) -> JsonObject:
    document = _parsed(response.content)
    if not isinstance(document, dict):
        raise UnexpectedAnswer(f"{method} {path} gave no JSON object")
    return document


def _parsed(content: bytes) -> JsonValue:
    try:
        return cast(JsonValue, msgspec.json.decode(content))
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise UnexpectedAnswer("it is not JSON") from exc


class _Fault(msgspec.Struct):
    path: str = ""
    message: str = ""


class _Problem(msgspec.Struct):
    detail: str
    code: str
    errors: list[_Fault] = []


def _problem(status: int, content: bytes) -> ApiProblem | UnexpectedAnswer:
    try:
        problem = msgspec.json.decode(content, type=_Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return UnexpectedAnswer(f"status {status} without a problem document")
    return ApiProblem(
        status=status,
        code=problem.code,
        detail=problem.detail,
        violations=tuple((fault.path, fault.message) for fault in problem.errors),
    )
