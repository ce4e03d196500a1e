"""Reads requests from ASGI and sends responses: headers, bounded bodies, JSON and event streams."""

from collections import Counter

import msgspec
from litestar.types import HTTPScope, Receive, Send

from interfaces.gateway.messages import INVALID_REQUEST, RequestId, RpcError, error_json

MAX_BODY_BYTES = 10 * 1024 * 1024
_MAX_DIGITS = 18
JSON_MEDIA = (b"content-type", b"application/json")
_NONE: frozenset[str] = frozenset()
PING = b": keep-alive\n\n"
_STREAM = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]


def read_headers(scope: HTTPScope) -> tuple[dict[str, str], frozenset[str]]:
    """The headers by lower-case name, and the names that occur more than once."""
    raw = scope["headers"]
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in raw}
    if len(headers) == len(list(raw)):
        return headers, _NONE
    counts = Counter(name.decode("latin-1") for name, _ in raw)
    return headers, frozenset(name for name, count in counts.items() if count > 1)


async def read_body(receive: Receive, headers: dict[str, str]) -> bytes:
    """The body. Raises RpcError if it is too large or ends early."""
    length = headers.get("content-length", "0")
    if length.isascii() and length.isdigit() and (len(length) > _MAX_DIGITS or int(length) > MAX_BODY_BYTES):
        raise _too_large()
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise RpcError(INVALID_REQUEST, "The body ended early.", status=400)
        part = message["body"]
        size += len(part)
        if size > MAX_BODY_BYTES:
            raise _too_large()
        if not message["more_body"]:
            return b"".join((*parts, part)) if parts else part
        parts.append(part)


def _too_large() -> RpcError:
    return RpcError(INVALID_REQUEST, f"The body is larger than {MAX_BODY_BYTES} bytes.", status=413)


async def send_error(send: Send, request_id: RequestId | None, error: RpcError) -> None:
    """A JSON-RPC error as the whole response."""
    await send_whole(send, error.status, msgspec.json.encode(error_json(request_id, error)), [JSON_MEDIA])


async def send_whole(send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def start_stream(send: Send) -> None:
    """The head of an event stream."""
    await send({"type": "http.response.start", "status": 200, "headers": _STREAM})


async def send_part(send: Send, part: bytes, *, more: bool) -> None:
    """A part of a stream; the last part ends it."""
    await send({"type": "http.response.body", "body": part, "more_body": more})


def frame(message: dict[str, object]) -> bytes:
    """A message as a server-sent event."""
    return b"event: message\ndata: %s\n\n" % msgspec.json.encode(message)
