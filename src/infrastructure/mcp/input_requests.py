"""What servers ask for in the middle of a call, off the wire (MCP 2025-06-18 to 2026-07-28, client/elicitation). Pure."""

import json
from collections.abc import Mapping
from typing import Any

from application.mcp.ports import McpFailure, McpFailureKind, McpInputRequired
from domain.tools.elicitation import Elicitation
from infrastructure.mcp.text import capped, clean, clean_value

_ELICITATION = "elicitation/create"
_MAX_QUESTIONS = 8
_MAX_KEY = 128
_MAX_MESSAGE = 4096
_MAX_URL = 2048
_MAX_SCHEMA_BYTES = 16 * 1024
_MAX_STATE_BYTES = 64 * 1024


def read_input_required(result: Mapping[str, Any]) -> McpInputRequired:
    """What a raw `input_required` result asks for. Raises McpFailure INVALID_REPLY."""
    requests, state = result.get("inputRequests"), result.get("requestState")
    if requests is None:
        requests = {}
    if not isinstance(requests, dict) or not (state is None or isinstance(state, str)):
        raise _invalid("The server asked for input in a way that is not valid MCP.")
    if not requests and state is None:
        raise _invalid("The server asked for input without saying for which.")
    if len(requests) > _MAX_QUESTIONS or len((state or "").encode("utf-8", "replace")) > _MAX_STATE_BYTES:
        raise _invalid("The server asked for too much input at a time.")
    questions, others = [], []
    for key, request in requests.items():
        method = request.get("method") if isinstance(request, dict) else None
        if method == _ELICITATION:
            questions.append(read_question(key, request.get("params")))
        else:
            others.append(capped(clean(method), _MAX_KEY) if isinstance(method, str) else "something unknown")
    return McpInputRequired(questions=tuple(questions), request_state=state, unsupported=tuple(others))


def read_question(key: str, params: object) -> Elicitation:
    """The question in the raw parameters of `elicitation/create`. Raises McpFailure INVALID_REPLY."""
    if not isinstance(params, dict) or not isinstance(message := params.get("message"), str):
        raise _invalid("The server asked a question that is not valid MCP.")
    if len(key) > _MAX_KEY or clean(key) != key:
        raise _invalid("The server's name for a question cannot be used.")
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


def _invalid(detail: str) -> McpFailure:
    return McpFailure(McpFailureKind.INVALID_REPLY, detail)
