"""Templates: what stands in braces, and what becomes of it."""

import pytest

from domain.json_value import JsonValue
from domain.workflows.templates import placeholders, rendered, rendered_text


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
