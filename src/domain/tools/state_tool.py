"""The tool by which an agent changes the state of the front end that asks it."""

from domain.tools.capabilities import ToolType
from domain.tools.tool import Tool

UPDATE_STATE = "update_state"
MAX_STATE_BYTES = 128 * 1024
"""A state after a change, as JSON. The front end sends it with its tools (`MAX_CLIENT_BYTES`)."""
_MAX_OPERATIONS = 100

STATE_TOOL = Tool(
    name=UPDATE_STATE,
    type=ToolType.CLIENT_STATE,
    description=(
        "Change the state of the application, which its user sees at once. `patch` is a JSON Patch (RFC 6902): its operations "
        "are applied in order, all or none."
    ),
    parameters={
        "type": "object",
        "properties": {
            "patch": {
                "type": "array",
                "minItems": 1,
                "maxItems": _MAX_OPERATIONS,
                "items": {
                    "type": "object",
                    "properties": {
                        "op": {"type": "string", "enum": ["add", "remove", "replace", "move", "copy", "test"]},
                        "path": {"type": "string", "description": 'A JSON Pointer, such as "/items/0" or "/items/-".'},
                        "from": {
                            "type": "string",
                            "description": "Of `move` and `copy`: the JSON Pointer of the value.",
                        },
                        "value": {"description": "Of `add`, `replace` and `test`: any JSON value."},
                    },
                    "required": ["op", "path"],
                    "additionalProperties": False,
                },
            }
        },
        "required": ["patch"],
        "additionalProperties": False,
    },
    repeatable=True,
)
"""Repeatable: a call has no effect before its outcome is stored."""
