"""JSON Schema checks whose library is loaded by the first of them: an idle service does without its memory."""

from application.policy.ports import SchemaValidator
from application.system.lazy import Lazy
from domain.json_value import JsonObject, JsonValue


class LazySchemaValidator(Lazy[SchemaValidator]):
    """`SchemaValidator` that is loaded by the first check."""

    def violations(self, schema: JsonObject, value: JsonValue) -> tuple[str, ...]:
        return self.get().violations(schema, value)

    def problem_with(self, schema: JsonObject) -> str | None:
        return self.get().problem_with(schema)
