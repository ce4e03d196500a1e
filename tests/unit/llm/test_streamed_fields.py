"""Pieces of fields that only the provider knows become whole fields."""

from domain.json_value import JsonObject
from infrastructure.llm.streamed_fields import StreamedFields


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


def test_what_stayed_empty_is_left_out() -> None:
    assert joined({"a": "", "b": [], "c": {}, "d": None}) == {}


def test_whole_fields_are_not_merged() -> None:
    fields = StreamedFields()
    details: JsonObject = {"details": [{"index": 0, "text": "a"}, {"index": 0, "text": "b"}]}
    fields.add_whole(details)
    assert fields.finished() == details
