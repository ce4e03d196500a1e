"""JSON with faults that do not hide what is meant is read."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from infrastructure.llm.repaired_json import decoded, repaired


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (rb'"a\ud800b"', "a\ufffdb"),
        (rb'"a\udc00"', "a\ufffd"),
        (rb'"\ud800\ud83d\ude00"', "\ufffd\U0001f600"),
        (rb'"\\ud800"', "\\ud800"),
        (rb'"\\\ud800"', "\\\ufffd"),
        (b'"a\xffb"', "a\ufffdb"),
    ],
    ids=["high", "low", "before a pair", "escaped backslash", "after a backslash", "invalid UTF-8"],
)
def test_what_is_no_text_becomes_a_replacement_character(data: bytes, text: str) -> None:
    assert decoded(msgspec.json.decode, data) == text


@given(st.recursive(st.text() | st.integers() | st.none(), lambda inner: st.lists(inner, max_size=3), max_leaves=5))
def test_sound_json_stays_as_it_is(value: object) -> None:
    assert json.loads(repaired(json.dumps(value).encode())) == value


@pytest.mark.parametrize("data", [b"{", b"", b"nope"])
def test_what_is_no_json_is_refused(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decoded(msgspec.json.decode, data)


def test_a_value_of_another_type_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        decoded(msgspec.json.Decoder(int).decode, b'"1"')
