"""JSON Schemas in the subset that providers generate answers by."""

import pytest

from domain.json_value import JsonObject, JsonValue
from infrastructure.llm.strict_schema import OPENAI_CONSTRAINTS, strict_schema
from infrastructure.schemas.json_schemas import JsonSchemaValidator

NO_CONSTRAINTS: frozenset[str] = frozenset()


def an_object(properties: JsonObject, *, defs: JsonObject | None = None, **more: JsonValue) -> JsonObject:
    defined: JsonObject = {} if defs is None else {"$defs": defs}
    return {"type": "object", "properties": properties, "required": [*properties], **defined, **more}


def strict(schema: JsonObject, *, optional: bool = False) -> JsonObject | None:
    return strict_schema(schema, optional=optional, constraints=OPENAI_CONSTRAINTS)


@pytest.mark.requirement("H3")
def test_objects_get_no_other_properties_at_every_place() -> None:
    inner = an_object({"b": {"type": "string"}})
    schema = an_object({"a": inner, "list": {"type": "array", "items": inner}}, defs={"c": inner})
    closed = {**inner, "additionalProperties": False}
    assert strict(schema) == {
        **an_object({"a": closed, "list": {"type": "array", "items": closed}}),
        "additionalProperties": False,
        "$defs": {"c": closed},
    }


@pytest.mark.requirement("H3")
def test_what_is_in_the_subset_stays_as_it_is() -> None:
    schema = an_object(
        {
            "kind": {"type": "string", "enum": ["a", "b"], "description": "Its kind."},
            "size": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]},
            "next": {"$ref": "#"},
        },
        additionalProperties=False,
        title="Thing",
    )
    assert strict(schema) == schema


@pytest.mark.requirement("H3")
def test_constraints_that_are_not_in_the_subset_are_told_in_the_description() -> None:
    schema = an_object({"n": {"type": "integer", "minimum": 1, "maximum": 9, "description": "How many."}})
    found = strict_schema(schema, optional=True, constraints=NO_CONSTRAINTS)
    assert found is not None
    assert found["properties"] == {"n": {"type": "integer", "description": 'How many. {"minimum":1,"maximum":9}'}}


@pytest.mark.requirement("H3")
def test_properties_may_be_missing_only_where_the_subset_has_that() -> None:
    schema: JsonObject = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    assert strict(schema) is None
    assert strict(schema, optional=True) == {**schema, "required": [], "additionalProperties": False}


@pytest.mark.requirement("H3")
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "string"}},
        an_object({"a": {}}),
        an_object({"a": True}),
        an_object({"a": {"type": "array"}}),
        an_object({"a": {"type": "object", "additionalProperties": True}}),
        an_object({"a": {"type": "string", "not": {"const": "b"}}}),
        an_object({"a": {"type": "string"}}, allOf=[]),
        an_object({"a": {"type": "string"}}, required=["a", "b"]),
        an_object({"a": {"anyOf": [{"type": "string"}, {}]}}),
    ],
)
def test_what_the_subset_cannot_express_is_none(schema: JsonObject) -> None:
    assert strict_schema(schema, optional=True, constraints=NO_CONSTRAINTS) is None


@pytest.mark.requirement("H3")
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (an_object({"a": {"oneOf": [{"type": "string"}, {"type": "null"}]}}), {"a": None}),
        (an_object({"a": {"type": "string", "default": "x", "minLength": 1}}), {"a": "y"}),
        (an_object({"a": {"$ref": "#/$defs/b"}}, defs={"b": {"type": "integer"}}), {"a": 1}),
    ],
)
def test_what_fits_the_subset_fits_the_schema(schema: JsonObject, value: JsonObject) -> None:
    found, schemas = strict(schema), JsonSchemaValidator()
    assert found is not None
    assert schemas.violations(found, value) == schemas.violations(schema, value) == ()
