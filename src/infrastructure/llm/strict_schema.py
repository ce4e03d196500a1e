"""JSON Schemas in the subset that providers generate answers by. Sources:
https://platform.openai.com/docs/guides/structured-outputs#supported-schemas,
https://docs.claude.com/en/docs/build-with-claude/structured-outputs#json-schema-limitations."""

from domain.json_value import JsonObject, JsonValue, compact_json

CONSTRAINTS = frozenset(
    {
        *("pattern", "format", "minLength", "maxLength", "uniqueItems", "minItems", "maxItems"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    }
)
OPENAI_CONSTRAINTS = CONSTRAINTS - {"minLength", "maxLength", "uniqueItems"}
_SAME = frozenset({"type", "enum", "const", "title", "description"})
_NOTES = frozenset({"$schema", "$id", "$comment", "default", "examples", "deprecated", "readOnly", "writeOnly"})
_STRUCTURE = frozenset(
    {"properties", "required", "additionalProperties", "items", "anyOf", "oneOf", "$ref", "$defs", "definitions"}
)
_KNOWN = _SAME | _NOTES | _STRUCTURE | CONSTRAINTS
_SAYS_WHAT = frozenset({"type", "enum", "const", "anyOf", "oneOf", "$ref"})


def strict_schema(schema: JsonObject, *, optional: bool, constraints: frozenset[str]) -> JsonObject | None:
    """The schema in the subset; None if the subset cannot express it. What fits the result and its
    descriptions fits the schema.

    - Objects have no properties but their own. `optional`: some may be missing.
    - Of the constraints only `constraints` are in the subset; descriptions have the others.
    """
    return _Subset(optional, constraints).of(schema)


class _Subset:
    def __init__(self, optional: bool, constraints: frozenset[str]) -> None:
        self._optional = optional
        self._constraints = constraints

    def of(self, schema: JsonValue) -> JsonObject | None:
        if not isinstance(schema, dict) or schema.keys() - _KNOWN or not schema.keys() & _SAYS_WHAT:
            return None
        strict: JsonObject = {
            name: value for name, value in schema.items() if name in _SAME or name in self._constraints
        }
        if "$ref" in schema:
            strict = {"$ref": schema["$ref"]}
        told = {name: value for name, value in schema.items() if name in CONSTRAINTS - self._constraints}
        if told and "$ref" not in schema:
            strict["description"] = f"{strict.get('description', '')} {''.join(compact_json(told))}".strip()
        kinds = schema.get("type")
        is_object = kinds == "object" or (isinstance(kinds, list) and "object" in kinds)
        if "properties" in schema or is_object:
            return self._object(schema, strict)
        return self._rest(schema, strict)

    def _object(self, schema: JsonObject, strict: JsonObject) -> JsonObject | None:
        properties, required = schema.get("properties", {}), schema.get("required", [])
        more = schema.get("additionalProperties", None if properties else True)
        if not isinstance(properties, dict) or not isinstance(required, list) or more not in (None, False):
            return None
        if set(map(str, required)) - properties.keys() or (not self._optional and len(required) < len(properties)):
            return None
        members = self._members(properties)
        if members is None:
            return None
        return self._rest(
            schema, {**strict, "properties": members, "required": required, "additionalProperties": False}
        )

    def _rest(self, schema: JsonObject, strict: JsonObject) -> JsonObject | None:
        """The items, branches and definitions."""
        if "items" in schema:
            items = self.of(schema["items"])
            if items is None:
                return None
            strict["items"] = items
        elif schema.get("type") == "array":
            return None
        branches = schema.get("anyOf", schema.get("oneOf"))
        if branches is not None:
            found = [self.of(branch) for branch in branches] if isinstance(branches, list) else [None]
            if any(branch is None for branch in found) or {"anyOf", "oneOf"} <= schema.keys():
                return None
            strict["anyOf"] = [*found]
        for name in ("$defs", "definitions"):
            if name in schema:
                defined = schema[name]
                members = self._members(defined) if isinstance(defined, dict) else None
                if members is None:
                    return None
                strict[name] = members
        return strict

    def _members(self, members: JsonObject) -> JsonObject | None:
        found = {name: self.of(member) for name, member in members.items()}
        if any(member is None for member in found.values()):
            return None
        return {**found}
