"""Decodes and encodes JSON-RPC messages (JSON-RPC 2.0; MCP basic). Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import msgspec

from domain.json_value import JsonObject, JsonValue
from interfaces.json_bounds import MAX_DEPTH, MAX_VALUES, has_repeated_names, has_too_many_values, is_too_deep

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
MAX_ID_LENGTH = 1024
RATE_LIMITED = -32029
"""A code of the gateway: a limit was reached; `data` says when to retry (`retryAfterSeconds`)."""

RequestId = str | int


class RpcError(Exception):
    """A JSON-RPC error for the current request, and its HTTP status. `message` is safe to show."""

    def __init__(self, code: int, message: str, *, data: JsonObject | None = None, status: int = 200) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class RpcMessage:
    """A request; without an `id`, a notification."""

    method: str
    params: JsonObject = field(default_factory=dict)
    id: RequestId | None = None

    meta: Mapping[str, JsonValue] = field(init=False, repr=False, compare=False)
    """`params._meta`, empty if there is none."""

    def __post_init__(self) -> None:
        meta = self.params.get("_meta")
        object.__setattr__(self, "meta", meta if isinstance(meta, dict) else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class RpcResponse:
    """An answer of the client to a request of the gateway."""

    id: RequestId
    result: JsonValue = None
    error: JsonValue = None


def decoded(body: bytes) -> JsonValue:
    """The JSON of a body. Raises RpcError PARSE_ERROR, also if it is nested too deeply
    or has a name twice;
    INVALID_REQUEST if it has too many values."""
    if has_too_many_values(body):
        raise RpcError(INVALID_REQUEST, f"The body has more than {MAX_VALUES} values.", status=413)
    try:
        value = cast(JsonValue, msgspec.json.decode(body))
    except RecursionError as exc:
        raise _too_deep() from exc
    except (msgspec.DecodeError, ValueError) as exc:
        raise RpcError(PARSE_ERROR, "The body is not valid JSON.", status=400) from exc
    if is_too_deep(body, value):
        raise _too_deep()
    if has_repeated_names(body, value):
        raise RpcError(PARSE_ERROR, "The body has a name twice in one object.", status=400)
    return value


def _too_deep() -> RpcError:
    return RpcError(PARSE_ERROR, f"The body is nested deeper than {MAX_DEPTH} levels.", status=400)


def read_message(value: JsonValue) -> RpcMessage | RpcResponse:
    """One message. Raises RpcError INVALID_REQUEST."""
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
        raise _invalid()
    has_id, request_id = "id" in value, value.get("id")
    if has_id and (isinstance(request_id, bool) or not isinstance(request_id, str | int)):
        raise _invalid()
    if isinstance(request_id, str) and len(request_id) > MAX_ID_LENGTH:
        raise RpcError(INVALID_REQUEST, f"The id is longer than {MAX_ID_LENGTH} characters.", status=400)
    method = value.get("method")
    if method is None and has_id and ("result" in value or "error" in value):
        return RpcResponse(id=cast(RequestId, request_id), result=value.get("result"), error=value.get("error"))
    params = value.get("params", {})
    if not isinstance(method, str) or not isinstance(params, dict):
        raise _invalid()
    return RpcMessage(method=method, params=params, id=cast("RequestId | None", request_id) if has_id else None)


def id_of(value: JsonValue) -> RequestId | None:
    """The id of an unusable message, for the error response."""
    request_id = value.get("id") if isinstance(value, dict) else None
    if isinstance(request_id, bool) or not isinstance(request_id, str | int):
        return None
    return None if isinstance(request_id, str) and len(request_id) > MAX_ID_LENGTH else request_id


def result_json(request_id: RequestId | None, result: Mapping[str, object]) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def error_json(request_id: RequestId | None, error: RpcError) -> dict[str, object]:
    """The error response to a request; `id` is null if the request's cannot be read."""
    fault: dict[str, object] = {"code": error.code, "message": error.message}
    if error.data is not None:
        fault["data"] = error.data
    return {"jsonrpc": "2.0", "id": request_id, "error": fault}


def _invalid() -> RpcError:
    return RpcError(INVALID_REQUEST, "The body is not a JSON-RPC 2.0 message.", status=400)
