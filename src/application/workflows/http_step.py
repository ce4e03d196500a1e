"""An HTTP request as a step: filled in, sent through the egress guard, its answer as data without the secrets it took."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import quote

from application.secrets.ports import SecretStore
from application.workflows.node_execution import NodeContext, NodeFailed, Succeeded
from application.workflows.ports import ExpressionFailed, Expressions
from domain.ids import OrganizationId
from domain.json_value import JsonValue
from domain.secrets.secret import SecretRef
from domain.workflows.execution import NodeRun
from domain.workflows.graph import BoundValue, HttpRequestConfig
from domain.workflows.plan import PlannedNode
from domain.workflows.templates import INPUTS, as_text, rendered, rendered_text

DEFAULT_TIMEOUT_S = 30.0
HIDDEN = "[hidden]"
_SHORTEST_HIDDEN = 4
"""Shorter secrets would turn up in any text."""
_TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpCall:
    """A request ready to be sent. What it holds may be secret."""

    method: str
    url: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    query: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes | None = field(repr=False)
    timeout_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """An answer; `text` is its body, decoded."""

    status: int
    media_type: str
    text: str


class HttpCallFailed(Exception):
    """No answer; the message is written for people and repeats nothing of the request."""

    def __init__(self, code: str, message: str, *, retryable: bool) -> None:
        super().__init__(message)
        self.code = code
        self.retryable = retryable


class HttpCaller(Protocol):
    """Sends requests through the egress guard. Redirects are not followed."""

    async def send(self, call: HttpCall) -> HttpAnswer:
        """The answer, whatever its status. Raises HttpCallFailed: address not permitted, no connection, too large, too
        late."""
        ...


class HttpStep:
    """Rules: values put into the URL are quoted, so that they stay where they are put; secrets are read when they are
    needed and never come back, neither in the output nor in an error; an answer that is not 2xx fails the node."""

    def __init__(self, *, caller: HttpCaller, secrets: SecretStore, expressions: Expressions) -> None:
        self._caller = caller
        self._secrets = secrets
        self._expressions = expressions

    async def execute(self, node: PlannedNode, run: NodeRun, context: NodeContext) -> Succeeded:
        """Execute once. Raises NodeFailed."""
        config = node.config
        if not isinstance(config, HttpRequestConfig):
            raise ValueError(f"{node.kind} is no HTTP request")
        known: list[str] = []
        inputs = await self._inputs(config, config.bound, node, context, known)
        values: dict[str, JsonValue] = {**context.outputs(node), INPUTS: inputs}
        try:
            call = await self._call(config, values, context.organization_id, known, node.settings.timeout_s)
        except ExpressionFailed as error:
            raise NodeFailed("expression_failed", str(error)) from error
        try:
            answer = await self._caller.send(call)
        except HttpCallFailed as failure:
            raise NodeFailed(failure.code, str(failure), retryable=failure.retryable) from failure
        shown = _without(answer.text, known)
        if not 200 <= answer.status < 300:
            detail = f"The server answered HTTP {answer.status}."
            raise NodeFailed("http_status", detail, retryable=answer.status in _TRY_AGAIN)
        body = _parsed(shown) if "json" in answer.media_type else shown
        return Succeeded(output={"status": answer.status, "media_type": answer.media_type, "body": body})

    async def _inputs(
        self,
        config: HttpRequestConfig,
        bound: tuple[tuple[str, BoundValue], ...],
        node: PlannedNode,
        context: NodeContext,
        known: list[str],
    ) -> dict[str, JsonValue]:
        values: dict[str, JsonValue] = {
            name: schema["default"] for name, schema in config.inputs if "default" in schema
        }
        for name, value in bound:
            if isinstance(value, SecretRef):
                values[name] = await self._secret(context.organization_id, value, known)
            else:
                values[name] = context.filled(node, value, self._expressions)
        return values

    async def _call(
        self,
        config: HttpRequestConfig,
        values: Mapping[str, JsonValue],
        organization_id: OrganizationId,
        known: list[str],
        timeout_s: float | None,
    ) -> HttpCall:
        evaluate = self._expressions.evaluate
        headers = []
        for name, value in config.headers:
            if isinstance(value, SecretRef):
                headers.append((name, await self._secret(organization_id, value, known)))
            else:
                headers.append((name, _one_line(rendered_text(value, values, evaluate))))
        # One that is a reference as a whole is an address; anything else is put together, each value quoted.
        whole = config.url.startswith("{{") and isinstance(address := rendered(config.url, values, evaluate), str)
        url = address if whole else rendered_text(config.url, values, evaluate, _quoted)
        query = tuple((name, as_text(rendered(value, values, evaluate))) for name, value in config.query)
        body = None
        if config.body is not None:
            filled = rendered(config.body, values, evaluate)
            body = as_text(filled).encode()
            if not isinstance(filled, str) and not any(name.lower() == "content-type" for name, _ in headers):
                headers.append(("Content-Type", "application/json"))
        return HttpCall(
            method=config.method,
            url=str(url),
            headers=tuple(headers),
            query=query,
            body=body,
            timeout_s=timeout_s or DEFAULT_TIMEOUT_S,
        )

    async def _secret(self, organization_id: OrganizationId, reference: SecretRef, known: list[str]) -> str:
        value = await self._secrets.value(organization_id, reference.name)
        if value is None:
            raise NodeFailed("secret_missing", f"There is no secret {reference.name!r}.")
        known.append(value)
        return value


def _quoted(text: str) -> str:
    return quote(text, safe="")


def _one_line(text: str) -> str:
    """A header's value: nothing in it may begin another."""
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
