"""VerifyAuditArchive: archived entries are as they were sealed, and none is missing between two
files."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from application.audit.ports import ArchivedPart
from application.audit.verify_audit_archive import ArchivedRange, ArchiveReport, MissingPart, VerifyAuditArchive
from domain.audit.chain_check import ChainProblem
from tests.builders import ORG, after
from tests.doubles.audit_chain import GivenSealKeys, InMemoryAuditChain
from tests.unit.application.audit.trail import KEYS, a_state_with, seal

pytestmark = pytest.mark.requirement("K5", "C5")


class InMemoryArchive:
    """`ArchivedAudit` over parts by their names; None is a damaged one."""

    def __init__(self, parts: Mapping[str, ArchivedPart | None]) -> None:
        self._parts = parts

    async def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._parts))

    async def read(self, name: str) -> ArchivedPart | None:
        return self._parts[name]


async def parts_of(*lengths: int) -> list[ArchivedPart]:
    """Consecutive parts of one chain."""
    state = a_state_with(*(after(number) for number in range(1, sum(lengths) + 1)))
    await seal(state, at=after(300))
    links = await InMemoryAuditChain(state).links(ORG, 0, 100)
    previous = state.audit_heads[ORG].pruned_seal
    parts, begin = [], 0
    for length in lengths:
        part = ArchivedPart(organization_id=ORG, previous_seal=previous, links=links[begin : begin + length])
        parts.append(part)
        begin, previous = begin + length, part.links[-1].link.seal
    return parts


async def verified(*parts: ArchivedPart | None, keys: GivenSealKeys = KEYS) -> ArchiveReport:
    archive = InMemoryArchive({f"file {number}": part for number, part in enumerate(parts, 1)})
    return await VerifyAuditArchive(archive=archive, keys=await keys.all()).execute()


async def test_parts_that_follow_on_each_other_or_overlap_are_unchanged() -> None:
    first, second, third = await parts_of(3, 2, 4)
    again = replace(second, links=(*second.links, *third.links[:1]))

    report = await verified(first, second, again, third)

    assert report.ok
    assert (report.files, report.entries) == (4, 12)


async def test_an_archive_that_begins_or_ends_within_a_chain_says_where() -> None:
    _, second, third, _ = await parts_of(3, 2, 4, 1)
    report = await verified(second, third)
    assert report.ok
    assert report.ranges == (ArchivedRange(organization_id=ORG, first=4, last=9),)


async def test_two_files_that_end_with_one_number_and_other_seals_contradict_each_other() -> None:
    first, second = await parts_of(3, 2)
    *links, last = second.links
    other = replace(second, links=(*links, replace(last, link=replace(last.link, seal="0" * 64, key_id="unknown"))))
    report = await verified(first, second, other)
    assert [broken.name for broken in report.broken] == ["file 3"]


async def test_numbers_in_no_file_are_missing() -> None:
    first, _, third = await parts_of(3, 2, 4)

    report = await verified(first, third)

    assert not report.ok
    assert report.missing == (MissingPart(organization_id=ORG, first=4, last=5),)


async def test_a_changed_entry_is_found_in_its_file() -> None:
    first, second = await parts_of(3, 2)
    entry = second.links[1].entry
    assert entry is not None
    changed = replace(second.links[1], entry=(*entry[:3], "somebody else", *entry[4:]))

    report = await verified(first, replace(second, links=(second.links[0], changed)))

    assert not report.ok
    [broken] = report.broken
    assert (broken.name, broken.first.number, broken.first.problem) == ("file 2", 5, ChainProblem.EDITED)


async def test_a_file_of_another_chain_in_the_place_of_one_is_found() -> None:
    first, second = await parts_of(3, 2)
    report = await verified(first, replace(second, previous_seal="0" * 64))
    assert [broken.name for broken in report.broken] == ["file 2"]


async def test_a_damaged_file_is_named_and_the_others_are_checked() -> None:
    first, _ = await parts_of(3, 2)
    report = await verified(first, None)
    assert (report.ok, report.damaged, report.entries) == (False, ("file 2",), 3)


async def test_entries_under_an_unknown_key_are_not_vouched_for() -> None:
    report = await verified(*await parts_of(3), keys=GivenSealKeys(b"other" * 8))
    assert (report.ok, report.unchecked, report.broken) == (False, 3, ())
