"""The chain over audit entries: every change of a row is found, and named where it was made."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.audit.chain import (
    SEALED_FIELDS,
    ChainHead,
    ChainKey,
    ChainKeys,
    Entry,
    Link,
    StoredValue,
    chain_key,
    continuable,
    extended,
    first_head,
    is_genuine,
    pruned,
    seal_of,
    signed,
)
from domain.audit.chain_check import LATE_US, BrokenLink, ChainCheck, ChainProblem, StoredLink, head_problem
from tests.builders import ORG, OTHER_ORG

KEY, OTHER_KEY = chain_key(b"k" * 32), chain_key(b"o" * 32)
SEALED_AT = 1_767_268_800_000_000


def an_entry(number: int) -> Entry:
    values: dict[str, StoredValue] = {name: f"{name} {number}" for name in SEALED_FIELDS}
    values.update(at=SEALED_AT - number, duration_ms=None if number % 2 else number, details=f'{{"n":{number}}}')
    return tuple(values[name] for name in SEALED_FIELDS)


@dataclass(slots=True)
class Trail:
    """An organization's entries and seals, as a database holds them."""

    entries: dict[str, Entry]
    links: dict[int, Link]
    head: ChainHead

    def stored(self) -> list[StoredLink]:
        found = [link for number, link in sorted(self.links.items()) if number > self.head.pruned_through]
        return [StoredLink(link=link, entry=self.entries.get(link.event_id)) for link in found]

    def verified(self, *keys: ChainKey, batch: int = 100) -> BrokenLink | None:
        known = {key.id: key for key in keys or (KEY,)}
        last = max(self.links, default=0)
        broken = head_problem(self.head, last_number=last, keys=known)
        if broken is not None:
            return broken
        check = ChainCheck(known, self.head.pruned_through, self.head.pruned_seal)
        stored = [one for one in self.stored() if one.link.number <= self.head.number]
        for start in range(0, len(stored), batch):
            broken = check.take(stored[start : start + batch])
            if broken is not None:
                return broken
        return check.end(self.head, last_number=last)

    @property
    def unsealed(self) -> set[str]:
        return set(self.entries) - {link.event_id for link in self.links.values()}

    def is_found_out(self) -> bool:
        return self.verified() is not None or bool(self.unsealed)


def a_trail(length: int) -> Trail:
    entries = [an_entry(number) for number in range(1, length + 1)]
    links, head = extended(first_head(KEY, ORG), entries, key=KEY, sealed_at=SEALED_AT)
    return Trail({str(entry[0]): entry for entry in entries}, {link.number: link for link in links}, head)


LENGTHS = st.integers(min_value=1, max_value=8)
VALUES: st.SearchStrategy[StoredValue] = st.none() | st.text() | st.integers() | st.floats() | st.binary()


@pytest.mark.requirement("C5")
@given(length=LENGTHS, batch=st.integers(1, 9))
def test_an_untouched_chain_is_whole_in_batches_of_any_size(length: int, batch: int) -> None:
    trail = a_trail(length)
    assert trail.verified(batch=batch) is None
    assert not trail.unsealed


@pytest.mark.requirement("C5")
@given(length=LENGTHS, data=st.data(), value=VALUES)
def test_every_edit_of_a_column_of_an_entry_is_found_at_its_number(
    length: int, data: st.DataObject, value: StoredValue
) -> None:
    trail = a_trail(length)
    number = data.draw(st.integers(1, length))
    column = data.draw(st.integers(1, len(SEALED_FIELDS) - 1))
    event_id = trail.links[number].event_id
    before = trail.entries[event_id]
    if repr(before[column]) == repr(value):
        return
    trail.entries[event_id] = (*before[:column], value, *before[column + 1 :])
    assert trail.verified() == BrokenLink(number=number, event_id=event_id, problem=ChainProblem.EDITED)


@pytest.mark.requirement("C5")
@given(length=LENGTHS, data=st.data(), text=st.text(), moment=st.integers())
def test_every_edit_of_a_seal_is_found(length: int, data: st.DataObject, text: str, moment: int) -> None:
    trail = a_trail(length)
    number = data.draw(st.integers(1, length))
    link = trail.links[number]
    edits: list[Callable[[], Link]] = [
        lambda: replace(link, seal=text),
        lambda: replace(link, event_id=text),
        lambda: replace(link, sealed_at=moment),
    ]
    trail.links[number] = data.draw(st.sampled_from(edits))()
    assert trail.links[number] == link or trail.is_found_out()


