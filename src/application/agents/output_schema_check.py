"""Violations of an output schema that no answer could be checked by."""

from application.policy.ports import SchemaValidator
from domain.errors import Violation, invalid
from domain.json_value import JsonObject
from domain.runs.output import size_violations

PATH = "output_schema"


def output_schema_violations(schemas: SchemaValidator, schema: JsonObject | None) -> list[Violation]:
    """A schema that is too large is not compiled."""
    too_large = size_violations(schema)
    if schema is None or too_large:
        return too_large
    problem = schemas.problem_with(schema)
    return [] if problem is None else [Violation(path=PATH, message=problem)]


def require_usable(schemas: SchemaValidator, schema: JsonObject | None) -> None:
    """Raise INVALID `output_schema_invalid`."""
    unusable = output_schema_violations(schemas, schema)
    if unusable:
        raise invalid("output_schema_invalid", "The output schema is not valid.", *unusable)
