"""What models are told of displayable tools, and which arguments reach a client."""

import pytest

from domain.json_value import JsonObject
from domain.tools.tool import Tool
from infrastructure.native_tools.displayable import CREATE_CALENDAR_EVENT, DISPLAYABLE_TOOLS
from infrastructure.schemas.json_schemas import JsonSchemaValidator


@pytest.mark.requirement("D5")
@pytest.mark.parametrize("tool", DISPLAYABLE_TOOLS, ids=lambda tool: tool.name)
def test_all_parameters_of_displayable_tools_are_texts_and_needed(tool: Tool) -> None:
    properties = tool.parameters["properties"]
    assert isinstance(properties, dict)
    assert tool.parameters["required"] == list(properties)
    assert tool.parameters["additionalProperties"] is False
    assert {entry["type"] for entry in properties.values() if isinstance(entry, dict)} == {"string"}


@pytest.mark.requirement("D5", "A9")
@pytest.mark.parametrize(
    ("moment", "fits"),
    [
        ("2026-12-01T09:30:00+01:00", True),
        ("2026-12-01T09:30:00.123Z", True),
        ("2026-12-01T09:30", True),
        ("2026-12-01T09:30:00", True),
        ("2026-12-01T09:30+0100", True),
        ("2026-12-01", True),
        ("2028-02-29", True),
        ("tomorrow at nine", False),
        ("", False),
        ("01.12.2026 09:30", False),
        ("2026-13-01", False),
        ("2026-02-30", False),
        ("2026-04-31", False),
        ("2026-12-01T24:30", False),
        ("2026-12-01T09:60", False),
        ("2026-12-01 09:30", False),
        ("2026-12-01T09:30:00+25:00", False),
        ("at 2026-12-01", False),
        ("2026-12-01\nnow", False),
        ("\u0662\u0660\u0662\u0666-12-01", False),
    ],
)
def test_times_of_calendar_events_are_iso_8601(moment: str, fits: bool) -> None:
    event: JsonObject = {"title": "t", "description": "", "location": "", "start": moment, "end": "2026-12-01T10:00Z"}
    swapped: JsonObject = {**event, "start": event["end"], "end": moment}
    validator = JsonSchemaValidator()
    for arguments, field in ((event, "/start"), (swapped, "/end")):
        violations = validator.violations(CREATE_CALENDAR_EVENT.parameters, arguments)
        assert (violations == ()) is fits
        assert all(violation.startswith(field) for violation in violations)
