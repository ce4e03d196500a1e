"""What is decided about a call before anything is recorded as sent."""

import pytest

from application.tools.check_tool_call import CheckToolCall
from application.tools.toolset import Toolset
from domain.ids import ToolCallId
from domain.json_value import JsonObject
from domain.threads.message import ToolUse
from infrastructure.schemas.json_schemas import JsonSchemaValidator
from tests.builders import a_tool


def refusal_code(
    name: str, params: JsonObject, *, malformed: str | None = None, schema: JsonObject | None = None
) -> str | None:
    check = CheckToolCall(schemas=JsonSchemaValidator())
    use = ToolUse(id=ToolCallId("call_1"), name=name, params=params, malformed=malformed)
    checked = check.check(use, Toolset(tools=(a_tool("echo", parameters=schema),)))
    assert (checked.name, checked.params) == (name, params)
    return None if checked.answer is None else checked.answer.error_code


@pytest.mark.requirement("A4", "A9", "B9")
def test_a_call_goes_ahead_only_if_its_tool_exists_and_its_arguments_fit() -> None:
    assert refusal_code("echo", {"text": "hi"}) is None
    assert refusal_code("Echo", {"text": "hi"}) == "tool_not_found"
    assert refusal_code("echo", {}) == "tool_arguments_invalid"
    assert refusal_code("echo", {"text": 1}) == "tool_arguments_invalid"
    assert refusal_code("echo", {"text": "hi"}, schema={"type": "nonsense"}) == "tool_arguments_invalid"


@pytest.mark.requirement("A9")
def test_malformed_arguments_are_refused_even_where_an_empty_object_would_fit() -> None:
    assert refusal_code("echo", {}, malformed="{", schema={"type": "object"}) == "tool_arguments_malformed"
