"""Definitions as people write them, as JSON values; and values as people can edit them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interfaces.definition_text import DefinitionTextError, read_definition, written

TEXTS = st.text(max_size=30)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=5))
def test_what_is_written_reads_as_the_same(document: dict[str, object]) -> None:
    assert read_definition(written(document), is_json=False, aliases=False) == document  # type: ignore[arg-type]


def test_texts_of_several_lines_are_written_as_blocks_and_nothing_as_an_alias() -> None:
    same = {"a": 1}
    assert written({"text": "one\ntwo", "x": same, "y": same}) == (  # type: ignore[dict-item]
        "text: |-\n  one\n  two\nx:\n  a: 1\ny:\n  a: 1\n"
    )


def test_words_that_yaml_takes_for_truth_values_are_names_where_names_are_meant() -> None:
    assert read_definition("{id: on, other: on}", is_json=False, texts=("id",)) == {"id": "on", "other": True}


@pytest.mark.parametrize(
    ("text", "is_json", "told"),
    [
        ('{"a": ', True, "line 1, column 7"),
        ("a: [", False, "line 1, column 5"),
        ("a: 2020-01-01", False, "other than plain data"),
        ("a: .nan", False, "other than plain data"),
        ("a: !!python/object:os.system {}", False, "not valid YAML"),
        ("a: &x [1]\nb: *x", False, "line 2, column 4: aliases are not allowed"),
        ("[" * 50_000, False, "other than plain data"),
        ("[" * 50_000, True, "other than plain data"),
    ],
)
def test_what_cannot_be_read_is_told_with_the_place(text: str, is_json: bool, told: str) -> None:
    with pytest.raises(DefinitionTextError, match=told):
        read_definition(text, is_json=is_json, aliases=False)


def test_aliases_are_for_those_who_may_have_them() -> None:
    assert read_definition("a: &x [1]\nb: *x", is_json=False) == {"a": [1], "b": [1]}


def test_json_of_very_many_values_is_not_read() -> None:
    with pytest.raises(DefinitionTextError, match="has more than 100000 values"):
        read_definition("[" + "0," * 200_000 + "0]", is_json=True)
