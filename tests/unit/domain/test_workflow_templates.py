"""Templates: what stands in braces, and what becomes of it."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.json_value import JsonValue
from domain.workflows.templates import Reference, as_text, placeholders, references, rendered, rendered_text


def found(*templates: JsonValue) -> dict[Reference, JsonValue]:
    """What references stand for, by enough of JMESPath: a field."""
    return {reference: stands_for(reference) for template in templates for reference in references(template)}


def stands_for(reference: Reference) -> JsonValue:
    value = VALUES.get(reference.name)
    if reference.expression == "@":
        return value
    return value.get(reference.expression) if isinstance(value, dict) else None


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
    assert rendered(template, found(template)) == expected


@pytest.mark.parametrize("text", ["{{", "{{}}", "a {{start", "{{start name}}", "{{start.}}", "{{-}}"])
def test_braces_that_hold_no_name_are_told(text: str) -> None:
    assert [type(placed.what).__name__ for placed in placeholders(text)] == ["Unreadable"]


def test_each_value_put_into_a_text_is_quoted() -> None:
    template = "/{{start.name}}/{{start.tags}}"
    assert rendered_text(template, found(template), lambda text: f"<{text}>") == '/<Ada>/<["a"]>'


@given(st.text(alphabet="{}\\\\ ab.-\n", max_size=24))
def test_placeholders_are_those_that_the_grammar_says(text: str) -> None:
    """The grammar as a regular expression, which is quadratic where no braces close."""
    inside_braces = re.findall(r"\\\{\{|\{\{(.*?)\}\}", text, re.DOTALL)
    names = [re.fullmatch(r"\s*([ab][ab-]*)\s*", inside) for inside in inside_braces]
    expected = [match[1] for match in names if match is not None]
    said = [placed.what for placed in placeholders(text)]
    assert [what.name for what in said if isinstance(what, Reference) and what.expression == "@"] == expected


VALUES_OF_ANY_KIND = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES_OF_ANY_KIND, st.integers(1, 20_000))
@settings(max_examples=50, deadline=None)
def test_a_value_of_any_size_is_written_as_the_same_json(value: JsonValue, times: int) -> None:
    elements: JsonValue = [value] * times
    members: JsonValue = {str(number): value for number in range(times // 10)}
    for large in (elements, members, [elements]):
        assert as_text(large) == json.dumps(large, ensure_ascii=False, separators=(",", ":"))
