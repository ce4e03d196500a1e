"""Validates clients' answers to questions of MCP servers."""

import json
from typing import cast

from application.policy.ports import SchemaValidator
from domain.errors import Violation, invalid
from domain.json_value import JsonValue
from domain.mcp.elicitation import Elicitation, ElicitationAction, ElicitationAnswer

MAX_CONTENT_BYTES = 64 * 1024
_FIELDS = frozenset({"action", "content", "request_id"})


def read_answer(given: JsonValue, question: Elicitation, *, path: str, schemas: SchemaValidator) -> ElicitationAnswer:
    """Parse `{action: accept | decline | cancel, content?, request_id?}` as an answer to
    `question`. `content` is only for accepted forms and must fit their schema; a `request_id`
    must be the question's. Raises INVALID `elicitation_answer_invalid` with paths under `path`."""
    if not isinstance(given, dict):
        raise _wrong((path, "must be an object with an action: accept, decline or cancel"))
    action, content = given.get("action"), given.get("content")
    wrong = [(f"{path}.{name}", "is not known") for name in given if name not in _FIELDS]
    if action not in list(ElicitationAction):
        wrong.append((f"{path}.action", "must be accept, decline or cancel"))
    if given.get("request_id", question.request_id) != question.request_id:
        wrong.append((f"{path}.request_id", f"is not the pending question: {question.request_id}"))
    if wrong:
        raise _wrong(*wrong)
    answer = ElicitationAction(cast(str, action))
    if answer is not ElicitationAction.ACCEPT or question.schema is None:
        if content is not None:
            raise _wrong((f"{path}.content", "belongs to an accepted form only"))
        return ElicitationAnswer(action=answer)
    if not isinstance(content, dict) or len(json.dumps(content)) > MAX_CONTENT_BYTES:
        raise _wrong((f"{path}.content", f"must be an object of at most {MAX_CONTENT_BYTES // 1024} KiB"))
    violations = schemas.violations(question.schema, content)
    if violations:
        raise _wrong(*((f"{path}.content", violation) for violation in violations))
    return ElicitationAnswer(action=answer, content=content)


def _wrong(*violations: tuple[str, str]) -> Exception:
    return invalid(
        "elicitation_answer_invalid",
        "The answer does not fit the question.",
        *(Violation(path=path, message=message) for path, message in violations),
    )
