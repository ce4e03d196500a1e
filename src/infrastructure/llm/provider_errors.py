"""Maps failures of providers to ModelError with stable codes and fixed sentences. A provider's
message may quote the key or the prompt, so sentences contain only its short code. The message
itself is `ModelError.provider_error`; `without_secrets` redacts the key."""

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

import aiohttp
import msgspec

from application.models.ports import ModelError
from application.system.unreachable import cause_of
from application.tools.result_text import cleaned
from domain.runs.provider_error import ProviderError
from infrastructure.http.egress import EgressBlockedError
from infrastructure.http.sessions import PROXY_ERRORS, refusal_in
from infrastructure.secrets.redaction import Redactor

MAX_ERROR_BYTES = 64 * 1024
_MAX_MESSAGE = 8 * 1024
"""In characters; runs store less, after masking canary tokens."""
_MAX_CODE = 100

_IDENTIFIER = re.compile(r"[a-z][a-z0-9_.]{0,47}")
_KEY_LIKE = re.compile(r"sk[-_]|key[-_]?[0-9]|[0-9a-z]{24,}")
_CONTEXT_WORDS = re.compile(
    r"context[ _](?:length|window|size)|prompt is too long|too many (?:input )?tokens|exceeds? the maximum number of tokens"
    r"|input length and `?max_tokens`? exceed",
    re.IGNORECASE,
)
_NO_QUOTA = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_error"})
_STATUS_OF_TYPE = {
    "authentication_error": 401,
    "permission_error": 403,
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
    "invalid_prompt": 400,
    "invalid_encrypted_content": 400,
    "data_residency_mismatch": 400,
    "bio_policy": 400,
    "misalignment_policy_violation": 400,
    "cyber_policy": 400,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "api_error": 500,
    "server_error": 500,
    "timeout_error": 504,
    "server_is_overloaded": 529,
    "overloaded_error": 529,
}


class ErrorObject(msgspec.Struct, frozen=True):
    """The error object of both wire formats, in a body or a stream; some servers send `code` as a
    number."""

    type: str | None = None
    code: str | int | None = None
    message: str | None = None


class _ErrorBody(msgspec.Struct):
    """Some servers put the message beside `error`, or name it `detail`. Gemini sends a list of one.
    Clouds describe the code `error` of a refused identity (RFC 6749, section 5.2)."""

    error: ErrorObject | str | None = None
    error_description: str | None = None
    message: str | None = None
    detail: object = None
    type: str | None = None
    code: str | int | None = None


_decode_body = msgspec.json.Decoder(_ErrorBody).decode