@pytest.mark.requirement("C5")
@given(length=LENGTHS, data=st.data())
def test_every_deletion_is_found_at_the_end_too(length: int, data: st.DataObject) -> None:
    number = data.draw(st.integers(1, length))
    without_entry, without_link, without_both = a_trail(length), a_trail(length), a_trail(length)
    event_id = without_entry.links[number].event_id
    del without_entry.entries[event_id]
    del without_link.links[number]
    del without_both.links[number], without_both.entries[event_id]
    assert without_entry.verified() == BrokenLink(number=number, event_id=event_id, problem=ChainProblem.DELETED)
    for trail in (without_link, without_both):
        assert trail.verified() == BrokenLink(number=number, event_id=None, problem=ChainProblem.DELETED)


@pytest.mark.requirement("C5")
@given(length=st.integers(2, 8), data=st.data(), by_number=st.booleans())
def test_entries_that_changed_places_are_called_reordered(length: int, data: st.DataObject, by_number: bool) -> None:
    trail = a_trail(length)
    first = data.draw(st.integers(1, length - 1))
    second = data.draw(st.integers(first + 1, length))
    one, other = trail.links[first], trail.links[second]
    if by_number:
        trail.links[first], trail.links[second] = replace(other, number=first), replace(one, number=second)
    else:
        trail.links[first] = replace(one, event_id=other.event_id)
        trail.links[second] = replace(other, event_id=one.event_id)
    assert trail.verified() == BrokenLink(
        number=first, event_id=trail.links[first].event_id, problem=ChainProblem.REORDERED
    )


@pytest.mark.requirement("C5")
@given(length=LENGTHS, data=st.data())
def test_an_inserted_entry_is_found_with_and_without_a_seal(length: int, data: st.DataObject) -> None:
    copied = an_entry(data.draw(st.integers(1, length)))
    foreign: Entry = ("aud_foreign", *copied[1:])
    unsealed = a_trail(length)
    unsealed.entries["aud_foreign"] = foreign
    assert unsealed.unsealed == {"aud_foreign"}

    behind = a_trail(length)
    forged, _ = extended(behind.head, [foreign], key=OTHER_KEY, sealed_at=SEALED_AT)
    behind.entries["aud_foreign"] = foreign
    behind.links[length + 1] = replace(forged[0], key_id=KEY.id)
    assert behind.verified() == BrokenLink(number=length + 1, event_id=None, problem=ChainProblem.INSERTED)

    between = a_trail(length)
    place = data.draw(st.integers(1, length))
    between.entries["aud_foreign"] = foreign
    moved = {link.number + 1: replace(link, number=link.number + 1) for link in between.links.values()}
    before = {number: link for number, link in between.links.items() if number < place}
    after = {number: link for number, link in moved.items() if number > place}
    between.links = {**before, place: replace(forged[0], number=place, key_id=KEY.id), **after}
    found = between.verified()
    assert found is not None
    assert found.number == place


@pytest.mark.requirement("C5")
@pytest.mark.parametrize("name", ["number", "seal", "pruned_through", "pruned_seal", "organization_id", "signature"])
def test_every_edit_of_the_head_is_found(name: str) -> None:
    head = a_trail(3).head
    changed: dict[str, object] = {"number": 2, "pruned_through": 1, "organization_id": OTHER_ORG}
    values = {field: getattr(head, field) for field in ChainHead.__dataclass_fields__}
    edited = ChainHead(**{**values, name: changed.get(name, "00" * 32)})
    assert not is_genuine(KEY, edited)
    found = head_problem(edited, last_number=3, keys={KEY.id: KEY})
    assert found is not None
    assert found.problem is ChainProblem.HEAD_EDITED


@pytest.mark.requirement("C5")
def test_a_head_that_is_gone_is_missed_as_long_as_there_is_a_seal() -> None:
    found = head_problem(None, last_number=3, keys={})
    assert found == BrokenLink(number=None, event_id=None, problem=ChainProblem.HEAD_DELETED)
    assert head_problem(None, last_number=0, keys={}) is None


