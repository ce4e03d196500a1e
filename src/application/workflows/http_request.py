"""HTTP requests of workflows, as steps and as tools: filled, sent through the egress guard,
redacted."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import quote

from application.workflows.ports import ExpressionFailed, Expressions
from application.workflows.template_filling import looked_up, unhurried
from domain.json_value import JsonObject, JsonValue
from domain.secrets.secret import SecretRef
from domain.workflows.graph import HttpRequestConfig
from domain.workflows.templates import MAX_FILLED, FilledTooLarge, Found, as_text, rendered, rendered_text

DEFAULT_TIMEOUT_S = 30.0
HIDDEN = "[hidden]"
_SHORTEST_HIDDEN = 4
"""Shorter secrets are not redacted: they would match ordinary text."""
_TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpCall:
    """A request ready to be sent. Its values may be secret."""

    method: str
    url: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    query: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes | None = field(repr=False)
    timeout_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """A response; `text` is its decoded body."""

    status: int
    media_type: str
    text: str


class HttpCallFailed(Exception):
    """No response. The message is written for people and repeats nothing of the request."""

    def __init__(self, code: str, message: str, *, retryable: bool) -> None:
        super().__init__(message)
        self.code = code
        self.retryable = retryable


class HttpCaller(Protocol):
    """Sends requests through the egress guard. Redirects are not followed."""

    async def send(self, call: HttpCall) -> HttpAnswer:
        """The response, whatever its status. Raises HttpCallFailed."""


class HttpRequestFailed(Exception):
    """No usable response: a stable code, a sentence safe to show, and the server's body if it
    responded."""

    def __init__(self, code: str, detail: str, *, retryable: bool = False, said: str = "") -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.retryable = retryable
        self.said = said


class HttpRequests:
    """Rules:
    - Values inserted into the URL are quoted, so that they cannot change its structure.
    - Secrets are redacted from responses and errors.
    - A status other than 2xx is a failure.
    """

    def __init__(self, *, caller: HttpCaller, expressions: Expressions) -> None:
        self._caller = caller
        self._expressions = expressions

    async def send(
        self,
        config: HttpRequestConfig,
        values: Mapping[str, JsonValue],
        *,
        credentials: Mapping[str, str],
        hidden: Sequence[str],
        timeout_s: float | None,
    ) -> JsonObject:
        """`{status, media_type, body}`. Raises HttpRequestFailed.
        - `values` replace the placeholders; `credentials` are the secrets that headers name.
        - Values of `credentials` and `hidden` are redacted from the result.
        """
        known = [*credentials.values(), *hidden]
        try:
            found = await looked_up(_templates(config), values, self._expressions)
            call = await unhurried(
                lambda: _call(config, found, credentials, timeout_s or DEFAULT_TIMEOUT_S), found.values()
            )
        except ExpressionFailed as error:
            raise HttpRequestFailed(error.code, str(error)) from error
        except FilledTooLarge as error:
            detail = f"A part of the request would be larger than {MAX_FILLED // (1024 * 1024)} MiB."
            raise HttpRequestFailed("input_too_large", detail) from error
        try:
            answer = await self._caller.send(call)
        except HttpCallFailed as failure:
            raise HttpRequestFailed(failure.code, str(failure), retryable=failure.retryable) from failure
        shown = _without(answer.text, known)
        if not 200 <= answer.status < 300:
            detail = f"The server answered HTTP {answer.status}."
            raise HttpRequestFailed("http_status", detail, retryable=answer.status in _TRY_AGAIN, said=shown)
        body = _parsed(shown) if "json" in answer.media_type else shown
        return {"status": answer.status, "media_type": answer.media_type, "body": body}


def _templates(config: HttpRequestConfig) -> Iterator[JsonValue]:
    yield from (value for _, value in config.headers if not isinstance(value, SecretRef))
    yield config.url
    yield from (value for _, value in config.query)
    yield config.body


def _call(
    config: HttpRequestConfig,
    found: Found,
    credentials: Mapping[str, str],
    timeout_s: float,
) -> HttpCall:
    headers = []
    for name, value in config.headers:
        if isinstance(value, SecretRef):
            headers.append((name, credentials[value.name]))
        else:
            headers.append((name, _one_line(rendered_text(value, found))))
    # A URL that is one reference is inserted as it is; in any other URL each value is quoted.
    whole = config.url.startswith("{{") and isinstance(address := rendered(config.url, found), str)
    url = address if whole else rendered_text(config.url, found, _quoted)
    query = tuple((name, as_text(rendered(value, found))) for name, value in config.query)
    body = None
    if config.body is not None:
        filled = rendered(config.body, found)
        body = as_text(filled).encode()
        if not isinstance(filled, str) and not any(name.lower() == "content-type" for name, _ in headers):
            headers.append(("Content-Type", "application/json"))
    return HttpCall(
        method=config.method, url=str(url), headers=tuple(headers), query=query, body=body, timeout_s=timeout_s
    )


def credential_names(config: HttpRequestConfig) -> tuple[str, ...]:
    """The secrets that headers name, without duplicates."""
    return tuple(dict.fromkeys(value.name for _, value in config.headers if isinstance(value, SecretRef)))


def default_values(config: HttpRequestConfig) -> dict[str, JsonValue]:
    """The defaults of inputs, from their schemas."""
    return {name: schema["default"] for name, schema in config.inputs if "default" in schema}


def _quoted(text: str) -> str:
    return quote(text, safe="")


def _one_line(text: str) -> str:
    """A header's value without control characters, so that it cannot start another header."""
    return "".join(character if character == "\t" or character >= " " else " " for character in text)


def _without(text: str, known: list[str]) -> str:
    for value in sorted(known, key=len, reverse=True):
        if len(value) >= _SHORTEST_HIDDEN:
            text = text.replace(value, HIDDEN).replace(json.dumps(value)[1:-1], HIDDEN)
    return text


def _parsed(text: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value
