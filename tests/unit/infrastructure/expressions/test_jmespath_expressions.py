"""JMESPath: what is refused, what it gives, and what it never does."""

from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from application.workflows.ports import ExpressionFailed
from domain.json_value import JsonValue
from infrastructure.expressions.bounded_jmespath import EvaluationError, TooMuchWork, compiled, evaluated_in_place
from infrastructure.expressions.jmespath_expressions import JmesPathExpressions
from infrastructure.expressions.worker import EvaluationLimits, ExpressionWorker
from tests.processor_time import processor_time

IN_PLACE_S = 0.2
"""Time on the processor, many times what is done in place; the event loop stands still
meanwhile."""
FUNCTIONS = (
    "max(a)",
    "sum(a)",
    "sort(a)",
    "contains(a, `1`)",
    "a == a",
    "to_string(@)",
    "a[]",
    "@ == `1`",
    "reverse(a)",
)


@pytest.mark.parametrize(
    ("expression", "value", "expected"),
    [
        ("@", 7, 7),
        ("people[?age > `30`].name", {"people": [{"name": "Ada", "age": 36}, {"name": "Bo", "age": 3}]}, ["Ada"]),
        ("{total: sum(@)}", [1, 2], {"total": 3}),
        ("nothing.here", {}, None),
        ("items[1:3]", {"items": [1, 2, 3, 4]}, [2, 3]),
        ("[::2] | length(@)", [1, 2, 3], 2),
    ],
)
async def test_an_expression_has_a_value(expression: str, value: JsonValue, expected: JsonValue) -> None:
    expressions = JmesPathExpressions()
    assert expressions.problem_with(expression) is None
    assert await expressions.evaluate(expression, value) == expected


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("sum(@", "syntax"),
        ("", "empty"),
        ("'open", "syntax"),
        ("a" * 5_000, "longer"),
        ("(" * 200 + "a" + ")" * 200, "nested"),
        ("!" * 4_000 + "a", "nested"),
        ("counted(@)", "counted"),
        ("people[?sums(@) > `1`]", "sums"),
        ("sum(@, @)", "sum"),
        ("a | b | map(&length(@, @), @)", "length"),
    ],
)
async def test_what_cannot_be_used_is_told_before_it_is(expression: str, said: str) -> None:
    expressions = JmesPathExpressions()
    problem = expressions.problem_with(expression)
    assert problem is not None
    assert said in problem
    with pytest.raises(ExpressionFailed):
        await expressions.evaluate(expression, {})


async def test_a_value_it_does_not_fit_fails_it_without_repeating_the_value() -> None:
    with pytest.raises(ExpressionFailed) as failed:
        await JmesPathExpressions().evaluate("sum(@)", ["the secret"])
    assert "secret" not in str(failed.value)


async def test_only_so_many_are_kept() -> None:
    expressions = JmesPathExpressions(cache_size=2)
    values = [await expressions.evaluate(f"a{number}", {f"a{number}": number}) for number in (1, 2, 3, 1)]
    assert values == [1, 2, 3, 1]


BOMBS: list[tuple[str, JsonValue]] = [
    ("[@, @]" + " | [@, @]" * 100, [1]),
    ("join('', [@, @, @, @])" + " | join('', [@, @, @, @])" * 40, "x" * 1_000),
    ("[@, @]" + " | [@, @]" * 60 + " | to_string(@)", "x"),
    ("[[@, @], [@, @]][]" + " | [[@, @], [@, @]][]" * 60, 1),
    ("join(glue, parts)", {"glue": "g" * 1_000_000, "parts": [*("p" * 1_000_000)]}),
    ("[" + ", ".join(["@"] * 1_300) + "]", "x" * 1_000_000),
    ("[*]" + ".[@, @][]" * 60, [*range(100)]),
    ("{a: @, b: @}" + " | {a: @, b: @}" * 60, "x"),
]


@pytest.fixture
async def expressions() -> AsyncIterator[JmesPathExpressions]:
    """With so much time that bounds of size are met first on a busy machine, too."""
    expressions = JmesPathExpressions(worker=ExpressionWorker(limits=EvaluationLimits(timeout_s=90)))
    yield expressions
    await expressions.close()


