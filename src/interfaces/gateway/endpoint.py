"""The gateway's HTTP endpoint: checks who asks and from where, finds out which generation is spoken, and carries answers.

A plain ASGI application, so that a call costs no routing and no parsing that it does not need.
"""

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import parse_qs

import msgspec
from litestar.types import HTTPScope, Receive, Send

from application.gateway.gateway_access import GatewayAccess
from application.mcp.oauth_client import PublicAddress
from domain.errors import ErrorKind, ServiceError
from domain.gateway.session import GatewaySession
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.json_value import JsonValue
from interfaces.gateway.generations import (
    LEGACY_VERSIONS,
    MODERN_VERSIONS,
    VERSION_HEADER,
    Envelope,
    legacy_version,
    modern_envelope,
    negotiated,
    speaks_modern,
    unsupported_version,
)
from interfaces.gateway.messages import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    RATE_LIMITED,
    RequestId,
    RpcError,
    RpcMessage,
    RpcResponse,
    decoded,
    error_json,
    id_of,
    read_message,
    result_json,
)
from interfaces.gateway.methods import Exchange, GatewayMethods
from interfaces.gateway.origins import refused_origin
from interfaces.http.requests import client_left

logger = logging.getLogger(__name__)

MAX_BODY_BYTES = 10 * 1024 * 1024
MAX_BATCH = 50
QUIET_S = 10.0
"""How long a request may go unanswered before its answer becomes a stream, which comments keep alive."""

_JSON = (b"content-type", b"application/json")
_STREAM = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]
_PING = b": keep-alive\n\n"
METADATA_PATH = "/.well-known/oauth-protected-resource"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """A request whose answer may be a stream: the headers it came with, and the answer to come."""

    session: GatewaySession
    envelope: Envelope
    message: RpcMessage
    takes_stream: bool


