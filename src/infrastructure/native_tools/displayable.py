"""Client tools: the client displays and settles them, Dragoman only describes them."""

from domain.json_value import JsonObject
from domain.tools.capabilities import ToolType
from domain.tools.tool import Tool

_DATE = "[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|[12][0-9]))"
_TIME = r"T([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,9})?)?(Z|[+-]([01][0-9]|2[0-3]):?[0-5][0-9])?"
"""ISO 8601, extended format: a date, or a date and a time with an optional offset."""


def _object(properties: JsonObject) -> JsonObject:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def _text(description: str) -> JsonObject:
    return {"type": "string", "description": description}


def _moment(description: str) -> JsonObject:
    # A pattern, because validators ignore formats (JSON Schema 2020-12, Validation, 7.1).
    return {"type": "string", "pattern": f"^{_DATE}({_TIME})?$", "description": description}


SEND_EMAIL = Tool(
    name=ToolType.SEND_EMAIL.value,
    type=ToolType.SEND_EMAIL,
    description="Show the user an email that is ready to be sent. The user reviews and sends it.",
    parameters=_object(
        {
            "subject": _text("The subject line."),
            "body": _text("The text of the email."),
            "to": _text("The address of the recipient; several with commas between them."),
        }
    ),
)

CREATE_CALENDAR_EVENT = Tool(
    name=ToolType.CREATE_CALENDAR_EVENT.value,
    type=ToolType.CREATE_CALENDAR_EVENT,
    description="Show the user a calendar event that is ready to be created. The user reviews and saves it.",
    parameters=_object(
        {
            "title": _text("The title of the event."),
            "description": _text("What the event is about; may be empty."),
            "location": _text("Where it takes place; may be empty."),
            "start": _moment("When it begins, in ISO 8601: 2026-12-01T09:30:00+01:00, or 2026-12-01 for a whole day."),
            "end": _moment("When it ends, in ISO 8601 like its beginning."),
        }
    ),
)

DISPLAYABLE_TOOLS = (SEND_EMAIL, CREATE_CALENDAR_EVENT)
