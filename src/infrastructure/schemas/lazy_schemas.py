"""JSON Schema validation whose library is loaded at first use, to save memory in an idle
service."""

from application.policy.ports import SchemaValidator
from application.system.lazy import Lazy
from domain.json_value import JsonObject, JsonValue


class LazySchemaValidator(Lazy[SchemaValidator]):
    """A SchemaValidator that is loaded at the first check."""

    def violations(self, schema: JsonObject, value: JsonValue) -> tuple[str, ...]:
        return self.get().violations(schema, value)

    def problem_with(self, schema: JsonObject) -> str | None:
        return self.get().problem_with(schema)
