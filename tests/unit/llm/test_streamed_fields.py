"""Pieces of fields that only the provider knows become whole fields."""

from itertools import count

import pytest

from domain.json_value import JsonObject, JsonValue
from infrastructure.llm.streamed_fields import MAX_ENTRIES, StreamedFields


def joined(*pieces: JsonObject) -> JsonObject:
    fields = StreamedFields()
    for piece in pieces:
        fields.add(piece)
    return fields.finished()


def test_texts_are_joined_and_other_values_replaced() -> None:
    assert joined({"thought": "I ", "count": 1}, {"thought": "look.", "count": 2}) == {"thought": "I look.", "count": 2}


def test_objects_are_merged_and_null_changes_nothing() -> None:
    pieces: list[JsonObject] = [{"a": {"x": "1", "y": None}}, {"a": {"x": "2"}}, {"a": None}]
    assert joined(*pieces) == {"a": {"x": "12", "y": None}}


def test_entries_of_a_list_are_merged_by_their_index() -> None:
    assert joined(
        {"details": [{"type": "text", "text": "I ", "index": 0, "signature": None}]},
        {"details": [{"type": "text", "text": "look.", "index": 0}]},
        {"details": [{"type": "text", "text": "Then", "index": 1}]},
        {"details": [{"type": "text", "signature": "s", "index": 0}]},
    ) == {
        "details": [
            {"type": "text", "text": "I look.", "index": 0, "signature": "s"},
            {"type": "text", "text": "Then", "index": 1},
        ]
    }


def test_entries_of_another_type_or_id_are_others_even_at_the_same_index() -> None:
    entries: list[JsonObject] = [
        {"type": "text", "text": "a", "index": 0},
        {"type": "encrypted", "data": "b", "id": "one", "index": 0},
        {"type": "encrypted", "data": "c", "id": "two", "index": 0},
    ]
    pieces: list[JsonObject] = [{"details": [entry]} for entry in entries]
    assert joined(*pieces) == {"details": entries}


def test_entries_without_an_index_are_appended_in_their_order() -> None:
    assert joined({"list": [{"text": "a"}]}, {"list": [{"text": "b"}, 3]}) == {
        "list": [{"text": "a"}, {"text": "b"}, 3]
    }


def test_entries_with_an_index_that_is_none_are_appended() -> None:
    entries: list[JsonValue] = [{"index": {"a": 1}}, {"index": {"a": 1}}, {"index": [2]}]
    assert joined({"list": entries}) == {"list": entries}


class CountedText(str):
    """A type of an entry that counts its comparisons."""

    comparisons = count()

    def __eq__(self, other: object) -> bool:
        next(self.comparisons)
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.mark.parametrize("indexes", [range(2_000), [0] * 2_000], ids=["an index each", "one index, ids of their own"])
def test_an_entry_is_compared_with_the_newest_of_its_index_only(indexes: range | list[int]) -> None:
    before = next(CountedText.comparisons)
    entries: list[JsonValue] = [
        {"type": "text", "id": CountedText(number), "index": index} for number, index in enumerate(indexes)
    ]
    assert joined({"list": entries}) == {"list": entries}
    assert next(CountedText.comparisons) - before <= 2 * len(entries) + 1


def test_a_list_with_too_many_entries_cannot_go_back() -> None:
    entries: list[JsonValue] = [{"text": "a"}] * MAX_ENTRIES
    assert joined({"list": entries}) == {"list": entries}
    with pytest.raises(ValueError, match="too many"):
        joined({"list": entries}, {"list": [1, 2]})


def test_fields_that_are_too_deep_cannot_go_back() -> None:
    deep: JsonObject = {}
    for _ in range(2_000):
        deep = {"a": deep}
    with pytest.raises(RecursionError):
        joined({"deep": deep})


def test_what_stayed_empty_is_left_out() -> None:
    assert joined({"a": "", "b": [], "c": {}, "d": None}) == {}


def test_whole_fields_are_not_merged() -> None:
    fields = StreamedFields()
    details: JsonObject = {"details": [{"index": 0, "text": "a"}, {"index": 0, "text": "b"}]}
    fields.add_whole(details)
    assert fields.finished() == details
