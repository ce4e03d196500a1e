"""Structured output of runs: the JSON object in the model's answer, and the request to repair an
answer that does not match its schema."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from domain.errors import Violation
from domain.ids import message_id
from domain.json_value import JsonObject, size_within
from domain.runs.run import Run, RunError
from domain.threads.message import Message, Role, TextContent

MAX_SCHEMA = 64 * 1024
"""Characters of an output schema: it is part of every request to the model."""
MAX_OUTPUT = 1024 * 1024
"""Characters of an answer with an output schema."""
_SHOWN_FAULTS = 3
_NOT_JSON = "it is not a JSON object"
_REPAIR = """\
The answer does not match the output schema of this run:
{faults}

Answer again, with nothing but a JSON object that matches this JSON Schema:
{schema}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedOutput:
    """The object of an answer, or why it has none that matches the schema."""

    value: JsonObject | None = None
    faults: tuple[str, ...] = ()


def size_violations(schema: JsonObject | None) -> list[Violation]:
    """Of a schema that is too large to be sent with every request."""
    if schema is None or size_within(schema, MAX_SCHEMA) <= MAX_SCHEMA:
        return []
    return [Violation(path="output_schema", message=f"must be at most {MAX_SCHEMA} characters")]


def parsed_output(text: str) -> CheckedOutput:
    """The JSON object of an answer, not yet checked by a schema. Text around the object is left
    out: models put sentences or Markdown fences there."""
    if len(text) > MAX_OUTPUT:
        return CheckedOutput(faults=(f"it is longer than {MAX_OUTPUT} characters",))
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        return CheckedOutput(faults=(_NOT_JSON,))
    try:
        value = json.loads(text[start : end + 1], parse_constant=_refused)
        # Escapes may be halves of characters, which no database stores.
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return CheckedOutput(faults=(_NOT_JSON,))
    return CheckedOutput(value=value)


def output_invalid(faults: Sequence[str]) -> RunError:
    """The error of a run whose answer does not match after the repair."""
    shown = "; ".join(faults[:_SHOWN_FAULTS])
    return RunError(code="output_invalid", detail=f"The answer does not match the output schema: {shown}.")


def repair_request(run: Run, schema: JsonObject, faults: Sequence[str], *, at: datetime) -> Message:
    """The message that asks the model for a matching answer. `run` has the usage of the invalid
    one."""
    text = _REPAIR.format(
        faults="\n".join(f"- {fault}" for fault in faults), schema=json.dumps(schema, ensure_ascii=False)
    )
    return Message(
        id=message_id(run.id, run.usage.turns, "repair"),
        thread_id=run.thread_id,
        run_id=run.id,
        role=Role.USER,
        content=(TextContent(text=text),),
        created_at=at,
    )


def is_repair_request(message: Message, run: Run) -> bool:
    """Whether this is a `repair_request` of the run. Its only other message in the user's role is
    its input."""
    return message.role is Role.USER and message.run_id == run.id and message.id != message_id(run.id, 0, "user")


def _refused(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")
