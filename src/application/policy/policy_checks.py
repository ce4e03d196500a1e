"""Checks the JSON Schemas that policies refer to."""

from application.policy.ports import SchemaValidator
from domain.errors import ServiceError, Violation
from domain.json_value import JsonObject
from domain.policy.rules import ToolPolicies


class PolicyChecks:
    """An unusable schema would block every call, so it is rejected when it is saved."""

    def __init__(self, *, schemas: SchemaValidator) -> None:
        self._schemas = schemas

    def violations(self, policies: ToolPolicies) -> list[Violation]:
        """One violation for each unusable schema."""
        wrong = []
        for pattern, rule in policies.rules:
            problem = None if rule.arguments_schema is None else self._problem(rule.arguments_schema)
            if problem is not None:
                wrong.append(Violation(path=f"tool_policies.{pattern}.arguments_schema", message=problem))
        return wrong

    def _problem(self, schema: JsonObject) -> str | None:
        try:
            self._schemas.violations(schema, {})
        except ServiceError as error:
            return error.detail
        return None
