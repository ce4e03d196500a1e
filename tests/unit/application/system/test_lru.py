"""The bounded dictionary: what stays, what goes, and when the owner hears of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from application.system.lru import LruCache


def test_an_entry_is_found_until_it_is_removed() -> None:
    cache: LruCache[str, int] = LruCache(2)
    cache.put("a", 1)
    assert (cache.get("a"), cache.get("b"), len(cache), "a" in cache) == (1, None, 1, True)
    assert (cache.pop("a"), cache.pop("a"), cache.get("a"), len(cache)) == (1, None, None, 0)


def test_the_least_recently_used_entry_makes_room() -> None:
    cache: LruCache[str, int] = LruCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    cache.put("c", 3)
    assert cache.items() == [("b", 2), ("c", 3)]


@pytest.mark.parametrize("use", [lambda cache: cache.get("a"), lambda cache: cache.put("a", 1)], ids=["get", "put"])
def test_a_used_entry_stays(use: object) -> None:
    cache: LruCache[str, int] = LruCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert callable(use)
    use(cache)
    cache.put("c", 3)
    assert list(cache) == ["a", "c"]


def test_looking_whether_an_entry_is_there_is_no_use() -> None:
    cache: LruCache[str, int] = LruCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert "a" in cache
    cache.put("c", 3)
    assert list(cache) == ["b", "c"]


def test_entries_are_weighed_and_several_light_ones_make_room_for_a_heavy_one() -> None:
    cache: LruCache[str, bytes] = LruCache(10, weight=len)
    cache.put("a", b"1234")
    cache.put("b", b"1234")
    cache.put("c", b"1234567")
    assert list(cache) == ["c"]
    cache.put("d", b"123")
    assert list(cache) == ["c", "d"]


def test_an_entry_too_heavy_is_not_stored_and_drops_only_its_predecessor() -> None:
    cache: LruCache[str, bytes] = LruCache(4, weight=len)
    cache.put("a", b"12")
    cache.put("b", b"1")
    cache.put("b", b"12345")
    assert cache.items() == [("a", b"12")]


def test_a_cache_without_capacity_stores_nothing() -> None:
    cache: LruCache[str, int] = LruCache(0)
    cache.put("a", 1)
    assert cache.get("a") is None


def test_the_owner_hears_of_what_was_dropped_and_not_of_what_it_removed() -> None:
    dropped: list[int] = []
    cache: LruCache[str, int] = LruCache(2, on_drop=dropped.append)
    cache.put("a", 1)
    cache.put("a", 2)
    cache.pop("a")
    cache.put("b", 3)
    cache.put("c", 4)
    cache.put("d", 5)
    assert dropped == [3]
    cache.clear()
    assert (dropped, len(cache)) == ([3], 0)


def test_entries_may_be_removed_while_they_are_looked_at() -> None:
    cache: LruCache[int, int] = LruCache(10)
    for number in range(6):
        cache.put(number, number)
    for key in cache:
        if key % 2:
            cache.pop(key)
    assert list(cache) == [0, 2, 4]


@given(
    st.lists(
        st.tuples(st.sampled_from(["put", "get", "pop", "clear"]), st.sampled_from("abcdef"), st.binary(max_size=5)),
        max_size=60,
    )
)
def test_it_never_weighs_more_than_its_capacity(steps: list[tuple[str, str, bytes]]) -> None:
    cache: LruCache[str, bytes] = LruCache(8, weight=len)
    for step, key, value in steps:
        match step:
            case "put":
                cache.put(key, value)
                assert cache.get(key) == value
            case "get":
                cache.get(key)
            case "pop":
                cache.pop(key)
                assert key not in cache
            case _:
                cache.clear()
        assert sum(len(held) for _, held in cache.items()) <= 8