@pytest.mark.requirement("F4")
@pytest.mark.parametrize(("expression", "value"), BOMBS, ids=range(len(BOMBS)))
async def test_an_expression_that_would_make_too_much_fails_before_it_does(
    expressions: JmesPathExpressions, expression: str, value: JsonValue
) -> None:
    assert expressions.problem_with(expression) is None
    with pytest.raises(ExpressionFailed, match="too much") as failed:
        await expressions.evaluate(expression, value)
    assert failed.value.code == "expression_too_costly"


@pytest.mark.requirement("F4")
async def test_what_is_large_and_no_more_than_that_is_evaluated(expressions: JmesPathExpressions) -> None:
    people: JsonValue = [{"name": f"name {number}", "age": number % 90} for number in range(20_000)]
    found = await expressions.evaluate("sort_by([?age > `30`], &age)[*].{who: name, old: to_string(age)}", people)
    assert isinstance(found, list)
    assert len(found) == sum(number % 90 > 30 for number in range(20_000))
    joined = await expressions.evaluate("join(', ', [*].name)", people)
    assert joined == ", ".join(f"name {number}" for number in range(20_000))


NUMBERS: JsonValue = {"a": [*range(500_000)]}
COSTLY = [
    "[" + ", ".join(["max(a)"] * 60) + "]",
    "[" + ", ".join(["sum(a)"] * 580) + "]",
    "[" + ", ".join(["sort(a)"] * 60) + "]",
    "[" + ", ".join(["contains(a, `-1`)"] * 200) + "]",
    "[" + ", ".join(["a == a"] * 580) + "]",
]


@pytest.mark.requirement("F4")
@pytest.mark.parametrize("expression", [*COSTLY, "max(a)", "sort(a)[0]", "length(a)"])
def test_what_looks_at_a_large_value_is_not_evaluated_in_place(expression: str) -> None:
    with processor_time(IN_PLACE_S), pytest.raises(TooMuchWork):
        evaluated_in_place(compiled(expression), NUMBERS)


@pytest.mark.parametrize("expression", ["a", "@", "a[7]", "a | [0]", "b.c"])
def test_a_path_is_followed_in_place_however_large_the_value_is(expression: str) -> None:
    with processor_time(IN_PLACE_S):
        evaluated_in_place(compiled(expression), NUMBERS)


@given(
    st.lists(st.sampled_from([*FUNCTIONS]), min_size=1, max_size=100),
    st.integers(0, 5_000),
    st.sampled_from(["[{}]", "a[*].[{}]", "a[?{}]"]),
)
@settings(max_examples=50, deadline=None)
def test_what_is_done_in_place_is_cheap(parts: list[str], size: int, shape: str) -> None:
    expression = shape.format((" || " if "?" in shape else ", ").join(parts))[:4_000]
    value: JsonValue = {"a": [*range(size)]}
    if JmesPathExpressions().problem_with(expression) is None:
        with processor_time(IN_PLACE_S), suppress(TooMuchWork, EvaluationError):
            evaluated_in_place(compiled(expression), value)


@pytest.mark.requirement("F4")
async def test_an_evaluation_without_end_is_killed_at_its_deadline() -> None:
    expressions = JmesPathExpressions(worker=ExpressionWorker(limits=EvaluationLimits(timeout_s=0.2)))
    try:
        with pytest.raises(ExpressionFailed, match="too long") as failed:
            await expressions.evaluate(COSTLY[2], NUMBERS)
        assert failed.value.code == "expression_too_costly"
        assert await expressions.evaluate("a[0]", NUMBERS) == 0
    finally:
        await expressions.close()


@pytest.mark.requirement("F4")
async def test_a_value_that_takes_more_memory_than_allowed_fails_the_expression_alone() -> None:
    worker = ExpressionWorker(limits=EvaluationLimits(timeout_s=90, max_memory_bytes=8 * 1024 * 1024))
    expressions = JmesPathExpressions(worker=worker)
    try:
        with pytest.raises(ExpressionFailed, match="too much"):
            await expressions.evaluate("length(a)", NUMBERS)
        small: JsonValue = {"a": [*range(10_000)]}
        assert await expressions.evaluate("max(a)", small) == 9_999
    finally:
        await expressions.close()


@pytest.mark.parametrize("value", ["\ud800", 2**70, 1e300, {"\udfff": [None, True, ""]}])
async def test_a_child_gives_values_back_as_they_are(expressions: JmesPathExpressions, value: JsonValue) -> None:
    padding: JsonValue = [*range(50_000)]
    assert await expressions.evaluate("[a, length(b)]", {"a": value, "b": padding}) == [value, 50_000]
