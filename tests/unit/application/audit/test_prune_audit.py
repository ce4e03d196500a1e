"""PruneAudit: which entries go, what is left of the chain, and that each removal is itself an
entry."""

from dataclasses import replace
from datetime import timedelta

import pytest
from pytest_mock import MockerFixture

from application.audit.ports import AuditSeals, SealKeys
from application.audit.prune_audit import PruneAudit, PruneAuditCommand
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import ErrorKind, ServiceError
from tests.builders import ORG, OTHER_ORG, after, an_audit_event
from tests.doubles.audit_chain import GivenSealKeys, InMemoryAuditChain
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.refusals import refused, storage_away
from tests.unit.application.audit.trail import KEYS, a_state_with, seal

BEFORE = after(100)
NOW = after(1_000)
OLD, YOUNG = (after(10), after(20), after(30)), (BEFORE, after(200))


class PruningIds:
    """Identifiers that no builder makes."""

    def __init__(self) -> None:
        self._count = 0

    def new(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}_pruning_{self._count}"

    def new_token(self) -> str:
        raise AssertionError("pruning makes no tokens")


async def prune(seals: AuditSeals, keys: SealKeys = KEYS) -> int:
    """Prune ORG's entries from before BEFORE, two at a time."""
    pruning = PruneAudit(seals=seals, keys=keys, clock=FixedClock(NOW), ids=PruningIds(), batch=2)
    return await pruning.execute(PruneAuditCommand(organization_id=ORG, before=BEFORE))


async def a_sealed_trail() -> InMemoryState:
    state = a_state_with(*OLD, *YOUNG)
    await seal(state, at=after(300))
    return state


def removals(state: InMemoryState) -> list[AuditEvent]:
    """What the trail says of pruning."""
    return [entry for entry in state.audit.values() if entry.action is AuditAction.AUDIT_PRUNED]


@pytest.mark.requirement("C5", "E7")
async def test_sealed_entries_from_before_the_moment_go_in_batches_and_the_others_stay() -> None:
    state = await a_sealed_trail()

    assert await prune(InMemoryAuditChain(state)) == 3

    assert [entry.at for entry in state.audit.values() if entry not in removals(state)] == list(YOUNG)
    assert (state.audit_heads[ORG].pruned_through, state.audit_heads[ORG].number) == (3, 5)


@pytest.mark.requirement("C5")
async def test_each_removal_is_an_entry_by_the_system() -> None:
    state = await a_sealed_trail()

    await prune(InMemoryAuditChain(state))

    first, second = removals(state)
    assert {(entry.actor, entry.resource, entry.at) for entry in (first, second)} == {("system", ORG, NOW)}
    assert first.details == {"through": 2, "removed": 2, "before": BEFORE.isoformat()}
    assert second.details == {"through": 3, "removed": 1, "before": BEFORE.isoformat()}


@pytest.mark.requirement("C5")
async def test_entries_that_are_not_sealed_stay_however_old() -> None:
    state = a_state_with(*OLD)

    assert await prune(InMemoryAuditChain(state)) == 0

    assert [entry.at for entry in state.audit.values()] == list(OLD)


@pytest.mark.requirement("C5", "C6")
async def test_entries_of_another_organization_stay() -> None:
    state = a_state_with(*OLD, organization_id=OTHER_ORG)
    await seal(state, at=after(300))

    assert await prune(InMemoryAuditChain(state)) == 0

    assert len(state.audit) == 3


@pytest.mark.requirement("C5")
async def test_a_trail_that_was_tampered_with_stays_as_evidence() -> None:
    state = await a_sealed_trail()
    forged = next(iter(state.audit.values()))
    state.audit[forged.id] = replace(forged, actor="an impostor")
    before = dict(state.audit)

    with refused("audit_chain_broken"):
        await prune(InMemoryAuditChain(state))

    assert state.audit == before


@pytest.mark.requirement("C5")
async def test_entries_under_a_key_that_is_not_known_stay() -> None:
    state = await a_sealed_trail()

    with refused("audit_chain_broken"):
        await prune(InMemoryAuditChain(state), GivenSealKeys(b"n" * 32))

    assert len(state.audit) == 5


@pytest.mark.requirement("C5")
async def test_later_entries_are_sealed_after_those_that_were_pruned() -> None:
    state = await a_sealed_trail()
    await prune(InMemoryAuditChain(state))

    state.record(an_audit_event(9, at=NOW + timedelta(seconds=1)))
    await seal(state, at=NOW + timedelta(seconds=2))

    head = state.audit_heads[ORG]
    assert (head.pruned_through, head.number) == (3, 8)


@pytest.mark.parametrize("removed", [2, 0], ids=["at the second batch", "at the first batch"])
async def test_a_failure_ends_the_pruning(mocker: MockerFixture, removed: int) -> None:
    seals = mocker.create_autospec(AuditSeals, instance=True)
    seals.prune.side_effect = [2, storage_away()] if removed else [storage_away()]

    with refused("storage_unavailable"):
        await prune(seals)

    assert seals.prune.await_count == (2 if removed else 1)


async def test_without_keys_nothing_is_removed(mocker: MockerFixture) -> None:
    seals = mocker.create_autospec(AuditSeals, instance=True)
    keys = mocker.create_autospec(SealKeys, instance=True)
    keys.all.side_effect = ServiceError("secret_undecryptable", ErrorKind.INTERNAL, "No key fits.")

    with refused("secret_undecryptable"):
        await prune(seals, keys)

    seals.prune.assert_not_awaited()
