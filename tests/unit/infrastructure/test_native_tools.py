"""Which native tools there are, and what models are told of them."""

import pytest

from domain.tools.capabilities import ToolType
from infrastructure.native_tools.displayable import CREATE_CALENDAR_EVENT, SEND_EMAIL
from infrastructure.native_tools.registry import NativeTools, native_tools
from infrastructure.schemas import JsonSchemaValidator


@pytest.mark.requirement("A3", "D5")
async def test_tools_are_found_by_type_as_executable_or_displayable() -> None:
    tools = native_tools()

    assert set(tools.executable) == {ToolType.CODE_EXECUTION}
    assert set(tools.displayable) == {ToolType.SEND_EMAIL, ToolType.CREATE_CALENDAR_EVENT}
    assert [tool.name for tool in tools.available()] == ["code_execution", "create_calendar_event", "send_email"]
    assert all(tool.name == tool.type.value for tool in tools.available())
    await tools.close()


@pytest.mark.requirement("D5")
def test_displayable_tools_take_the_parameters_that_clients_know() -> None:
    email, event = SEND_EMAIL.parameters["properties"], CREATE_CALENDAR_EVENT.parameters["properties"]

    assert isinstance(email, dict)
    assert isinstance(event, dict)
    assert list(email) == ["subject", "body", "to"]
    assert list(event) == ["title", "description", "location", "start", "end"]
    assert SEND_EMAIL.is_displayable
    assert CREATE_CALENDAR_EVENT.is_displayable


@pytest.mark.requirement("A9")
def test_every_native_tool_has_a_usable_schema_and_a_description() -> None:
    validator = JsonSchemaValidator()

    for tool in native_tools().available():
        assert validator.problem_with(tool.parameters) is None
        assert len(tool.description) > 20
        assert validator.violations(tool.parameters, {}) != ()
        assert any("typo" in violation for violation in validator.violations(tool.parameters, {"typo": 1}))


def test_a_displayable_tool_cannot_be_passed_off_as_executable() -> None:
    executable = native_tools().executable[ToolType.CODE_EXECUTION].tool

    with pytest.raises(ValueError, match="executed here or displayed"):
        NativeTools(executable=(), displayable=(executable,))
