"""Failures between Dragoman and a server, as `McpFailure`, with all their texts. Transports report
faults as JSON-RPC errors with a `TransportFault`, so that a fault fails only its own call. Servers
cannot forge one, since it is never read from the wire."""

import re
from dataclasses import dataclass
from typing import Final

from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp.types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    ErrorData,
    JSONRPCError,
)

from application.mcp.ports import McpFailure, McpFailureKind
from domain.json_value import JsonObject
from domain.mcp.client_request import ClientRequestKind
from infrastructure.mcp.text import clean

REPLY_TOO_LARGE: Final = -32010
"""Error code for a reply over the size limit; `data` is `{"size": N, "limit": M}` in bytes."""

REPLY_UNREADABLE: Final = -32011
"""Error code for a reply with the call's id that is not a JSON-RPC message."""


_STDERR_LINES = 20
_SDK_CLOSED = "Connection closed"
_NOT_FOUND_STATUS = 127
_NOT_RUNNABLE_STATUS = 126
_BUBBLEWRAP = re.compile(r"bwrap: execvp .*: (?P<why>[^:\n]+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportFault:
    """A fault of Dragoman or the network. `not_executed`: the server certainly executed nothing;
    `over`: the connection is unusable; `needs_auth`: it requires (other) credentials; `for_model`
    replaces `detail` for models; `cause`: why no connection came about."""

    kind: McpFailureKind
    detail: str
    not_executed: bool = False
    over: bool = False
    needs_auth: bool = False
    for_model: str | None = None
    cause: str | None = None


class TransportFailedError(Exception):
    def __init__(self, fault: TransportFault) -> None:
        super().__init__(fault.detail)
        self.fault = fault


PROXY_FAILED = TransportFault(
    kind=McpFailureKind.NOT_CONNECTED,
    detail="The proxy cannot be reached, or refuses a connection to the server.",
    not_executed=True,
    over=True,
)
BROKEN = TransportFault(
    kind=McpFailureKind.CONNECTION_LOST, detail="The connection to the server broke before it answered.", over=True
)
UNANSWERED = TransportFault(
    kind=McpFailureKind.CONNECTION_LOST, detail="The server ended its reply before it had answered."
)
SILENT = TransportFault(
    kind=McpFailureKind.CONNECTION_LOST, detail="The server stopped answering.", not_executed=True, over=True
)
TOO_MANY_VALUES = TransportFault(kind=McpFailureKind.TOO_LARGE, detail="The server's reply has too many JSON values.")
FLOODED = TransportFault(
    kind=McpFailureKind.CONNECTION_LOST, detail="The server sent unasked messages without end.", over=True
)
FOREIGN = TransportFault(kind=McpFailureKind.INVALID_REPLY, detail="The server's reply belongs to another request.")
SESSION_GONE = TransportFault(
    kind=McpFailureKind.NOT_CONNECTED, detail="The server ended the session.", not_executed=True, over=True
)
ENCODED = TransportFault(
    kind=McpFailureKind.INVALID_REPLY, detail="The server's reply has an encoding that was not requested."
)
NOT_JSON_RPC = TransportFault(
    kind=McpFailureKind.INVALID_REPLY, detail="The server's reply is not a valid JSON-RPC message."
)
REDIRECTED = TransportFault(
    kind=McpFailureKind.NOT_CONNECTED,
    detail="The server redirects to another origin, which is not followed.",
    not_executed=True,
)

UNREAD_INPUT = "The server does not read its input and was stopped."
"""End of a started server that does not read its input."""


def not_reached(cause: str) -> TransportFault:
    """No connection came about."""
    return TransportFault(
        kind=McpFailureKind.NOT_CONNECTED,
        detail=f"The server cannot be reached: {cause}.",
        not_executed=True,
        over=True,
        cause=cause,
    )


def blocked_fault(advice: str, reason: str) -> TransportFault:
    """The egress guard blocked the request; `advice` is for the operator, `reason` for models."""
    return TransportFault(
        kind=McpFailureKind.NOT_CONNECTED, detail=advice, not_executed=True, over=True, for_model=reason
    )


def needs_auth_fault(detail: str) -> TransportFault:
    """The server requires authorization by a person."""
    return TransportFault(kind=McpFailureKind.NEEDS_AUTH, detail=detail, not_executed=True, over=True, needs_auth=True)


def auth_fault(detail: str) -> TransportFault:
    """Credentials for the server are unavailable, for other reasons than a missing person."""
    return TransportFault(kind=McpFailureKind.NOT_CONNECTED, detail=detail, not_executed=True, over=True)


_CLIENT_ERROR, _SERVER_ERROR = range(400, 500), range(500, 600)


def http_status_fault(status: int) -> TransportFault:
    """A reply that is only an HTTP error. A gateway in front of the server may answer after
    execution."""
    if status in (401, 403):
        detail = f"The server refused access (HTTP status {status})."
        return TransportFault(kind=McpFailureKind.NEEDS_AUTH, detail=detail, not_executed=True, needs_auth=True)
    if status in _CLIENT_ERROR:
        detail = f"The server refused the request (HTTP status {status})."
        return TransportFault(kind=McpFailureKind.NOT_CONNECTED, detail=detail, not_executed=True)
    kind = McpFailureKind.CONNECTION_LOST if status in _SERVER_ERROR else McpFailureKind.INVALID_REPLY
    return TransportFault(kind=kind, detail=f"The server answered with HTTP status {status}.")


def content_type_fault(content_type: str) -> TransportFault:
    """A reply that is neither JSON nor an event stream."""
    shown = clean(content_type.partition(";")[0])[:64] or "none"
    detail = f"The server's reply is not MCP (content type {shown})."
    return TransportFault(kind=McpFailureKind.INVALID_REPLY, detail=detail)


def counted_bytes(limit: int) -> int:
    """Number of bytes read of an oversized body, to report its size."""
    return 32 * limit


def too_large_fault(size: int, limit: int, *, is_all: bool = True) -> TransportFault:
    """A reply over the limit, both in bytes. Far larger ones are not read to the end; `is_all`
    False: this one was not either."""
    more = "" if is_all and size <= counted_bytes(limit) else "more than "
    detail = f"The server's reply of {more}{min(size, counted_bytes(limit))} bytes exceeds the limit of {limit} bytes."
    return TransportFault(kind=McpFailureKind.TOO_LARGE, detail=detail)


def fault_reply(request_id: int | str, fault: TransportFault) -> SessionMessage:
    """The fault as the reply to one request."""
    error = ErrorData(code=INTERNAL_ERROR, message=fault.detail, data=fault)
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request_id, error=error))


