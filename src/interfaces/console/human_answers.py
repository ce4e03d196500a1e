"""Questions of workflow nodes to people as fields, and their answers as JSON."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from domain.errors import ServiceError, Violation, invalid
from domain.json_value import JsonObject, JsonValue
from domain.mcp.elicitation import account_path
from domain.workflows.execution import NodeRun
from interfaces.console.json_text import JsonTextError, json_of
from interfaces.console.questions import Field, content_of, fields_of

Kind = Literal["choice", "text", "form", "json", "any"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """`choices` are JSON values with labels, `fields` those of an object. Without a schema the
    person selects text or JSON. `account_page` is the path where an account is connected, if the
    node waits for one."""

    node_id: str
    prompt: str
    kind: Kind
    choices: tuple[tuple[str, str], ...] = ()
    fields: tuple[Field, ...] = ()
    schema: JsonValue = None
    account_page: str | None = None

    @property
    def label(self) -> str:
        """Of the field."""
        return "Answer (JSON)" if self.kind == "json" else "Answer"


def question_of(node: NodeRun) -> Question | None:
    """The question of a waiting node, or None."""
    asked = node.asked
    if node.run_id is not None or not isinstance(asked, Mapping):
        return None
    prompt, schema = asked.get("prompt"), asked.get("schema")
    shown = prompt if isinstance(prompt, str) else json.dumps(prompt, ensure_ascii=False, indent=2)
    kind, choices = _field(schema)
    url = asked.get("url") if node.waits_for_account is not None else None
    page = account_path(url) if isinstance(url, str) else None
    fields = fields_of(schema) if kind == "form" and isinstance(schema, dict) else ()
    return Question(
        node_id=node.node_id,
        prompt=shown,
        kind=kind,
        choices=choices,
        fields=fields,
        schema=schema,
        account_page=page,
    )


def answer_to(question: Question, form: Mapping[str, str]) -> JsonValue:
    """The entered value. Raises INVALID at the field."""
    text = form.get("answer", "")
    if question.kind == "form" and isinstance(question.schema, dict):
        return _entered(question, question.schema, form)
    if question.kind == "text" or (question.kind == "any" and form.get("format") != "json"):
        return text
    try:
        return json_of(text)
    except JsonTextError as error:
        field = Violation(path=f"answer-{question.node_id}", message=str(error))
        raise invalid("answer_invalid", "The answer is not JSON.", field) from None


def _entered(question: Question, schema: JsonObject, form: Mapping[str, str]) -> JsonObject:
    try:
        return content_of(schema, form)
    except ServiceError as error:
        at = f"answer-{question.node_id}"
        faults = [Violation(path=at, message=f"{fault.path} {fault.message}") for fault in error.violations]
        raise invalid(error.code, error.detail, *faults) from None


def _field(schema: JsonValue) -> tuple[Kind, tuple[tuple[str, str], ...]]:
    if not isinstance(schema, Mapping):
        return ("json", ()) if schema is not None else ("any", ())
    values = schema.get("enum")
    if isinstance(values, list) and values:
        return "choice", tuple((json.dumps(value), _shown(value)) for value in values)
    match schema.get("type"):
        case "boolean":
            return "choice", (("true", "yes"), ("false", "no"))
        case "string":
            return "text", ()
        case "object" if schema.get("properties"):
            return "form", ()
        case _:
            return "json", ()


def _shown(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
