"""Questions of workflow nodes: an object schema is a form, and what is entered becomes the
answer."""

import pytest

from domain.errors import ServiceError
from domain.json_value import JsonObject, JsonValue
from domain.workflows.execution import NodeRun
from interfaces.console.human_answers import Question, answer_to, question_of

pytestmark = pytest.mark.requirement("U6")

REVIEW: JsonObject = {
    "type": "object",
    "properties": {
        "good": {"type": "boolean"},
        "grade": {"type": "string", "enum": ["a", "b"]},
        "who": {"type": "object", "properties": {"age": {"type": "integer"}}},
        "rows": {"type": "array", "items": {"type": "object"}},
    },
}


def asked(schema: JsonValue) -> Question:
    question = question_of(NodeRun(node_id="review", asked={"prompt": "Is it good?", "schema": schema}))
    assert question is not None
    return question


def test_an_object_is_a_form_with_a_field_of_json_only_for_what_has_no_other() -> None:
    question = asked(REVIEW)
    assert question.kind == "form"
    assert [each.kind for each in question.fields] == ["yes_no", "one_of", "group", "json"]
    form = {"f0": "yes", "f1": "b", "f2-0": "36", "f3": "[{}]"}
    assert answer_to(question, form) == {"good": True, "grade": "b", "who": {"age": 36}, "rows": [{}]}


def test_what_cannot_be_read_is_said_at_the_answer_with_the_way_to_the_field() -> None:
    with pytest.raises(ServiceError) as refused:
        answer_to(asked(REVIEW), {"f2-0": "many"})
    [fault] = refused.value.violations
    assert (fault.path, fault.message) == ("answer-review", "who.age must be a number")


@pytest.mark.parametrize(
    ("schema", "kind"),
    [({"type": "object"}, "json"), ({"type": "array"}, "json"), ({"type": "string"}, "text"), (None, "any")],
)
def test_other_schemas_are_answered_in_one_field(schema: JsonValue, kind: str) -> None:
    question = asked(schema)
    assert (question.kind, question.fields) == (kind, ())
    assert answer_to(question, {"answer": '{"a": 1}', "format": "json"}) == ('{"a": 1}' if kind == "text" else {"a": 1})