@pytest.mark.requirement("C5")
def test_an_earlier_part_of_the_chain_put_back_over_a_later_one_does_not_fit_its_head() -> None:
    trail = a_trail(3)
    fork, _ = extended(first_head(KEY, ORG), [an_entry(number) for number in (1, 2, 9)], key=KEY, sealed_at=SEALED_AT)
    trail.links[3] = fork[2]
    trail.entries[fork[2].event_id] = an_entry(9)
    assert trail.verified() == BrokenLink(number=3, event_id=None, problem=ChainProblem.EDITED)


@pytest.mark.requirement("C5")
def test_the_same_entries_of_another_organization_have_other_seals() -> None:
    links = [
        extended(first_head(KEY, organization), [an_entry(1)], key=KEY, sealed_at=SEALED_AT)[0]
        for organization in (ORG, OTHER_ORG)
    ]
    assert links[0][0].seal != links[1][0].seal


@pytest.mark.requirement("C5")
def test_a_seal_stays_the_same_from_release_to_release() -> None:
    entry: Entry = ("aud_1", "org_1", "run.started", "key_1", "run_1", 7, "run_1", None, None, 5, None, '{"a":"ü"}')
    assert KEY.id == "529cf1a5407cc1a7"
    assert seal_of(KEY, "00" * 32, 1, 9, entry) == "172e8100d78621423217582d0277e0a74d9af501671e068e062af8fd7d55a53a"


@pytest.mark.requirement("C5")
def test_a_chain_goes_on_under_a_new_key_and_both_parts_are_checked_by_their_own() -> None:
    trail = a_trail(2)
    links, head = extended(trail.head, [an_entry(3)], key=OTHER_KEY, sealed_at=SEALED_AT)
    trail.links[3], trail.head, trail.entries["id 3"] = links[0], head, an_entry(3)
    assert trail.verified(KEY, OTHER_KEY) is None

    check = ChainCheck({OTHER_KEY.id: OTHER_KEY}, 0, head.pruned_seal)
    assert check.take(trail.stored()) is None
    assert check.unknown == {KEY.id: 2}


@pytest.mark.requirement("C5")
def test_what_is_pruned_is_not_missed_and_what_is_left_goes_on_from_it() -> None:
    trail = a_trail(4)
    trail.head = pruned(trail.head, trail.links[2], key=KEY)
    for number in (1, 2):
        del trail.entries[trail.links.pop(number).event_id]
    assert trail.verified() is None
    del trail.entries[trail.links.pop(3).event_id]
    assert trail.verified() == BrokenLink(number=3, event_id=None, problem=ChainProblem.DELETED)


@pytest.mark.requirement("C5")
def test_a_seal_that_came_late_is_counted() -> None:
    early = an_entry(1)
    late: Entry = (*early[:5], SEALED_AT - LATE_US - 1, *early[6:])
    links, head = extended(first_head(KEY, ORG), [early, late], key=KEY, sealed_at=SEALED_AT)
    check = ChainCheck({KEY.id: KEY}, 0, head.pruned_seal)
    stored = [StoredLink(link=link, entry=entry) for link, entry in zip(links, (early, late), strict=True)]
    assert check.take(stored) is None
    assert (check.checked, check.late) == (2, 1)


@pytest.mark.requirement("C5")
@pytest.mark.parametrize(
    ("head_key", "last_key", "goes_on"),
    [("known", "known", True), ("unknown", "unknown", True), ("unknown", "known", False), ("unknown", None, False)],
)
def test_a_head_under_an_unknown_key_is_gone_on_from_only_where_a_seam_stays_visible(
    head_key: str, last_key: str | None, goes_on: bool
) -> None:
    keys = ChainKeys(current=KEY, known={KEY.id: KEY})
    ids = {"known": KEY.id, "unknown": OTHER_KEY.id, None: None}
    head = signed(KEY if head_key == "known" else OTHER_KEY, a_trail(2).head)
    assert continuable(head, keys, lambda: ids[last_key]) is goes_on


@pytest.mark.requirement("C5")
def test_a_head_that_was_changed_is_not_gone_on_from() -> None:
    keys = ChainKeys(current=KEY, known={KEY.id: KEY})
    assert not continuable(replace(a_trail(2).head, number=1), keys, lambda: KEY.id)
