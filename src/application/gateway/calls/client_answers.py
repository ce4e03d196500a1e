"""Checks clients' answers against the questions of servers."""

import json
from typing import cast

from application.policy.ports import SchemaValidator
from application.runs.elicitation_answers import read_answer
from domain.errors import ServiceError, Violation, invalid
from domain.json_value import JsonObject, JsonValue
from domain.mcp.client_request import ClientAnswer, ClientRequest, ClientRequestKind
from domain.mcp.elicitation import Elicitation

MAX_SAMPLED_BYTES = 1024 * 1024
"""Limit of a model's answer, which may contain an image."""
MAX_ROOTS_BYTES = 64 * 1024
_SAMPLED = ("role", "content", "model", "stopReason")


def read_client_answer(
    request: ClientRequest, given: JsonValue, *, schemas: SchemaValidator, path: str
) -> ClientAnswer:
    """The result in the protocol's form, without hop-specific fields. Raises INVALID
    `client_answer_invalid` with paths under `path`."""
    if not isinstance(given, dict):
        raise _wrong(path, "must be an object")
    match request.kind:
        case ClientRequestKind.ELICITATION:
            return ClientAnswer(result=_elicited(request, given, schemas, path))
        case ClientRequestKind.SAMPLING:
            return ClientAnswer(result=_sampled(given, path))
        case ClientRequestKind.ROOTS:
            return ClientAnswer(result=_roots(given, path))


def _elicited(request: ClientRequest, given: JsonObject, schemas: SchemaValidator, path: str) -> JsonObject:
    url = request.params.get("url")
    question = Elicitation(
        request_id=request.key,
        message=str(request.params.get("message", "")),
        schema=None if isinstance(url, str) else cast(JsonObject, request.params["requestedSchema"]),
        url=url if isinstance(url, str) else None,
    )
    # Clients send an empty form when they dismiss a question or after a visited page.
    has_content = given.get("action") == "accept" and question.schema is not None
    names = ("action", "content") if has_content else ("action",)
    told: JsonObject = {name: given[name] for name in names if name in given}
    try:
        return read_answer(told, question, path=path, schemas=schemas).as_json()
    except ServiceError as error:
        raise invalid("client_answer_invalid", error.detail, *error.violations) from error


def _sampled(given: JsonObject, path: str) -> JsonObject:
    told = {name: given[name] for name in _SAMPLED if name in given}
    if not isinstance(told.get("role"), str) or not isinstance(told.get("model"), str):
        raise _wrong(path, "must have a role and a model")
    if not isinstance(told.get("content"), dict | list):
        raise _wrong(f"{path}.content", "must be a content block, or a list of them")
    if len(json.dumps(told)) > MAX_SAMPLED_BYTES:
        raise _wrong(path, f"must have at most {MAX_SAMPLED_BYTES // 1024} KiB")
    return told


def _roots(given: JsonObject, path: str) -> JsonObject:
    roots = given.get("roots")
    if not isinstance(roots, list) or len(json.dumps(roots)) > MAX_ROOTS_BYTES:
        raise _wrong(f"{path}.roots", f"must be a list of at most {MAX_ROOTS_BYTES // 1024} KiB")
    told: list[JsonValue] = []
    for root in roots:
        uri = root.get("uri") if isinstance(root, dict) else None
        if not isinstance(root, dict) or not isinstance(uri, str) or not uri.startswith("file://"):
            raise _wrong(f"{path}.roots", "must be files by their file:// URIs")
        name = root.get("name")
        told.append({"uri": uri, "name": name} if isinstance(name, str) else {"uri": uri})
    return {"roots": told}


def _wrong(path: str, message: str) -> ServiceError:
    violation = Violation(path=path, message=message)
    return invalid("client_answer_invalid", "The answer does not fit the question.", violation)
