"""Schemas and values that servers and users choose so that checking takes long, or much memory."""

import random

import pytest

from domain.errors import ServiceError
from domain.json_value import JsonObject, JsonValue
from infrastructure.schemas.json_schemas import JsonSchemaValidator
from tests.processor_time import processor_time

BOUND_S = 0.25
"""Time on the processor for one check, which happens on the event loop."""
OBJECTS: JsonValue = [{"a": number} for number in range(14_000)]
NAMES: JsonValue = [f"name{number}" for number in range(20_000)]
HUGE = 10**4_000
LETTERS = "".join(random.Random(1).choices("ab", k=100_000))


def of_items(**keywords: JsonValue) -> JsonObject:
    return {"type": "object", "properties": {"rows": {"items": keywords}}}


CHECKS: dict[str, tuple[JsonObject, list[JsonValue]]] = {
    "objects of an enum": (of_items(enum=OBJECTS), [{"a": 13_999}] * 2_000),
    "arrays of an enum": (of_items(enum=[[number] for number in range(14_000)]), [[13_999]] * 2_000),
    "a large constant": (of_items(const=OBJECTS), [OBJECTS, OBJECTS]),
    "required names": (of_items(required=NAMES), [dict.fromkeys(map(str, range(90_000)), 1)]),
    "dependent names": (of_items(dependentRequired={"a": NAMES}), [{"a": 1}] * 20_000),
    "patterns of names": (
        of_items(patternProperties={f"^a.*{number}$": {} for number in range(90)}),
        [{f"a{number}": 1 for number in range(90_000)}],
    ),
    "many patterns": (
        of_items(allOf=[{"pattern": f"(a|b){{1,50}}c{number}"} for number in range(500)]),
        ["ab" * 4_000_000],
    ),
    "a pattern with many states": (of_items(pattern="^[ab]*a[ab]{400}$"), [LETTERS] * 10),
    "divisions": (of_items(multipleOf=1e-300), [1e300] * 90_000),
    "divisions of large numbers": (of_items(multipleOf=7), [HUGE] * 2_000),
    "comparisons of large numbers": (of_items(maximum=2**200), [HUGE] * 2_000),
}


@pytest.mark.requirement("A9", "B9")
@pytest.mark.parametrize(("schema", "rows"), CHECKS.values(), ids=CHECKS)
def test_a_check_that_would_take_long_is_not_made(schema: JsonObject, rows: list[JsonValue]) -> None:
    validator = JsonSchemaValidator()
    assert validator.problem_with(schema) is None
    with processor_time(BOUND_S):
        (violation,) = validator.violations(schema, {"rows": rows})
    assert "too large" in violation


UNUSABLE: dict[str, tuple[JsonObject, str]] = {
    "patterns that are large once repetitions are unrolled": (
        {"properties": {f"x{number}": {"pattern": f"(a{{0,100}}){{0,90}}{number}"} for number in range(1_000)}},
        "regular expressions are too large",
    ),
    "patterns of names": (
        {"patternProperties": {f"([ab]{{0,30}}){{0,30}}{number}": {} for number in range(1_000)}},
        "regular expressions are too large",
    ),
    "a number of thousands of digits": ({"properties": {"x": {"multipleOf": HUGE}}}, "256 bits"),
    "tens of thousands of options": (
        {"properties": {"x": {"enum": [{"a": number} for number in range(40_000)]}}},
        "more than 30000 values",
    ),
    "such a number as an option": ({"properties": {"x": {"enum": [1, HUGE]}}}, "256 bits"),
}


@pytest.mark.requirement("A9", "B9")
@pytest.mark.parametrize(("schema", "reason"), UNUSABLE.values(), ids=UNUSABLE)
def test_a_schema_that_would_take_long_to_compile_is_refused(schema: JsonObject, reason: str) -> None:
    with processor_time(BOUND_S):
        problem = JsonSchemaValidator().problem_with({"type": "object", **schema})
    assert problem is not None
    assert reason in problem


@pytest.mark.requirement("A9", "B9")
@pytest.mark.parametrize(
    "schema",
    [of_items(enum=[f"x{number}" for number in range(29_000)]), of_items(anyOf=[{"type": "string"}] * 400)],
    ids=["options of an enum", "branches"],
)
def test_errors_that_would_fill_the_memory_are_not_listed(schema: JsonObject) -> None:
    with processor_time(BOUND_S):
        (violation,) = JsonSchemaValidator().violations(schema, {"rows": [1] * 20_000})
    assert "too large" in violation


@pytest.mark.parametrize(
    ("schema", "rows"),
    [
        (
            of_items(pattern="^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"),
            ["01234567-0123-0123-0123-012345678901"] * 9_000,
        ),
        (of_items(enum=[f"x{number}" for number in range(29_000)]), ["x28999"] * 90_000),
        (of_items(enum=[{"a": 1}, {"a": 2}]), [{"a": 2}] * 20_000),
        (of_items(multipleOf=0.01), [0.07] * 2_000),
        (of_items(maximum=2**256 - 1), [2**255] * 10_000),
        (of_items(required=["id", "name"], properties={"id": {"type": "integer"}}), [{"id": 1, "name": "a"}] * 30_000),
        (of_items(pattern="^[^\\n]*$"), ["a" * 2_000_000]),
    ],
)
def test_large_values_of_ordinary_schemas_are_checked(schema: JsonObject, rows: list[JsonValue]) -> None:
    assert JsonSchemaValidator().violations(schema, {"rows": rows}) == ()


def test_a_schema_with_a_large_number_is_an_error_of_its_own() -> None:
    with pytest.raises(ServiceError) as raised:
        JsonSchemaValidator().violations(of_items(maximum=HUGE), {})
    assert raised.value.code == "schema_invalid"
