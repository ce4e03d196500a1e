"""The gateway's HTTP endpoint: authenticates a request, checks its origin, detects its protocol
generation, and dispatches it.

A plain ASGI application, so that a call costs no unnecessary routing and parsing.
"""

import asyncio
from itertools import starmap
from typing import NamedTuple
from urllib.parse import parse_qs, quote

import msgspec
from litestar.types import HTTPScope, Receive, Send

from application.gateway.authorization.check_authorization import SCOPE
from application.gateway.calls.request_cancellations import RequestCancellations, SentRequest
from application.gateway.sessions.gateway_access import GatewayAccess
from application.mcp.oauth_client import PublicAddress
from domain.errors import ErrorKind, ServiceError
from domain.gateway.client import GatewayClient
from domain.gateway.session import GatewaySession, ToolSearch
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.json_value import JsonValue
from interfaces.gateway.answering import GatewayAnswers
from interfaces.gateway.asking import GatewayQuestions
from interfaces.gateway.exchange import Exchange
from interfaces.gateway.generations import (
    LEGACY_VERSIONS,
    MODERN_VERSIONS,
    VERSION_HEADER,
    Envelope,
    modern_envelope,
    speaks_modern,
    unsupported_version,
)
from interfaces.gateway.legacy_clients import Headers, LegacyClients
from interfaces.gateway.messages import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    RATE_LIMITED,
    RpcError,
    RpcMessage,
    RpcResponse,
    decoded,
    error_json,
    id_of,
    read_message,
    result_json,
)
from interfaces.gateway.methods import GatewayMethods
from interfaces.gateway.origins import refused_origin
from interfaces.gateway.streams import LISTEN, GatewayStreams, Listener, takes_events
from interfaces.gateway.wire import JSON_MEDIA, read_body, read_headers, send_error, send_whole
from interfaces.request_notes import notes_of

MAX_BATCH = 50
METADATA_PATH = "/.well-known/oauth-protected-resource/mcp"
_MAX_QUERY = 500
_IN_QUERIES = "=&%+-._~:/,"
_ONCE = frozenset({"authorization", "content-type", "host", "mcp-session-id", "origin", VERSION_HEADER})
"""A proxy may have read the other value of a duplicate of these headers."""


class _Asked(NamedTuple):
    """A request. `duplicated` are the names of headers that occur more than once."""

    scope: HTTPScope
    headers: dict[str, str]
    duplicated: frozenset[str]
    receive: Receive
    send: Send


