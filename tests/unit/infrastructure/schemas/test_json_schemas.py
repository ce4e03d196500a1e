"""JSON Schema checks: what is said about values, which schemas are refused, and that hostile ones
cost nothing."""

from itertools import pairwise

import pytest

from domain.errors import ErrorKind, ServiceError
from domain.json_value import JsonObject, JsonValue
from infrastructure.schemas.json_schemas import JsonSchemaValidator
from infrastructure.schemas.schema_cost import UnusableSchema, cost_of

ARGUMENTS: JsonObject = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 2},
        "limit": {"type": "integer", "maximum": 50},
        "order": {"enum": ["newest", "oldest"]},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["query"],
    "additionalProperties": False,
}


def nested(depth: int, inner: JsonValue) -> JsonValue:
    value = inner
    for _ in range(depth):
        value = {"a": value}
    return value


def doubling(levels: int, last: JsonObject) -> JsonObject:
    """A schema of a few lines that stands for 2**levels checks of one place."""
    definitions: JsonObject = {
        f"d{level}": {"allOf": [{"$ref": f"#/$defs/d{level + 1}"}, {"$ref": f"#/$defs/d{level + 1}"}]}
        for level in range(levels)
    }
    return {"type": "object", "$defs": {**definitions, f"d{levels}": last}, "$ref": "#/$defs/d0"}


@pytest.mark.requirement("A9", "B9")
def test_a_value_that_fits_has_no_violations() -> None:
    value: JsonValue = {"query": "logs", "limit": 5, "order": "newest", "tags": ["a", "b"]}

    assert JsonSchemaValidator().violations(ARGUMENTS, value) == ()


@pytest.mark.requirement("A9")
def test_each_violation_names_its_place_by_json_pointer_and_shows_a_short_value() -> None:
    value: JsonValue = {"query": "q", "limit": "x", "order": "best", "tags": ["a", 2], "a/b~c": 1}

    assert set(JsonSchemaValidator().violations(ARGUMENTS, value)) == {
        '/query: "q" is shorter than 2 characters',
        '/limit: "x" is not of type "integer"',
        '/order: "best" is not one of "newest" or "oldest"',
        '/tags/1: 2 is not of type "string"',
        "Additional properties are not allowed ('a/b~c' was unexpected)",
    }


@pytest.mark.requirement("A9")
def test_a_violation_of_the_whole_value_stands_without_a_path() -> None:
    assert JsonSchemaValidator().violations(ARGUMENTS, {}) == ('"query" is a required property',)


def test_the_path_escapes_what_json_pointer_reserves() -> None:
    schema: JsonObject = {"type": "object", "additionalProperties": {"type": "integer"}}

    assert JsonSchemaValidator().violations(schema, {"a/b~c": "x"}) == ('/a~1b~0c: "x" is not of type "integer"',)


def test_alternatives_say_why_each_of_them_was_refused() -> None:
    schema: JsonObject = {"type": "object", "properties": {"n": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}}

    (violation,) = JsonSchemaValidator().violations(schema, {"n": "x"})

    assert '/n: "x" is not of type "integer"' in violation
    assert '/n: "x" is not of type "null"' in violation


def test_long_values_and_long_schemas_are_not_repeated_in_violations() -> None:
    secret = "sk-live-" + "0123456789abcdef" * 100
    schema: JsonObject = {
        "type": "object",
        "properties": {"key": {"type": "integer"}, "choice": {"enum": ["y" * 5_000]}, "o": {"type": "string"}},
    }

    violations = JsonSchemaValidator().violations(
        schema, {"key": secret, "choice": secret, "o": {"deep": secret, "list": [secret]}}
    )

    assert len(violations) == 3
    assert all(len(violation) <= 300 for violation in violations)
    assert secret[:64] not in "".join(violations)


def test_at_most_ten_violations_are_told() -> None:
    schema: JsonObject = {"type": "object", "additionalProperties": {"type": "integer"}}

    violations = JsonSchemaValidator().violations(schema, {f"k{index}": "x" for index in range(50)})

    assert len(violations) == 10


def test_an_older_draft_is_obeyed_when_the_schema_names_it() -> None:
    tuple_of_draft_7: JsonObject = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"pair": {"items": [{"type": "integer"}, {"type": "string"}], "additionalItems": False}},
    }
    validator = JsonSchemaValidator()

    assert validator.violations(tuple_of_draft_7, {"pair": [1, "a"]}) == ()
    assert validator.violations(tuple_of_draft_7, {"pair": [1, "a", 2]}) != ()


