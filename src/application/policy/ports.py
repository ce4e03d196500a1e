"""Ports of the policy slice: JSON Schema."""

from typing import Protocol

from domain.json_value import JsonObject, JsonValue


class SchemaValidator(Protocol):
    """JSON Schema (2020-12 by default). Remote references are never fetched."""

    def violations(self, schema: JsonObject, value: JsonValue) -> tuple[str, ...]:
        """What is wrong with `value`, one sentence each with the path (`/limit: "x" is not of type "integer"`), at
        most ten;
        empty if it fits. Raises ServiceError `schema_invalid` if the schema itself cannot be used."""
        ...

    def problem_with(self, schema: JsonObject) -> str | None:
        """Why a schema cannot be used (not an object schema, invalid, too deep, remote reference), or None."""
        ...
