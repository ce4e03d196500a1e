"""Checks the answer of a run with an output schema."""

import asyncio
from dataclasses import replace

from application.policy.canary_guard import CanaryFound, CanaryGuard
from application.policy.ports import SchemaValidator
from application.runs.execution.ask_model import Answer
from application.runs.execution.run_session import RunSession
from domain.json_value import JsonObject
from domain.policy.canary import mark
from domain.runs.output import CheckedOutput, parsed_output

_LARGE = 32 * 1024
"""Characters of an answer that is checked in a thread."""


class CheckOutput:
    """Rules:
    - Without an output schema nothing is checked.
    - The answer must have a JSON object that matches the schema, which may stand among other text.
    - A canary token in the object ends the run, also if the answer writes it with escapes, or the
      object does not match.
    - Large answers are checked in a thread.
    """

    def __init__(self, *, schemas: SchemaValidator) -> None:
        self._schemas = schemas

    async def execute(self, session: RunSession, answer: Answer, text: str) -> CheckedOutput | None:
        """The output, or the faults of `text`, the whole answer. None without a schema. Raises
        CanaryFound."""
        schema = session.output_schema
        if schema is None:
            return None
        if len(text) > _LARGE:
            checked = await asyncio.to_thread(self._checked, session.guard, schema, text)
        else:
            checked = self._checked(session.guard, schema, text)
        if isinstance(checked, CheckedOutput):
            return checked
        reply = replace(answer.reply, text=mark(checked), items=None)
        raise CanaryFound(checked, reply=reply, message_id=answer.message_id)

    def _checked(self, guard: CanaryGuard, schema: JsonObject, text: str) -> CheckedOutput | str:
        """The output, or the id of a token in its object."""
        parsed = parsed_output(text)
        if parsed.value is None:
            return parsed
        found = guard.arguments(parsed.value)
        if found is not None:
            return found
        faults = self._schemas.violations(schema, parsed.value)
        return CheckedOutput(faults=tuple(map(guard.words, faults))) if faults else parsed
