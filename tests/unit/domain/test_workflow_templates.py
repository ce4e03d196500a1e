"""Templates: what stands in braces, and what becomes of it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.json_value import JsonValue
from domain.workflows.templates import Reference, placeholders, rendered, rendered_text


def evaluate(expression: str, value: JsonValue) -> JsonValue:
    """Enough of JMESPath: a field."""
    return value.get(expression) if isinstance(value, dict) else None


VALUES: dict[str, JsonValue] = {"start": {"name": "Ada", "age": 36, "tags": ["a"]}, "nothing": None}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{start.age}}", 36),
        ("{{ start.tags }}", ["a"]),
        ("Hello {{start.name}}, {{start.age}}!", "Hello Ada, 36!"),
        ("{{start.tags}} {{start.tags}}", '["a"] ["a"]'),
        ("[{{nothing}}]", "[]"),
        ("{{unheard_of.x}}", None),
        (r"\{{start.name}}", "{{start.name}}"),
        ({"who": ["{{start.name}}", 1]}, {"who": ["Ada", 1]}),
        ("", ""),
        (7, 7),
    ],
)
def test_a_placeholder_becomes_what_it_stands_for(template: JsonValue, expected: JsonValue) -> None:
    assert rendered(template, VALUES, evaluate) == expected


@pytest.mark.parametrize("text", ["{{", "{{}}", "a {{start", "{{start name}}", "{{start.}}", "{{-}}"])
def test_braces_that_hold_no_name_are_told(text: str) -> None:
    assert [type(placed.what).__name__ for placed in placeholders(text)] == ["Unreadable"]


def test_each_value_put_into_a_text_is_quoted() -> None:
    assert (
        rendered_text("/{{start.name}}/{{start.tags}}", VALUES, evaluate, lambda text: f"<{text}>") == '/<Ada>/<["a"]>'
    )


@given(st.text(alphabet="{}\\\\ ab.-\n", max_size=24))
def test_placeholders_are_those_that_the_grammar_says(text: str) -> None:
    """The grammar as a regular expression, which is quadratic where no braces close."""
    found = re.findall(r"\\\{\{|\{\{(.*?)\}\}", text, re.DOTALL)
    names = [re.fullmatch(r"\s*([ab][ab-]*)\s*", inside) for inside in found]
    expected = [match[1] for match in names if match is not None]
    said = [placed.what for placed in placeholders(text)]
    assert [what.name for what in said if isinstance(what, Reference) and what.expression == "@"] == expected