def fault_in(error: MCPError) -> TransportFault | None:
    """The fault in an error of the SDK, if it comes from a transport."""
    data = error.error.data
    if isinstance(data, TransportFault):
        return data
    if error.code == REPLY_TOO_LARGE:
        match data:
            case {"size": int(size), "limit": int(limit)}:
                return too_large_fault(size, limit)
            case _:
                return None
    return NOT_JSON_RPC if error.code == REPLY_UNREADABLE else None


def call_failure(error: MCPError, *, is_over: bool, end: str | None) -> McpFailure:
    """The failure for an error. `is_over`: the connection has ended; `end`: how, as a sentence, if
    known."""
    fault = fault_in(error)
    if fault is not None:
        return McpFailure(fault.kind, fault.detail, for_model=fault.for_model)
    if is_over or is_closed(error):
        return McpFailure(McpFailureKind.CONNECTION_LOST, end or BROKEN.detail)
    required = _required_in(error) if error.code == MISSING_REQUIRED_CLIENT_CAPABILITY else None
    return McpFailure(McpFailureKind.SERVER_ERROR, clean(error.message), rpc_code=error.code, required=required)


def _required_in(error: MCPError) -> JsonObject | None:
    """The client capabilities that a server requires (MCP 2026-07-28, basic), if valid."""
    required = error.error.data.get("requiredCapabilities") if isinstance(error.error.data, dict) else None
    known = {kind.capability for kind in ClientRequestKind}
    if not isinstance(required, dict):
        return None
    return {name: value for name, value in required.items() if name in known and isinstance(value, dict)} or None


def closed_error() -> MCPError:
    """The SDK's error for a connection that ended before the reply."""
    return MCPError(code=CONNECTION_CLOSED, message=_SDK_CLOSED)


def is_closed(error: MCPError) -> bool:
    """Whether the SDK reports the end of the connection. The message distinguishes it from a
    server's error with the same code."""
    return error.code == CONNECTION_CLOSED and error.message == _SDK_CLOSED


def connect_failure(detail: str, stderr: str = "") -> McpFailure:
    return McpFailure(McpFailureKind.NOT_CONNECTED, detail, stderr=stderr)


def exit_detail(exit_status: int, description: str, stderr: str = "") -> str:
    """Why a process ended before it answered. Bubblewrap tells in words what a shell tells by its
    exit status."""
    told = _BUBBLEWRAP.match(stderr)
    if exit_status == _NOT_FOUND_STATUS or (told and told["why"] == "No such file or directory"):
        return "The command was not found."
    if exit_status == _NOT_RUNNABLE_STATUS or told:
        return "The command cannot be run."
    return f"The server's process {description} before it answered."


def stderr_tail(log_tail: str) -> str:
    """The last lines of the error output, for the operator."""
    return clean("\n".join(log_tail.splitlines()[-_STDERR_LINES:]))
