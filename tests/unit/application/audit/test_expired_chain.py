"""ExpiredChain: what of a chain is read, checked and archived before retention removes it."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.audit.expired_chain import ExpiredChain
from application.audit.ports import ArchivedPart, AuditArchive
from application.audit.prune_audit import PruneAudit, PruneAuditCommand
from domain.errors import ErrorKind, ServiceError
from infrastructure.runtime.system import RandomIds
from tests.builders import ORG, after
from tests.doubles.audit_chain import InMemoryAuditChain
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.refusals import refused
from tests.unit.application.audit.trail import KEYS, a_state_with, seal

pytestmark = pytest.mark.requirement("K5")

BEFORE = after(100)
OLD, YOUNG = (after(10), after(20), after(30), after(40), after(50)), (BEFORE, after(200))


@pytest.fixture
def archive(mocker: MockerFixture) -> MockType:
    port: MockType = mocker.create_autospec(AuditArchive, instance=True)
    return port


async def a_sealed_trail() -> InMemoryState:
    state = a_state_with(*OLD, *YOUNG)
    await seal(state, at=after(300))
    return state


def expired(state: InMemoryState, archive: MockType) -> ExpiredChain:
    """Two links at a time, and four in an archived part."""
    return ExpiredChain(chain=InMemoryAuditChain(state), archive=archive, batch=2, part=4)


async def prune(state: InMemoryState, archive: MockType) -> int:
    pruning = PruneAudit(
        seals=InMemoryAuditChain(state),
        keys=KEYS,
        clock=FixedClock(after(1_000)),
        ids=RandomIds(),
        archiving=expired(state, archive),
        batch=2,
    )
    return await pruning.execute(PruneAuditCommand(organization_id=ORG, before=BEFORE))


def archived(archive: MockType) -> list[ArchivedPart]:
    return [call.args[0] for call in archive.store.await_args_list]


async def test_all_that_has_expired_is_archived_in_parts_that_follow_on_each_other(archive: MockType) -> None:
    state = await a_sealed_trail()
    start = state.audit_heads[ORG].pruned_seal

    found = await expired(state, archive).checked(ORG, BEFORE, await KEYS.all())

    assert found is not None
    assert (found.start, found.last.number) == (0, 5)
    first, second = archived(archive)
    assert [stored.link.number for part in (first, second) for stored in part.links] == [1, 2, 3, 4, 5]
    assert (first.previous_seal, second.previous_seal) == (start, first.links[-1].link.seal)


async def test_nothing_that_has_not_expired_is_archived(archive: MockType) -> None:
    assert await expired(await a_sealed_trail(), archive).checked(ORG, after(5), await KEYS.all()) is None
    archive.store.assert_not_awaited()


async def test_the_trail_is_pruned_as_far_as_it_was_archived(archive: MockType) -> None:
    state = await a_sealed_trail()

    assert await prune(state, archive) == 5

    assert sum(len(part.links) for part in archived(archive)) == 5
    assert state.audit_heads[ORG].pruned_through == 5


async def test_what_expires_while_the_archive_is_written_stays(archive: MockType) -> None:
    state = await a_sealed_trail()
    seals = InMemoryAuditChain(state)
    keys = await KEYS.all()
    entry = next(iter(state.audit.values()))

    removed = await seals.prune(ORG, BEFORE, keys=keys, audit=lambda *_: entry, limit=10, through=3)

    assert removed == 3
    assert state.audit_heads[ORG].pruned_through == 3


async def test_what_could_not_be_archived_is_not_removed(archive: MockType) -> None:
    state = await a_sealed_trail()
    archive.store.side_effect = [None, ServiceError("archive_failed", ErrorKind.INTERNAL, "full")]

    with refused("archive_failed"):
        await prune(state, archive)

    assert len(state.audit) == len(OLD) + len(YOUNG)
    assert state.audit_heads[ORG].pruned_through == 0


async def test_a_chain_that_was_changed_is_neither_pruned_nor_archived_from_there_on(archive: MockType) -> None:
    state = await a_sealed_trail()
    last = max(state.audit)
    first = min(state.audit)
    state.audit[first] = replace(state.audit[first], actor="somebody else")

    with refused("audit_chain_broken"):
        await prune(state, archive)

    archive.store.assert_not_awaited()
    assert last in state.audit
