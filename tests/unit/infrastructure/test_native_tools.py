"""Which native tools there are, and what models are told of them."""

import pytest

from domain.tools.capabilities import ToolType
from domain.tools.tool import Tool
from infrastructure.native_tools.displayable import CREATE_CALENDAR_EVENT, DISPLAYABLE_TOOLS, SEND_EMAIL
from infrastructure.native_tools.internet_search import INTERNET_SEARCH
from infrastructure.native_tools.lazy_code_execution import CODE_EXECUTION
from infrastructure.native_tools.website_content import WEBSITE_CONTENT
from infrastructure.schemas.json_schemas import JsonSchemaValidator


@pytest.mark.requirement("A3", "D5")
def test_emails_and_calendar_events_are_displayable_and_code_is_executed_here() -> None:
    assert {tool.type for tool in DISPLAYABLE_TOOLS} == {ToolType.SEND_EMAIL, ToolType.CREATE_CALENDAR_EVENT}
    assert all(tool.is_displayable for tool in DISPLAYABLE_TOOLS)
    assert not CODE_EXECUTION.is_displayable
    assert all(tool.name == tool.type.value for tool in (CODE_EXECUTION, *DISPLAYABLE_TOOLS))


@pytest.mark.requirement("D5")
def test_displayable_tools_take_the_parameters_that_clients_know() -> None:
    email, event = SEND_EMAIL.parameters["properties"], CREATE_CALENDAR_EVENT.parameters["properties"]

    assert isinstance(email, dict)
    assert isinstance(event, dict)
    assert list(email) == ["subject", "body", "to"]
    assert list(event) == ["title", "description", "location", "start", "end"]


@pytest.mark.requirement("A9")
@pytest.mark.parametrize(
    "tool", [CODE_EXECUTION, WEBSITE_CONTENT, INTERNET_SEARCH, *DISPLAYABLE_TOOLS], ids=lambda tool: tool.name
)
def test_every_native_tool_has_a_description_and_a_schema_that_catches_typos(tool: Tool) -> None:
    validator = JsonSchemaValidator()

    assert validator.problem_with(tool.parameters) is None
    assert len(tool.description) > 20
    assert validator.violations(tool.parameters, {}) != ()
    assert any("typo" in violation for violation in validator.violations(tool.parameters, {"typo": 1}))


@pytest.mark.requirement("D2", "D3")
def test_reading_pages_and_searching_take_one_text_and_a_bound() -> None:
    validator = JsonSchemaValidator()

    for tool, text, bound, least, most in (
        (WEBSITE_CONTENT, "url", "max_chars", 100, 60_000),
        (INTERNET_SEARCH, "query", "max_results", 1, 20),
    ):
        assert tool.repeatable
        assert validator.violations(tool.parameters, {text: "x"}) == ()
        assert validator.violations(tool.parameters, {text: "x", bound: most}) == ()
        assert validator.violations(tool.parameters, {text: ""}) != ()
        assert validator.violations(tool.parameters, {text: "x", bound: least - 1}) != ()
        assert validator.violations(tool.parameters, {text: "x", bound: most + 1}) != ()
