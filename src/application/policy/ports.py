"""Ports of the policy slice: JSON Schema."""

from typing import Protocol

from domain.json_value import JsonObject, JsonValue


class SchemaValidator(Protocol):
    """JSON Schema (2020-12 by default). Remote references are never fetched."""

    def violations(self, schema: JsonObject, value: JsonValue) -> tuple[str, ...]:
        """Violations of `value`, one sentence each with the path (`/limit: "x" is not of type
        "integer"`), at most ten; empty if it fits. Raises ServiceError `schema_invalid` if the
        schema is unusable."""

    def problem_with(self, schema: JsonObject) -> str | None:
        """Why a schema is unusable (not an object schema, invalid, too deep, remote reference), or
        None."""
