"""JSON Schema checks whose library is loaded by the first of them: an idle service does without its memory."""

from collections.abc import Callable

from application.policy.ports import SchemaValidator
from domain.json_value import JsonObject, JsonValue


class LazySchemaValidator:
    """SchemaValidator that `load` makes on first use."""

    def __init__(self, load: Callable[[], SchemaValidator]) -> None:
        self._load = load
        self._loaded: SchemaValidator | None = None

    def violations(self, schema: JsonObject, value: JsonValue) -> tuple[str, ...]:
        """What is wrong with `value`."""
        return (self._loaded or self._opened()).violations(schema, value)

    def problem_with(self, schema: JsonObject) -> str | None:
        """Why a schema cannot be used, or None."""
        return (self._loaded or self._opened()).problem_with(schema)

    def _opened(self) -> SchemaValidator:
        self._loaded = self._load()
        return self._loaded
