"""Counting the values of a reply in its text."""

import json
from typing import Any

import pytest

from infrastructure.mcp.transports.value_count import MAX_LISTED, MAX_VALUES, count_values, id_of_excessive

pytestmark = pytest.mark.requirement("A6", "B3")


def counted(value: Any) -> int:
    """By decoding it."""
    match value:
        case dict():
            return 1 + sum(map(counted, value.values()))
        case list():
            return 1 + sum(map(counted, value))
        case _:
            return 1


@pytest.mark.parametrize(
    "value",
    [
        0,
        [],
        {},
        [[], {}, ""],
        [1, [2, [3, {"a": [4]}]]],
        {"a,b": "c,[d]{e}", 'q"': 'a"b\\"c', "back\\": "\\", "\\\\": ["\\\\,", '"']},
        ["x,y" * 50_000, ['"' * 90_000], "\\" * 70_001, {"a": [1, 2]}],
        [{"a": "b"}] * 9_000,
    ],
)
def test_strings_and_empty_containers_hide_no_values_and_add_none(value: Any) -> None:
    assert count_values(json.dumps(value).encode()) == counted(value)
    assert count_values(json.dumps(value, separators=(",", ":")).encode()) == counted(value)


def test_what_is_far_too_much_is_not_counted_to_the_end() -> None:
    assert MAX_VALUES < count_values(b"[" + b"0," * 2_000_000 + b"0]") < 2 * MAX_VALUES


def a_reply(result: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": "call-7", "result": result}).encode()


def test_the_reply_of_too_many_values_is_known_without_decoding_them() -> None:
    assert id_of_excessive(a_reply({"content": [], "structuredContent": {"rows": [[[0]]] * MAX_VALUES}})) == "call-7"
    assert id_of_excessive(a_reply({"anything": [0] * 2 * MAX_VALUES})) == "call-7"


def test_a_page_of_a_list_may_have_more() -> None:
    tools = [{"name": "a"}] * MAX_VALUES
    assert id_of_excessive(a_reply({"tools": tools})) is None
    assert id_of_excessive(a_reply({"tools": tools, "content": [0] * MAX_LISTED})) == "call-7"


def test_what_is_no_reply_has_no_id() -> None:
    for message in ({"method": "ping", "id": 1}, {"id": 1, "error": {}}, [1], {"id": 1, "result": 3}):
        assert id_of_excessive(json.dumps(message).encode()) is None
    assert id_of_excessive(b'{"id": 1, "result": {"rows": [') is None
