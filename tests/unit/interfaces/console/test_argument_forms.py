"""ArgumentForms: the arguments of calls that wait, as fields of their tools' schemas."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.tools.explain_tool import ExplainTool
from domain.errors import not_found
from domain.identity.role import Role
from domain.ids import ApprovalId
from domain.json_value import JsonObject
from interfaces.console.argument_forms import ArgumentForms
from tests.refusals import refused
from tests.run_builders import a_run_approval
from tests.unit.application.actors import a_principal

pytestmark = pytest.mark.requirement("U6")

SCHEMA: JsonObject = {"type": "object", "properties": {"to": {"type": "string"}}}
WAITING = replace(a_run_approval(), arguments={"to": "Ada"})
OPERATOR = a_principal(Role.OPERATOR)


@pytest.fixture
def explain(mocker: MockerFixture) -> MockType:
    tool = mocker.create_autospec(ExplainTool, instance=True)
    tool.execute.return_value.tool.parameters = SCHEMA
    return tool


async def test_the_schema_of_a_tool_is_read_once_for_all_its_calls(explain: MockType) -> None:
    other = replace(WAITING, id=ApprovalId("apr_other"), arguments={"to": "Grace"})
    forms = await ArgumentForms(explain_tool=explain).of(OPERATOR, (WAITING, other))
    assert [[field.value for field in form.fields] for form in forms.values()] == [["Ada"], ["Grace"]]
    explain.execute.assert_awaited_once()


async def test_a_call_of_a_tool_that_its_agent_lost_has_no_form_and_its_json_is_taken(explain: MockType) -> None:
    explain.execute.side_effect = not_found("tool", WAITING.tool)
    forms = ArgumentForms(explain_tool=explain)
    assert await forms.of(OPERATOR, (WAITING,)) == {}
    assert await forms.entered(OPERATOR, WAITING, {"arguments": '{"to": "Ada"}'}) is None
    assert await forms.entered(OPERATOR, WAITING, {"arguments": '{"to": "Bo"}'}) == {"to": "Bo"}
    with refused("tool_changed"):
        await forms.entered(OPERATOR, WAITING, {"schema": "sha256:old", "f0": "Bo"})


async def test_what_was_entered_is_taken_by_the_schema_that_the_form_was_made_of(explain: MockType) -> None:
    forms = ArgumentForms(explain_tool=explain)
    digest = (await forms.of(OPERATOR, (WAITING,)))[WAITING.id].schema
    assert await forms.entered(OPERATOR, WAITING, {"schema": digest, "f0": "Ada"}) is None
    assert await forms.entered(OPERATOR, WAITING, {"schema": digest, "f0": "Bo"}) == {"to": "Bo"}
    assert await forms.entered(OPERATOR, WAITING, {}) is None
    with refused("tool_changed"):
        await forms.entered(OPERATOR, WAITING, {"schema": "sha256:old", "f0": "Bo"})


async def test_each_field_of_the_form_is_found_by_its_path(explain: MockType) -> None:
    inner: JsonObject = {"type": "object", "properties": {"days": {"type": "array", "items": {}}}}
    explain.execute.return_value.tool.parameters = {"type": "object", "properties": {"to": inner}}
    fields = await ArgumentForms(explain_tool=explain).paths(OPERATOR, replace(WAITING, arguments={"to": {"days": []}}))
    assert {path: field.key for path, field in fields.items()} == {"to": "to", "to.days": "days"}
    explain.execute.side_effect = not_found("tool", WAITING.tool)
    assert await ArgumentForms(explain_tool=explain).paths(OPERATOR, WAITING) == {}
