"""JSON Patch: the operations of RFC 6902, all or none, within bounds."""

import pytest

from domain.json_patch import MAX_DEPTH, PatchFault, patched
from domain.json_value import JsonObject, JsonValue

pytestmark = pytest.mark.requirement("X4")

ROOM = 10_000


def op(op: str, path: str, **more: JsonValue) -> JsonObject:
    return {"op": op, "path": path, **more}


def moved(op: str, source: str, path: str) -> JsonObject:
    return {"op": op, "path": path, "from": source}


@pytest.mark.parametrize(
    ("document", "operation", "after"),
    [
        ({"a": 1}, op("add", "/b", value=[True]), {"a": 1, "b": [True]}),
        ({"a": 1}, op("add", "/a", value=None), {"a": None}),
        ({"a": [1, 3]}, op("add", "/a/1", value=2), {"a": [1, 2, 3]}),
        ({"a": [1]}, op("add", "/a/1", value=2), {"a": [1, 2]}),
        ({"a": [1]}, op("add", "/a/-", value={}), {"a": [1, {}]}),
        ({"a": 1}, op("add", "", value=[1]), [1]),
        ({"a/b": {"c~d": 1}}, op("replace", "/a~1b/c~0d", value=2), {"a/b": {"c~d": 2}}),
        ({"": 1}, op("replace", "/", value=2), {"": 2}),
        ({"a": [1, 2]}, op("replace", "/a/0", value=3), {"a": [3, 2]}),
        ({"a": 1}, op("replace", "", value={}), {}),
        ({"a": [1, 2], "b": 1}, op("remove", "/a/0"), {"a": [2], "b": 1}),
        ({"a": 1, "b": 2}, op("remove", "/a"), {"b": 2}),
        ({"a": {"b": 1}}, moved("move", "/a/b", "/c"), {"a": {}, "c": 1}),
        ({"a": [1, 2, 3]}, moved("move", "/a/0", "/a/2"), {"a": [2, 3, 1]}),
        ({"a": 1}, moved("move", "/a", "/a"), {"a": 1}),
        ({"a": {"b": 1}}, moved("move", "/a", ""), {"b": 1}),
        ({"a": [1]}, moved("copy", "/a", "/b"), {"a": [1], "b": [1]}),
        ({"a": [1, {"b": 1.0}]}, op("test", "/a", value=[1.0, {"b": 1}]), {"a": [1, {"b": 1.0}]}),
    ],
)
def test_an_operation_changes_a_copy(document: JsonValue, operation: JsonObject, after: JsonValue) -> None:
    before = patched(document, [], max_bytes=ROOM)
    assert patched(document, [operation], max_bytes=ROOM) == after
    assert document == before


@pytest.mark.parametrize(
    "operation",
    [
        op("add", "/b/c", value=1),
        op("add", "/a/3", value=1),
        op("add", "/a/01", value=1),
        op("add", "/a/x", value=1),
        op("add", "/n/x", value=1),
        op("add", "b", value=1),
        op("add", "/b"),
        op("add", "/b~2", value=1),
        op("add", "/__proto__/x", value=1),
        op("add", "/constructor/prototype", value=1),
        op("replace", "/b", value=1),
        op("replace", "/a/-", value=1),
        op("remove", ""),
        op("remove", "/b"),
        op("remove", "/a/2"),
        op("remove", "/a/-"),
        op("test", "/n", value=True),
        op("test", "/a", value=[1]),
        op("test", "/a", value={"0": 1}),
        op("copy", "/b"),
        moved("copy", "/b", "/c"),
        moved("move", "/a", "/a/0"),
        moved("move", "", "/a"),
        op("set", "/a", value=1),
    ],
)
def test_an_operation_that_does_not_apply_leaves_none_of_its_patch(operation: JsonObject) -> None:
    document: JsonValue = {"a": [1, 2], "n": 1}
    with pytest.raises(PatchFault, match="operation 1"):
        patched(document, [op("add", "/first", value=1), operation], max_bytes=ROOM)
    assert document == {"a": [1, 2], "n": 1}


def test_a_value_that_is_copied_twice_is_two_values() -> None:
    patch = [op("add", "/b", value=[]), moved("copy", "/b", "/c"), op("add", "/b/-", value=1)]
    assert patched({}, patch, max_bytes=ROOM) == {"b": [1], "c": []}


def test_documents_and_patches_are_bounded() -> None:
    grows = [moved("copy", "", f"/{number}") for number in range(100)]
    nests = [moved("copy", "", "/x")] * MAX_DEPTH
    for patch in (grows, nests, [op("add", "/b", value="x" * ROOM)], [op("test", "/a", value=["x" * 5 * ROOM])]):
        with pytest.raises(PatchFault):
            patched({"a": "x"}, patch, max_bytes=ROOM)
    deep: JsonValue = 1
    for _ in range(MAX_DEPTH):
        deep = [deep]
    assert patched(deep, [], max_bytes=ROOM) == deep
    for document, operation in (
        ([deep], op("add", "/-", value=1)),
        ({}, op("add", "/a", value=deep)),
        ({}, op("add", "/a", value=[deep])),
        ({}, op("add", "/a" * (MAX_DEPTH + 1), value=1)),
    ):
        with pytest.raises(PatchFault, match="levels"):
            patched(document, [operation], max_bytes=ROOM)