class GatewayEndpoint:
    """Serves `/mcp`.

    - POST: one message (2025-03-26 clients may send several).
    - GET, legacy only: a stream of changes.
    - DELETE, legacy only: a client ends its session.
    """

    def __init__(
        self,
        *,
        access: GatewayAccess,
        methods: GatewayMethods,
        clients: LegacyClients,
        streams: GatewayStreams,
        questions: GatewayQuestions,
        cancellations: RequestCancellations,
        address: PublicAddress,
        scope: str | None = SCOPE,
    ) -> None:
        self._access = access
        self._clients = clients
        self._streams = streams
        self._questions = questions
        self._answers = GatewayAnswers(methods=methods, cancellations=cancellations)
        self._address = address
        self._scope = scope

    async def __call__(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        try:
            headers, duplicated = self._headers(scope)
        except RpcError as refused:
            await send_error(send, None, refused)
            return
        try:
            session = await self._opened(scope, headers)
        except ServiceError as error:
            await self._send_refusal(scope, send, error)
            return
        notes = notes_of(scope)
        notes.gateway_session_id = session.id
        scope["auth"] = Principal(organization_id=session.organization_id, key_id=session.created_by, role=Role.RUNNER)
        asked = _Asked(scope, headers, duplicated, receive, send)
        value: JsonValue = None
        try:
            if scope["method"] != "POST":
                await self._without_body(asked, session)
                return
            _check_media(headers)
            value = decoded(await read_body(receive, headers))
            if isinstance(value, list):
                await self._batch(asked, session, value)
                return
            message = read_message(value)
            if isinstance(message, RpcResponse):
                await self._clients.client(session, headers)
                await self._questions.answered(session, message)
                await send_whole(send, 202, b"", [])
                return
            if message.id is None:
                await self._notified(session, headers, message, send)
                return
            envelope, answered_with = await self._envelope(session, asked, message)
            if envelope.is_modern and message.method == LISTEN:
                takes_events(headers)
                await self._streams.listen(self._listener(asked, session), message)
                return
            exchange = Exchange(
                session=session,
                envelope=envelope,
                message=message,
                takes_stream="text/event-stream" in headers.get("accept", ""),
                tool_search=_tool_search(scope),
                notes=notes,
            )
            await self._answers.answer(exchange, receive, send, answered_with)
        except RpcError as error:
            await send_error(send, id_of(value), error)
        except ServiceError as error:
            await send_error(send, id_of(value), _untaken(error))

    def _headers(self, scope: HTTPScope) -> tuple[dict[str, str], frozenset[str]]:
        """The headers of a request, and the names of duplicates. Raises RpcError if a relevant
        header is duplicated, or if the request's origin is not allowed."""
        headers, duplicated = read_headers(scope)
        if twice := duplicated & _ONCE:
            raise RpcError(INVALID_REQUEST, f"The header {min(twice)} came twice.", status=400)
        refused = refused_origin(headers, self._address.url)
        if refused is not None:
            raise RpcError(INVALID_REQUEST, refused, status=403)
        return headers, duplicated

    def _listener(self, asked: _Asked, session: GatewaySession, client: GatewayClient | None = None) -> Listener:
        async def is_open() -> bool:
            try:
                await self._opened(asked.scope, asked.headers)
            except ServiceError as error:
                return error.kind in (ErrorKind.LIMIT, ErrorKind.UNAVAILABLE)
            return True

        return Listener(session=session, is_open=is_open, receive=asked.receive, send=asked.send, client=client)

    async def _without_body(self, asked: _Asked, session: GatewaySession) -> None:
        """GET and DELETE of legacy clients: open a stream, or end the session. Raises RpcError."""
        method, headers = asked.scope["method"], asked.headers
        if method == "DELETE":
            await self._clients.end(session, headers)
            await send_whole(asked.send, 204, b"", [])
        elif method == "GET" and headers.get(VERSION_HEADER) not in MODERN_VERSIONS:
            takes_events(headers)
            client = await self._clients.client(session, headers)
            await self._streams.stand_by(self._listener(asked, session, client))
        else:
            await send_whole(asked.send, 405, b"", [(b"allow", b"GET, POST, DELETE")])

    async def _opened(self, scope: HTTPScope, headers: dict[str, str]) -> GatewaySession:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise ServiceError("token_missing", ErrorKind.UNAUTHENTICATED, "Send a session token as a bearer token.")
        return await self._access.open(token.strip(), agent=_parameter(scope, "agent"))

    async def _send_refusal(self, scope: HTTPScope, send: Send, error: ServiceError) -> None:
        """Send the reason why no session is opened. Only an unknown token gets an error status:
        some clients take any other status for a dead session."""
        notes_of(scope).refused(error)
        headers = [JSON_MEDIA]
        status = 200
        if error.kind is ErrorKind.UNAUTHENTICATED:
            status = 401
            # A request without a token only learns what to send (RFC 6750, section 3.1).
            reason = None if error.code == "token_missing" else "invalid_token"
            headers.append(self._challenge(scope, error, reason))
        elif error.kind is ErrorKind.UNAVAILABLE:
            status = 503
        elif error.kind is ErrorKind.FORBIDDEN:
            status = 403
            headers.append(self._challenge(scope, error, "insufficient_scope"))
        fault = error_json(None, _refusal(error))
        await send_whole(send, status, msgspec.json.encode(fault), headers)

    def _challenge(self, scope: HTTPScope, error: ServiceError, reason: str | None) -> tuple[bytes, bytes]:
        """Where the client learns how to get a token (RFC 9728): for the URL that it called, which
        may name an agent."""
        query = quote(scope["query_string"], safe=_IN_QUERIES)
        of_query = f"?{query}" if 0 < len(query) <= _MAX_QUERY else ""
        challenge = f'Bearer realm="dragoman", resource_metadata="{self._address.url or ""}{METADATA_PATH}{of_query}"'
        if self._scope is not None:
            challenge += f', scope="{self._scope}"'
        if reason is not None:
            challenge += f', error="{reason}", error_description="{error.detail}"'
        return b"www-authenticate", challenge.encode("latin-1", "replace")

    async def _batch(self, asked: _Asked, session: GatewaySession, values: list[JsonValue]) -> None:
        """Several messages at a time, which only 2025-03-26 allows. Each one counts towards the
        limits of its token, as if sent alone."""
        headers, send = asked.headers, asked.send
        if headers.get(VERSION_HEADER, LEGACY_VERSIONS[0]) != LEGACY_VERSIONS[0]:
            raise RpcError(INVALID_REQUEST, "The body must be a single JSON-RPC message.", status=400)
        if not 0 < len(values) <= MAX_BATCH:
            raise RpcError(INVALID_REQUEST, f"A batch has 1 to {MAX_BATCH} messages.", status=400)
        envelope = await self._clients.envelope(session, {VERSION_HEADER: LEGACY_VERSIONS[0], **headers})
        search = _tool_search(asked.scope)

        async def answered(place: int, value: JsonValue) -> dict[str, object] | None:
            try:
                if place:  # the first one was admitted with the request
                    await self._opened(asked.scope, headers)
            except ServiceError as error:
                request_id = id_of(value)
                return None if request_id is None else error_json(request_id, _refusal(error))
            return await self._answered(session, envelope, value, search)

        answers = [
            answer for answer in await asyncio.gather(*starmap(answered, enumerate(values))) if answer is not None
        ]
        if answers:
            await send_whole(send, 200, msgspec.json.encode(answers), [JSON_MEDIA])
        else:
            await send_whole(send, 202, b"", [])

    async def _answered(
        self, session: GatewaySession, envelope: Envelope, value: JsonValue, search: ToolSearch
    ) -> dict[str, object] | None:
        """The response to one message of a batch; None for a notification or an answer of the
        client."""
        try:
            message = read_message(value)
            if isinstance(message, RpcResponse):
                await self._questions.answered(session, message)
                return None
            if message.id is None:
                return None
            exchange = Exchange(session=session, envelope=envelope, message=message, tool_search=search)
            return result_json(message.id, await self._answers.result(exchange))
        except RpcError as error:
            return error_json(id_of(value), error)
        except ServiceError as error:
            return error_json(id_of(value), _untaken(error))

    async def _notified(
        self, session: GatewaySession, headers: dict[str, str], message: RpcMessage, send: Send
    ) -> None:
        """Process a notification, or ignore it. It gets no response."""
        version = headers.get(VERSION_HEADER)
        if version is not None and version not in (*LEGACY_VERSIONS, *MODERN_VERSIONS):
            raise unsupported_version(version)
        client = None if version in MODERN_VERSIONS else await self._clients.client(session, headers)
        cancelled = message.params.get("requestId")
        if message.method == "notifications/cancelled" and isinstance(cancelled, str | int):
            sent = SentRequest(session=session, client="" if client is None else client.id, request_id=cancelled)
            await self._answers.cancel(sent)
        await send_whole(send, 202, b"", [])

    async def _envelope(self, session: GatewaySession, asked: _Asked, message: RpcMessage) -> tuple[Envelope, Headers]:
        if speaks_modern(asked.headers, message):
            return modern_envelope(asked.headers, message, asked.duplicated), []
        if message.method == "initialize":
            return self._clients.shaken(session, message)
        return await self._clients.envelope(session, asked.headers), []


def _refusal(error: ServiceError) -> RpcError:
    data: dict[str, JsonValue] = {"code": error.code}
    if "retry_after_s" in error.extra:
        data["retryAfterSeconds"] = int(error.extra["retry_after_s"])
    code = RATE_LIMITED if error.kind is ErrorKind.LIMIT else INVALID_REQUEST
    return RpcError(code, error.detail, data=data)


def _untaken(error: ServiceError) -> RpcError:
    """The error for a notification or an answer that cannot be processed, for example without
    storage."""
    status = 503 if error.kind is ErrorKind.UNAVAILABLE else 400
    return RpcError(INTERNAL_ERROR, error.detail, data={"code": error.code}, status=status)


def _parameter(scope: HTTPScope, name: str) -> str | None:
    values = parse_qs(scope["query_string"].decode("latin-1")).get(name) if scope["query_string"] else None
    return values[0] if values else None


def _tool_search(scope: HTTPScope) -> ToolSearch:
    """The choice of the client's URL. Raises RpcError."""
    chosen = _parameter(scope, "tool_search")
    try:
        return ToolSearch.AUTO if chosen is None else ToolSearch(chosen)
    except ValueError as exc:
        raise RpcError(INVALID_REQUEST, "tool_search must be auto, always or never.", status=400) from exc


def _check_media(headers: dict[str, str]) -> None:
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise RpcError(INVALID_REQUEST, "The body must be application/json.", status=415)
    accept = headers.get("accept", "*/*")
    if not any(kind in accept for kind in ("application/json", "*/*", "application/*")):
        raise RpcError(INVALID_REQUEST, "Responses are application/json or text/event-stream: accept both.", status=406)
