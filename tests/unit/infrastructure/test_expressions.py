"""JMESPath: what is refused, what it gives, and what it never does."""

import pytest

from application.workflows.ports import ExpressionFailed
from domain.json_value import JsonValue
from infrastructure.expressions import JmesPathExpressions


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
def test_an_expression_has_a_value(expression: str, value: JsonValue, expected: JsonValue) -> None:
    expressions = JmesPathExpressions()
    assert expressions.problem_with(expression) is None
    assert expressions.evaluate(expression, value) == expected


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
def test_what_cannot_be_used_is_told_before_it_is(expression: str, said: str) -> None:
    expressions = JmesPathExpressions()
    problem = expressions.problem_with(expression)
    assert problem is not None
    assert said in problem
    with pytest.raises(ExpressionFailed):
        expressions.evaluate(expression, {})


def test_a_value_it_does_not_fit_fails_it_without_repeating_the_value() -> None:
    with pytest.raises(ExpressionFailed) as failed:
        JmesPathExpressions().evaluate("sum(@)", ["the secret"])
    assert "secret" not in str(failed.value)


def test_only_so_many_are_kept() -> None:
    expressions = JmesPathExpressions(cache_size=2)
    assert [expressions.evaluate(f"a{number}", {f"a{number}": number}) for number in (1, 2, 3, 1)] == [1, 2, 3, 1]


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


@pytest.mark.parametrize(("expression", "value"), BOMBS, ids=range(len(BOMBS)))
def test_an_expression_that_would_make_too_much_fails_before_it_does(expression: str, value: JsonValue) -> None:
    expressions = JmesPathExpressions()
    assert expressions.problem_with(expression) is None
    with pytest.raises(ExpressionFailed, match="too much"):
        expressions.evaluate(expression, value)


def test_what_is_large_and_no_more_than_that_is_evaluated() -> None:
    people: JsonValue = [{"name": f"name {number}", "age": number % 90} for number in range(20_000)]
    found = JmesPathExpressions().evaluate("sort_by([?age > `30`], &age)[*].{who: name, old: to_string(age)}", people)
    assert isinstance(found, list)
    assert len(found) == sum(number % 90 > 30 for number in range(20_000))
    assert JmesPathExpressions().evaluate("join(', ', [*].name)", people) == ", ".join(
        f"name {number}" for number in range(20_000)
    )