class GatewayEndpoint:
    """Serves `/mcp`: POST, one message at a time (a 2025-03-26 client may send several); nothing is pushed, so GET and DELETE
    are not allowed."""

    def __init__(self, *, access: GatewayAccess, methods: GatewayMethods, address: PublicAddress) -> None:
        self._access = access
        self._methods = methods
        self._address = address
        self._calls: dict[tuple[str, RequestId], asyncio.Task[dict[str, object]]] = {}
        self._unfinished: set[asyncio.Task[dict[str, object]]] = set()

    async def __call__(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        """One request."""
        headers, duplicated = _headers(scope)
        refused = refused_origin(headers, self._address.url)
        if refused is not None:
            await _send_error(send, None, RpcError(INVALID_REQUEST, refused, status=403))
            return
        try:
            session = await self._opened(scope, headers)
        except ServiceError as error:
            await self._send_refusal(send, error)
            return
        scope["auth"] = Principal(organization_id=session.organization_id, key_id=session.created_by, role=Role.RUNNER)
        if scope["method"] != "POST":
            await _send(send, 405, b"", [(b"allow", b"POST")])
            return
        request_id: RequestId | None = None
        try:
            _check_media(headers)
            value = decoded(await _body(receive, headers))
            if isinstance(value, list):
                await self._batch(session, headers, value, send)
                return
            request_id = id_of(value)
            message = read_message(value)
            if isinstance(message, RpcResponse):
                # Nobody asks clients anything here, so there is nothing to be answered.
                raise RpcError(INVALID_REQUEST, "No request of ours is waiting for this answer.", status=400)
            if message.id is None:
                await self._notified(session, headers, message, send)
                return
            call = _Call(
                session=session,
                envelope=_envelope(headers, message, duplicated),
                message=message,
                takes_stream="text/event-stream" in headers.get("accept", ""),
            )
            await self._answer(call, receive, send)
        except RpcError as error:
            await _send_error(send, request_id, error)

    async def _opened(self, scope: HTTPScope, headers: dict[str, str]) -> GatewaySession:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise ServiceError("token_missing", ErrorKind.UNAUTHENTICATED, "Send a session token as a bearer token.")
        agent = parse_qs(scope["query_string"].decode("latin-1")).get("agent") if scope["query_string"] else None
        return await self._access.open(token.strip(), agent=agent[0] if agent else None)

    async def _send_refusal(self, send: Send, error: ServiceError) -> None:
        """Why nothing is opened. Only an unknown token is told by the status: some clients take any other for a dead session."""
        headers = [_JSON]
        status = 200
        if error.kind is ErrorKind.UNAUTHENTICATED:
            status = 401
            base = self._address.url or ""
            challenge = f'Bearer realm="dragoman", resource_metadata="{base}{METADATA_PATH}/mcp"'
            headers.append((b"www-authenticate", challenge.encode("latin-1", "replace")))
        elif error.kind is ErrorKind.UNAVAILABLE:
            status = 503
        elif error.kind is ErrorKind.FORBIDDEN:
            status = 403
        fault = error_json(None, _refusal(error))
        await _send(send, status, msgspec.json.encode(fault), headers)

    async def _batch(
        self, session: GatewaySession, headers: dict[str, str], values: list[JsonValue], send: Send
    ) -> None:
        """Several messages at a time, which 2025-03-26 has and no other version."""
        if not 0 < len(values) <= MAX_BATCH or headers.get(VERSION_HEADER, LEGACY_VERSIONS[0]) != LEGACY_VERSIONS[0]:
            raise RpcError(INVALID_REQUEST, "The body must be a single JSON-RPC message.", status=400)
        envelope = Envelope(version=LEGACY_VERSIONS[0], capabilities={})

        async def answered(value: JsonValue) -> dict[str, object] | None:
            try:
                message = read_message(value)
                if isinstance(message, RpcResponse) or message.id is None:
                    return None
                exchange = Exchange(session=session, envelope=envelope, message=message)
                return result_json(message.id, await self._result(exchange))
            except RpcError as error:
                return error_json(id_of(value), error)

        answers = [answer for answer in await asyncio.gather(*map(answered, values)) if answer is not None]
        if answers:
            await _send(send, 200, msgspec.json.encode(answers), [_JSON])
        else:
            await _send(send, 202, b"", [])

    async def _notified(
        self, session: GatewaySession, headers: dict[str, str], message: RpcMessage, send: Send
    ) -> None:
        """A notification is taken note of, or nothing is made of it; either way it is not answered."""
        version = headers.get(VERSION_HEADER)
        if version is not None and version not in (*LEGACY_VERSIONS, *MODERN_VERSIONS):
            raise unsupported_version(version)
        cancelled = message.params.get("requestId")
        if message.method == "notifications/cancelled" and isinstance(cancelled, str | int):
            task = self._calls.get((session.id, cancelled))
            if task is not None:
                task.cancel()
        await _send(send, 202, b"", [])

    async def _answer(self, call: _Call, receive: Receive, send: Send) -> None:
        """Answer in JSON; or, if the client takes that, as a stream from the first thing that is to be told before the answer,
        or when it takes long. Of the newer generation, a client that leaves cancels what it asked for; of the older, that goes on
        until it is told not to (MCP 2025-11-25, transports: a disconnection is no cancellation)."""
        told: asyncio.Queue[dict[str, object]] = asyncio.Queue()
        exchange = Exchange(
            session=call.session,
            envelope=call.envelope,
            message=call.message,
            tell=told.put if call.takes_stream else None,
        )
        task = asyncio.create_task(self._result(exchange))
        key = (call.session.id, call.message.id or 0)
        self._unfinished.add(task)
        task.add_done_callback(lambda done: self._finished(key, done))
        if not call.envelope.is_modern:
            self._calls[key] = task
        leaving = asyncio.create_task(client_left(receive))
        try:
            await self._carry(call, task, told, leaving, send)
        finally:
            leaving.cancel()
            if not task.done() and call.envelope.is_modern:
                task.cancel()
                with suppress(asyncio.CancelledError, RpcError):
                    await task

    def _finished(self, key: tuple[str, RequestId], task: "asyncio.Task[dict[str, object]]") -> None:
        """Whoever waited has been answered, or has gone: then its failure is in the log already."""
        self._unfinished.discard(task)
        if self._calls.get(key) is task:
            del self._calls[key]
        if not task.cancelled():
            task.exception()

    async def _carry(
        self,
        call: _Call,
        task: "asyncio.Task[dict[str, object]]",
        told: "asyncio.Queue[dict[str, object]]",
        leaving: "asyncio.Task[None]",
        send: Send,
    ) -> None:
        streams = False
        telling = asyncio.create_task(told.get()) if call.takes_stream else None
        try:
            while True:
                waiting = {task, leaving} if telling is None else {task, leaving, telling}
                done, _ = await asyncio.wait(
                    waiting, timeout=QUIET_S if call.takes_stream else None, return_when=asyncio.FIRST_COMPLETED
                )
                if telling is not None and telling in done:
                    if not streams:
                        await send({"type": "http.response.start", "status": 200, "headers": _STREAM})
                        streams = True
                    await _send_part(send, _frame(telling.result()), more=True)
                    telling = asyncio.create_task(told.get())
                elif task in done:
                    break
                elif leaving in done:
                    return
                else:
                    if not streams:
                        await send({"type": "http.response.start", "status": 200, "headers": _STREAM})
                        streams = True
                    await _send_part(send, _PING, more=True)
        finally:
            if telling is not None:
                telling.cancel()
        answer, status = _outcome(call.message.id, task)
        if streams:
            await _send_part(send, _frame(answer), more=False)
        else:
            await _send(send, status, msgspec.json.encode(answer), [_JSON])

    async def _result(self, exchange: Exchange) -> dict[str, object]:
        try:
            return await self._methods.answer(exchange)
        except RpcError:
            raise
        except Exception as exc:
            logger.exception(
                "gateway request failed",
                extra={"gateway_session_id": exchange.session.id, "method": exchange.message.method},
            )
            raise RpcError(INTERNAL_ERROR, "The gateway failed. Its log says why.") from exc


def _outcome(request_id: RequestId | None, task: "asyncio.Task[dict[str, object]]") -> tuple[dict[str, object], int]:
    try:
        return result_json(request_id, task.result()), 200
    except RpcError as error:
        return error_json(request_id, error), error.status
    except asyncio.CancelledError:
        return error_json(request_id, RpcError(INTERNAL_ERROR, "The request was cancelled.")), 200


def _envelope(headers: dict[str, str], message: RpcMessage, duplicated: frozenset[str]) -> Envelope:
    if speaks_modern(headers, message):
        return modern_envelope(headers, message, duplicated)
    if message.method == "initialize":
        return Envelope(version=negotiated(message.params.get("protocolVersion")), capabilities={})
    return Envelope(version=legacy_version(headers), capabilities={})


def _refusal(error: ServiceError) -> RpcError:
    data: dict[str, JsonValue] = {"code": error.code}
    if "retry_after_s" in error.extra:
        data["retryAfterSeconds"] = int(error.extra["retry_after_s"])
    code = RATE_LIMITED if error.kind is ErrorKind.LIMIT else INVALID_REQUEST
    return RpcError(code, error.detail, data=data)


def _check_media(headers: dict[str, str]) -> None:
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise RpcError(INVALID_REQUEST, "The body must be application/json.", status=415)
    accept = headers.get("accept", "*/*")
    if not any(kind in accept for kind in ("application/json", "*/*", "application/*")):
        raise RpcError(INVALID_REQUEST, "Answers are application/json or text/event-stream: accept both.", status=406)


def _headers(scope: HTTPScope) -> tuple[dict[str, str], frozenset[str]]:
    """The headers by lower-case name, and the names that occur more than once."""
    headers: dict[str, str] = {}
    duplicated: set[str] = set()
    for raw_name, raw_value in scope["headers"]:
        name = raw_name.decode("latin-1")
        if name in headers:
            duplicated.add(name)
        headers[name] = raw_value.decode("latin-1")
    return headers, frozenset(duplicated)


async def _body(receive: Receive, headers: dict[str, str]) -> bytes:
    too_large = RpcError(INVALID_REQUEST, f"The body is larger than {MAX_BODY_BYTES} bytes.", status=413)
    length = headers.get("content-length", "0")
    if length.isdigit() and int(length) > MAX_BODY_BYTES:
        raise too_large
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise RpcError(INVALID_REQUEST, "The body ended early.", status=400)
        size += len(message["body"])
        if size > MAX_BODY_BYTES:
            raise too_large
        parts.append(message["body"])
        more = message["more_body"]
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _frame(message: dict[str, object]) -> bytes:
    return b"event: message\ndata: %s\n\n" % msgspec.json.encode(message)


async def _send_error(send: Send, request_id: RequestId | None, error: RpcError) -> None:
    await _send(send, error.status, msgspec.json.encode(error_json(request_id, error)), [_JSON])


async def _send(send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def _send_part(send: Send, part: bytes, *, more: bool) -> None:
    await send({"type": "http.response.body", "body": part, "more_body": more})
