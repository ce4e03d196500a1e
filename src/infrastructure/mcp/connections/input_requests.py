"""Parses requests of servers during calls (MCP 2025-06-18 to 2026-07-28, client/elicitation). No
I/O."""

import json
from collections.abc import Mapping
from typing import Any, cast

from application.mcp.ports import McpFailure, McpFailureKind, McpInputRequired
from domain.json_value import JsonObject
from domain.mcp.client_request import ClientRequest, ClientRequestKind
from domain.mcp.elicitation import ACCOUNT_QUESTION, Elicitation
from infrastructure.mcp.text import capped, clean, clean_value

_KINDS = frozenset(ClientRequestKind)
_OF_A_HOP = frozenset({"_meta", "task", "includeContext"})
_MAX_QUESTIONS = 8
_MAX_KEY = 128
_MAX_MESSAGE = 4096
_MAX_URL = 2048
_MAX_SCHEMA_BYTES = 16 * 1024
_MAX_STATE_BYTES = 64 * 1024
_MAX_SAMPLING_BYTES = 256 * 1024


def read_input_required(result: Mapping[str, Any]) -> McpInputRequired:
    """Parse a raw `input_required` result. Raises McpFailure INVALID_REPLY."""
    requests, state = result.get("inputRequests"), result.get("requestState")
    if requests is None:
        requests = {}
    if not isinstance(requests, dict) or not (state is None or isinstance(state, str)):
        raise _invalid("The server asked for input in a way that is not valid MCP.")
    if not requests and state is None:
        raise _invalid("The server asked for input without saying for which.")
    if len(requests) > _MAX_QUESTIONS or len((state or "").encode("utf-8", "replace")) > _MAX_STATE_BYTES:
        raise _invalid("The server asked for too much input at a time.")
    questions, others, relayed = [], [], []
    for key, request in requests.items():
        method = request.get("method") if isinstance(request, dict) else None
        if method in _KINDS:
            relayed.append(read_request(key, ClientRequestKind(method), request.get("params")))
        if method == ClientRequestKind.ELICITATION:
            questions.append(read_question(key, request.get("params")))
        else:
            others.append(capped(clean(method), _MAX_KEY) if isinstance(method, str) else "something unknown")
    return McpInputRequired(
        questions=tuple(questions), request_state=state, unsupported=tuple(others), requests=tuple(relayed)
    )


def read_request(key: str, kind: ClientRequestKind, params: object) -> ClientRequest:
    """Parse a request for the client, without the fields of a single hop. Raises McpFailure
    INVALID_REPLY."""
    if kind is ClientRequestKind.ELICITATION:
        question = read_question(key, params)
        asked: JsonObject = {"message": question.message}
        asked |= {"requestedSchema": question.schema} if question.url is None else {"mode": "url", "url": question.url}
        return ClientRequest(key=key, kind=kind, params=asked)
    _check_key(key)
    if kind is ClientRequestKind.ROOTS:
        return ClientRequest(key=key, kind=kind, params={})
    if not isinstance(params, dict) or not isinstance(params.get("messages"), list):
        raise _invalid("The server asked for a model's answer in a way that is not valid MCP.")
    passed = clean_value({name: value for name, value in params.items() if name not in _OF_A_HOP})
    if len(json.dumps(passed)) > _MAX_SAMPLING_BYTES:
        raise _invalid("The server asked for a model's answer to too long a prompt.")
    return ClientRequest(key=key, kind=kind, params=cast(JsonObject, passed))


def read_question(key: str, params: object) -> Elicitation:
    """Parse the parameters of `elicitation/create`. Raises McpFailure INVALID_REPLY."""
    if not isinstance(params, dict) or not isinstance(message := params.get("message"), str):
        raise _invalid("The server asked a question that is not valid MCP.")
    _check_key(key)
    message = capped(clean(message).strip(), _MAX_MESSAGE)
    if params.get("mode", "form") == "url":
        url = params.get("url")
        if not isinstance(url, str) or not url.startswith(("https://", "http://")) or len(url) > _MAX_URL:
            raise _invalid("The server asked to visit an address that cannot be used.")
        return Elicitation(request_id=key, message=message, url=clean(url))
    schema = clean_value(params.get("requestedSchema"))
    if not isinstance(schema, dict) or len(json.dumps(schema)) > _MAX_SCHEMA_BYTES:
        raise _invalid("The server asked with a form that cannot be used.")
    return Elicitation(request_id=key, message=message, schema=schema)


def _check_key(key: str) -> None:
    if len(key) > _MAX_KEY or clean(key) != key or key.rpartition(".")[2] == ACCOUNT_QUESTION:
        raise _invalid("The server's name for a question cannot be used.")


def _invalid(detail: str) -> McpFailure:
    return McpFailure(McpFailureKind.INVALID_REPLY, detail)
