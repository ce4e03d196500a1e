"""What providers answer becomes stable codes and sentences of ours."""

import json

import aiohttp
import pytest

from domain.runs.provider_error import ProviderError
from infrastructure.http.egress import EgressBlockedError
from infrastructure.llm.provider_errors import (
    ErrorObject,
    error_in_stream,
    error_of_answer,
    error_of_transport,
    without_secrets,
)
from infrastructure.secrets.redaction import Redactor

KEY = "planted-provider-key-0f3b9e"

CASES = [
    (400, {"code": "model_not_found"}, "model_rejected", False),
    (401, {"code": "invalid_api_key"}, "model_auth", False),
    (402, {}, "model_rejected", False),
    (403, {}, "model_auth", False),
    (404, {}, "model_rejected", False),
    (408, {}, "model_timeout", True),
    (409, {}, "model_unavailable", True),
    (400, {"code": "context_length_exceeded"}, "model_context_exceeded", False),
    (400, {"message": "prompt is too long: 9 tokens > 8 maximum"}, "model_context_exceeded", False),
    (400, {"message": "This model's maximum context length is 8 tokens."}, "model_context_exceeded", False),
    (413, {"type": "request_too_large"}, "model_context_exceeded", False),
    (422, {}, "model_rejected", False),
    (429, {"type": "rate_limit_error"}, "model_rate_limited", True),
    (429, {"code": "insufficient_quota"}, "model_rate_limited", False),
    (500, {}, "model_unavailable", True),
    (503, {}, "model_unavailable", True),
    (529, {"type": "overloaded_error"}, "model_unavailable", True),
    (301, {}, "model_rejected", False),
]


@pytest.mark.requirement("A11")
@pytest.mark.parametrize(("status", "error", "code", "retryable"), CASES)
def test_each_answer_has_its_code(status: int, error: dict[str, str], code: str, retryable: bool) -> None:
    mapped = error_of_answer(status, {}, json.dumps({"error": error}).encode())
    assert (mapped.code, mapped.retryable) == (code, retryable)


@pytest.mark.parametrize(
    "body", [b"", b"<html>Bad gateway</html>", b"[]", b'{"error": "boom"}', b'{"error": 7}', b"\xff"]
)
def test_a_body_of_any_shape_is_survived(body: bytes) -> None:
    assert error_of_answer(502, {}, body).code == "model_unavailable"


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "Sat, 21 Nov 2026 10:00:30 GMT", "date": "Sat, 21 Nov 2026 10:00:00 GMT"}, 30.0),
        ({"retry-after": "Sat, 21 Nov 2026 10:00:00 GMT", "date": "Sat, 21 Nov 2026 10:00:30 GMT"}, 0.0),
        ({"retry-after": "Sat, 21 Nov 2026 10:00:00 GMT"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({}, None),
    ],
)
def test_what_the_provider_asks_for_is_understood(headers: dict[str, str], wait_s: float | None) -> None:
    assert error_of_answer(429, headers, b"").retry_after_s == wait_s


@pytest.mark.parametrize(
    "error",
    [
        {"message": "Incorrect API key provided: sk-secret123"},
        {"code": "sk-secret123", "type": "sk_secret123"},
        {"code": "Key is sk-secret123"},
        {"type": "0123456789abcdef0123456789abcdef"},
    ],
)
def test_nothing_a_provider_says_freely_is_repeated(error: dict[str, str]) -> None:
    detail = error_of_answer(401, {}, json.dumps({"error": error}).encode()).detail
    assert "secret" not in detail
    assert "0123" not in detail


def test_the_providers_own_code_is_named() -> None:
    body = b'{"error": {"code": "model_not_found", "type": "invalid_request_error", "message": "no gpt-9"}}'
    assert error_of_answer(404, {}, body).detail.endswith("(HTTP 404, model_not_found).")


@pytest.mark.requirement("H6")
@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (b'{"error": {"code": "c", "type": "t", "message": "no gpt-9"}}', "c", "no gpt-9"),
        (b'{"type": "error", "error": {"type": "t", "message": "too long"}}', "t", "too long"),
        (b'{"error": {"code": 400, "message": "m"}}', "400", "m"),
        (b'{"error": "boom"}', None, "boom"),
        (b'{"object": "error", "message": "m", "type": "t", "code": null}', "t", "m"),
        (b'{"detail": "Not Found"}', None, "Not Found"),
        (
            b'{"error": "invalid_client", "error_description": "AADSTS700024: Too late."}',
            "invalid_client",
            "AADSTS700024: Too late.",
        ),
        (
            b'{"detail": [{"loc": ["body"], "msg": "field required"}]}',
            None,
            '[{"loc":["body"],"msg":"field required"}]',
        ),
        (b"no JSON at all", None, "no JSON at all"),
        (b"", None, ""),
    ],
)
def test_what_the_provider_said_is_kept_apart(body: bytes, code: str | None, message: str) -> None:
    said = error_of_answer(404, {}, body).provider_error
    assert said == ProviderError(status=404, code=code, message=message)


@pytest.mark.requirement("H6")
def test_an_error_in_a_stream_has_no_status() -> None:
    said = error_in_stream(ErrorObject(type="overloaded_error", message="later")).provider_error
    assert said == ProviderError(status=None, code="overloaded_error", message="later")


@pytest.mark.requirement("H6", "C7")
def test_secrets_and_control_characters_are_taken_out_of_what_the_provider_said() -> None:
    body = json.dumps(
        {"error": {"code": KEY, "message": f"\x1b[31mBearer {KEY}\x00 sk-{'a' * 20} x\u0000{KEY[:9]}\x00{KEY[9:]}"}}
    )
    said = without_secrets(error_of_answer(401, {}, body.encode()), Redactor((KEY,))).provider_error
    assert said is not None
    assert said.code == "[redacted]"
    assert said.message == "[31mBearer [redacted] [redacted] x[redacted]"


@pytest.mark.parametrize(
    ("exc", "streaming", "code"),
    [
        (TimeoutError("secret"), False, "model_timeout"),
        (TimeoutError("secret"), True, "model_stalled"),
        (aiohttp.ConnectionTimeoutError("secret"), False, "model_unavailable"),
        (aiohttp.ServerDisconnectedError("secret"), False, "model_unavailable"),
        (aiohttp.ClientPayloadError("secret"), True, "model_unavailable"),
        (EgressBlockedError("Not there.", remedy="secret"), True, "model_unavailable"),
    ],
)
def test_a_failed_connection_has_its_code(
    exc: aiohttp.ClientError | EgressBlockedError | TimeoutError, streaming: bool, code: str
) -> None:
    mapped = error_of_transport(exc, streaming=streaming)
    assert (mapped.code, mapped.retryable) == (code, True)
    assert "secret" not in mapped.detail
