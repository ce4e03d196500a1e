"""Counting JSON values without decoding them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.json_value import JsonValue
from interfaces import json_bounds
from interfaces.json_bounds import (
    MAX_DEPTH,
    MAX_LONG_NUMBERS,
    MAX_VALUES,
    has_repeated_names,
    has_too_many_values,
    is_too_deep,
)

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('a,[{"\\:', max_size=8),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text('b,[{"\\', max_size=4), inner, max_size=6),
    max_leaves=30,
)


def counted(value: JsonValue) -> int:
    match value:
        case list():
            return 1 + sum(map(counted, value))
        case dict():
            return 1 + sum(map(counted, value.values()))
        case _:
            return 1


@given(values, st.booleans())
def test_values_are_counted_whatever_stands_in_texts(value: JsonValue, escaped: bool) -> None:
    body = json.dumps(value, ensure_ascii=escaped).encode()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(json_bounds, "MAX_VALUES", counted(value))
        assert not has_too_many_values(body)
        patched.setattr(json_bounds, "MAX_VALUES", counted(value) - 1)
        assert has_too_many_values(body)


@pytest.mark.parametrize("one", ["0", '""', "[]", "{}", "null", '{"a":0}'])
def test_the_bound_is_that_of_values(one: str) -> None:
    most = (MAX_VALUES - 1) // counted(json.loads(one))
    assert not has_too_many_values(f"[{','.join([one] * most)}]".encode())
    assert has_too_many_values(f"[{','.join([one] * (most + 1))}]".encode())


def test_the_bound_of_depth_is_exact() -> None:
    for levels, is_deep in ((MAX_DEPTH, False), (MAX_DEPTH + 1, True)):
        body = b"[" * levels + b"]" * levels
        assert is_too_deep(body, json.loads(body)) is is_deep
    assert not is_too_deep(b"[" * 5_000, ["["])


def test_numbers_of_hundreds_of_digits_are_few() -> None:
    number = "9" * 4_000
    most = [number] * MAX_LONG_NUMBERS
    texts = f'["{number}"{", 0" * 50_000}]'
    assert not has_too_many_values(f"[{', '.join(most[:1])}{', 0' * 50_000}]".encode())
    assert has_too_many_values(f"[{', '.join([*most, number])}{', 0' * 50_000}]".encode())
    assert not has_too_many_values(texts.encode())


@given(values, st.booleans())
def test_a_value_that_was_encoded_has_no_name_twice(value: JsonValue, escaped: bool) -> None:
    assert not has_repeated_names(json.dumps(value, ensure_ascii=escaped).encode(), value)


@pytest.mark.requirement("C6")
@pytest.mark.parametrize(
    "body",
    [
        b'{"decision":"deny","decision":"approve"}',
        b'{"decision":"deny","\\u0064ecision":"approve"}',
        b'[{"a":{"b":1,"c":":","b":1}}]',
        b'{"a":"x\\\\","a":":\\""}',
    ],
)
def test_an_object_with_a_name_twice_is_found(body: bytes) -> None:
    assert has_repeated_names(body, json.loads(body))