def test_references_within_the_schema_are_followed_by_pointer_anchor_and_embedded_id() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {
            "by_pointer": {"$ref": "#/$defs/with%20space"},
            "by_anchor": {"$ref": "#short"},
            "by_id": {"$ref": "urn:example:number"},
        },
        "$defs": {
            "with space": {"type": "string"},
            "other": {"$anchor": "short", "maxLength": 1},
            "number": {"$id": "urn:example:number", "type": "number"},
        },
    }
    validator = JsonSchemaValidator()

    assert validator.violations(schema, {"by_pointer": "x", "by_anchor": "x", "by_id": 1}) == ()
    assert len(validator.violations(schema, {"by_pointer": 1, "by_anchor": "xx", "by_id": "1"})) == 3


@pytest.mark.requirement("B7")
@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({}, "not an object schema"),
        ({"type": "string"}, "not an object schema"),
        ({"type": "object", "properties": {"a": {"type": "strin"}}}, "/properties/a/type"),
        ({"type": "object", "required": "a"}, "/required"),
        ({"type": "object", "$schema": "https://example.com/mine"}, "$schema is not a known draft"),
        ({"type": "object", "properties": {"a": {"pattern": "(?=x)y"}}}, "no look-around"),
        ({"type": "object", "properties": {"a": {"pattern": "(a)\\1"}}}, "no back-references"),
        ({"type": "object", "properties": {"a": {"pattern": "\\w{1000}{1000}"}}}, "too large together"),
        ({"type": "object", "properties": {"a": {"pattern": "\\p{L}{400}"}}}, "limited size"),
        ({"type": "object", "patternProperties": {"(?!x)": {}}}, "no look-around"),
        ({"type": "object", "properties": {"a": {"$ref": "https://example.com/a.json"}}}, "leads out"),
        ({"type": "object", "properties": {"a": {"$ref": "file:///etc/hostname"}}}, "leads out"),
        ({"type": "object", "properties": {"a": {"$ref": "other.json#/a"}}}, "leads out"),
        ({"type": "object", "properties": {"a": {"$dynamicRef": "https://example.com/a.json"}}}, "leads out"),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/missing"}}}, "leads nowhere"),
        ({"type": "object", "$ref": "#"}, "leads back to itself"),
        ({"type": "object", "allOf": [{"$ref": "#/allOf/0"}]}, "leads back to itself"),
        ({"type": "object", "description": "x" * 2_000_000}, "larger than"),
        ({"type": "object", "description": "\ud800"}, "not JSON"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_with_the_reason(schema: JsonObject, reason: str) -> None:
    problem = JsonSchemaValidator().problem_with(schema)

    assert problem is not None
    assert reason in problem
    assert len(problem) <= 300


@pytest.mark.requirement("B7")
@pytest.mark.parametrize("keyword", ["properties", "allOf", "items"])
def test_a_schema_nested_too_deeply_is_refused(keyword: str) -> None:
    schema: JsonValue = {"type": "object"}
    for _ in range(2_000):
        wrapped: dict[str, JsonValue] = {
            "properties": {"properties": {"a": schema}},
            "allOf": {"allOf": [schema]},
            "items": {"items": schema},
        }
        schema = {"type": "object", **wrapped[keyword]}  # type: ignore[dict-item]

    assert isinstance(schema, dict)
    assert "too deeply" in str(JsonSchemaValidator().problem_with(schema))
    shallower: JsonObject = {"type": "object", "properties": {"x": _at(schema, keyword, 1_900)}}
    assert "nested deeper than 64 levels" in str(JsonSchemaValidator().problem_with(shallower))


def _at(schema: JsonValue, keyword: str, depth: int) -> JsonValue:
    for _ in range(depth):
        assert isinstance(schema, dict)
        inner = schema[keyword]
        if isinstance(inner, dict) and keyword == "properties":
            schema = inner["a"]
        elif isinstance(inner, list):
            schema = inner[0]
        else:
            schema = inner
    return schema


def test_checking_against_an_unusable_schema_is_an_error_of_its_own() -> None:
    with pytest.raises(ServiceError) as caught:
        JsonSchemaValidator().violations({"type": "strin"}, {})

    assert (caught.value.code, caught.value.kind) == ("schema_invalid", ErrorKind.INVALID)


def test_values_that_cannot_be_checked_are_violations_not_crashes() -> None:
    validator = JsonSchemaValidator()
    schema: JsonObject = {"type": "object", "properties": {"text": {"type": "integer"}}}

    assert validator.violations(schema, {"text": "\ud800"}) == ("holds text that is not valid Unicode",)
    assert validator.violations({"type": "object"}, nested(129, 1)) == ("is nested too deeply to be checked",)
    assert validator.violations({"type": "object"}, nested(128, 1)) == ()


@pytest.mark.parametrize("pattern", ["(a+)+$", "^(a|a)*$", "(.*x){30}"])
def test_a_pattern_that_would_backtrack_for_ages_is_decided_in_linear_time(pattern: str) -> None:
    schema: JsonObject = {"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}}

    (violation,) = JsonSchemaValidator().violations(schema, {"a": "a" * 50_000 + "b"})

    assert violation.startswith("/a: ")


def test_a_small_schema_that_stands_for_countless_checks_is_refused_or_answered_without_detail() -> None:
    # Without the bound these would take from a minute to the age of the universe (the test has its
    # own time limit).
    validator = JsonSchemaValidator()

    assert "multiply" in str(validator.problem_with(doubling(60, {"type": "object"})))
    assert validator.violations(doubling(8, {"required": ["a"]}), {}) == ('"a" is a required property',)
    (unexplained,) = validator.violations(doubling(18, {"required": ["a"]}), {})
    assert "does not fit the schema" in unexplained


def test_a_branching_recursive_schema_checks_shallow_values_and_refuses_deep_ones() -> None:
    branch: JsonValue = {"properties": {"a": {"$ref": "#"}}}
    schema: JsonObject = {"type": "object", "anyOf": [branch, branch]}
    validator = JsonSchemaValidator()

    assert validator.problem_with(schema) is None
    assert validator.violations(schema, nested(3, {})) == ()
    assert len(validator.violations(schema, nested(2, 5))) == 1
    assert "does not fit" in validator.violations(schema, nested(14, 5))[0]
    assert "too deeply nested" in validator.violations(schema, nested(60, {}))[0]


def test_a_recursive_schema_without_branching_takes_deep_values() -> None:
    chain: JsonObject = {"type": "object", "properties": {"a": {"$ref": "#"}}, "additionalProperties": False}
    validator = JsonSchemaValidator()

    assert validator.violations(chain, nested(100, {})) == ()
    assert validator.violations(chain, nested(5, {"b": 1})) == (
        "/a/a/a/a/a: Additional properties are not allowed ('b' was unexpected)",
    )


def test_a_huge_value_that_does_not_fit_is_not_picked_to_pieces() -> None:
    schema: JsonObject = {"type": "object", "properties": {"rows": {"items": {"type": "string"}}}}

    (violation,) = JsonSchemaValidator().violations(schema, {"rows": list(range(200_000))})

    assert "too large" in violation


def test_cost_settles_for_plain_schemas_and_grows_with_depth_for_recursive_ones() -> None:
    assert cost_of({"type": "object"}).by_depth[-1] == 1
    assert cost_of(ARGUMENTS).settled
    recursive: JsonObject = {"type": "object", "properties": {"l": {"$ref": "#"}, "r": {"$ref": "#"}}}
    cost = cost_of(recursive)
    assert not cost.settled
    assert all(deeper > 2 * shallower for shallower, deeper in pairwise(cost.by_depth[:20]))


def test_a_chain_of_references_without_end_is_refused() -> None:
    chain: JsonObject = {f"d{index}": {"$ref": f"#/$defs/d{index + 1}"} for index in range(1_000)}

    with pytest.raises(UnusableSchema):
        cost_of({"type": "object", "$ref": "#/$defs/d0", "$defs": {**chain, "d1000": {}}})


def test_equal_schemas_are_compiled_once_and_old_ones_make_room() -> None:
    validator = JsonSchemaValidator(cache_size=2)
    schemas: list[JsonObject] = [{"type": "object", "maxProperties": size} for size in range(5)]

    for schema in schemas:
        for _ in range(2):
            # An equal schema in another object, as each load from the database makes one.
            assert validator.violations(dict(schema), {}) == ()

    assert len(validator._compiled) == 2


def test_a_schema_changed_in_place_is_not_taken_for_its_former_self() -> None:
    validator = JsonSchemaValidator()
    schema: JsonObject = {"type": "object"}

    assert validator.violations(schema, {}) == ()
    schema["required"] = ["a"]
    assert validator.violations(schema, {}) != ()


def test_a_type_that_json_schema_does_not_have_is_told_with_those_that_it_has() -> None:
    problem = JsonSchemaValidator().problem_with({"type": "object", "properties": {"a": {"type": "strin"}}})
    assert problem is not None
    assert problem.startswith('/properties/a/type: "strin" is not one of the types array, boolean')