def error_of_answer(status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
    """The error for an HTTP status other than 200."""
    return _error_of(status, _error_object(body), _retry_after_s(headers))


def without_secrets(error: ModelError, redactor: Redactor) -> ModelError:
    """The error with its provider's message redacted and without control characters."""
    said = error.provider_error
    if said is not None:
        code = None if said.code is None else redactor.redact(cleaned(said.code))[:_MAX_CODE]
        message = redactor.redact(cleaned(said.message).strip())[:_MAX_MESSAGE]
        error.provider_error = ProviderError(status=said.status, code=code, message=message)
    return error


def _error_object(body: bytes) -> ErrorObject:
    text = body.strip()
    if text.startswith(b"[") and text.endswith(b"]"):
        text = text[1:-1]
    try:
        told = _decode_body(text)
    except (msgspec.MsgspecError, RecursionError):
        return ErrorObject(message=body.decode("utf-8", "replace"))
    if isinstance(told.error, ErrorObject):
        return told.error
    if told.error is not None and told.error_description is not None:
        return ErrorObject(code=told.error, message=told.error_description)
    detail = told.detail if isinstance(told.detail, str | None) else msgspec.json.encode(told.detail).decode()
    return ErrorObject(type=told.type, code=told.code, message=told.error or told.message or detail)


def error_in_stream(error: ErrorObject | str) -> ModelError:
    """The error for an error object in a stream."""
    known = error if isinstance(error, ErrorObject) else ErrorObject(message=error)
    if isinstance(known.code, int) and 400 <= known.code < 600:
        status = known.code
    else:
        status = _STATUS_OF_TYPE.get(known.type or "") or _status_of_code(str(known.code or "")) or 500
    return _error_of(status, known, None, streamed=True)


def _status_of_code(code: str) -> int | None:
    """The Responses API names faults of images in many codes."""
    return _STATUS_OF_TYPE.get(code) or (400 if "image" in code else None)


def error_of_transport(exc: aiohttp.ClientError | EgressBlockedError | TimeoutError, *, streaming: bool) -> ModelError:
    """The error for a failed connection; `streaming` after the reply has begun."""
    if isinstance(exc, TimeoutError) and not isinstance(exc, aiohttp.ConnectionTimeoutError):
        return stalled() if streaming else timed_out()
    if streaming:
        return ModelError("model_unavailable", "The connection to the model was lost.", retryable=True)
    blocked = refusal_in(exc)
    if blocked is not None:
        return address_refused(blocked.advice)
    why = " through the proxy" if isinstance(exc, PROXY_ERRORS) else f": {cause_of(exc)}"
    return ModelError("model_unavailable", f"The model provider could not be reached{why}.", retryable=True)


def address_refused(reason: str) -> ModelError:
    """The provider's address is not permitted. `reason` is safe to show."""
    return ModelError("model_rejected", f"The model provider cannot be reached. {reason}", retryable=False)


def stalled() -> ModelError:
    """The stream is silent."""
    return ModelError("model_stalled", "The model stopped sending in the middle of its reply.", retryable=True)


def timed_out() -> ModelError:
    return ModelError("model_timeout", "The model provider did not answer in time.", retryable=True)


def gave_up() -> ModelError:
    return ModelError("model_unavailable", "The model provider failed in the middle of its reply.", retryable=True)


def invalid_reply(what: str, *, retryable: bool = True) -> ModelError:
    """The reply violates the protocol; `what` continues the sentence "The model provider …"."""
    return ModelError("model_invalid_reply", f"The model provider {what}.", retryable=retryable)


def oversized(what: str) -> ModelError:
    """The reply is too large: it costs too much to be read again."""
    return invalid_reply(f"sent {what} that is too large", retryable=False)


def _error_of(status: int, error: ErrorObject, retry_after_s: float | None, *, streamed: bool = False) -> ModelError:
    """`streamed`: the error came in a stream with HTTP status 200."""
    meant = _meaning_of(status, error, retry_after_s)
    word = error.code if error.code is not None else error.type
    meant.provider_error = ProviderError(
        status=None if streamed else status, code=None if word is None else str(word), message=error.message or ""
    )
    return meant


def _meaning_of(status: int, error: ErrorObject, retry_after_s: float | None) -> ModelError:
    code = str(error.code or "")
    note = _note(status, error)
    if status in {401, 403}:
        return ModelError("model_auth", f"The model provider refused the API key{note}.", retryable=False)
    if status == 413 or (status in {400, 422} and _speaks_of_context(code, error.message or "")):
        return ModelError(
            "model_context_exceeded", f"The conversation is too long for the model{note}.", retryable=False
        )
    if status == 429 or code in _NO_QUOTA:
        if code in _NO_QUOTA or error.type in _NO_QUOTA:
            return ModelError("model_rate_limited", f"The model provider's quota is used up{note}.", retryable=False)
        return ModelError(
            "model_rate_limited",
            f"The model provider limits the rate of requests{note}.",
            retryable=True,
            retry_after_s=retry_after_s,
        )
    if status == 408:
        return ModelError(
            "model_timeout", f"The model provider timed out{note}.", retryable=True, retry_after_s=retry_after_s
        )
    if status >= 500 or status == 409:
        return ModelError(
            "model_unavailable",
            f"The model provider is {'overloaded' if status == 529 else 'unavailable'}{note}.",
            retryable=True,
            retry_after_s=retry_after_s,
        )
    return ModelError("model_rejected", f"The model provider rejected the request{note}.", retryable=False)


def _speaks_of_context(code: str, message: str) -> bool:
    return code == "context_length_exceeded" or _CONTEXT_WORDS.search(message) is not None


def _note(status: int, error: ErrorObject) -> str:
    for word in (error.code, error.type):
        if isinstance(word, str) and _IDENTIFIER.fullmatch(word) and not _KEY_LIKE.search(word):
            return f" (HTTP {status}, {word})"
    return f" (HTTP {status})"


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """`retry-after-ms` or `Retry-After` (RFC 9110 §10.2.3: seconds, or a date relative to the
    response's date)."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None or value is None:
        return seconds
    try:
        wait = parsedate_to_datetime(value) - parsedate_to_datetime(headers.get("date", ""))
    except (TypeError, ValueError):
        return None
    return max(0.0, wait.total_seconds())


def _number(value: str | None) -> float | None:
    if value is None or not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", value.strip()):
        return None
    return float(value)
