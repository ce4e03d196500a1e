"""VerifyAuditChain: what kinds of tampering the report finds, and what it does not mistake for
tampering."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from pytest_mock import MockerFixture, MockType

from application.audit.ports import AuditChain, ChainEnd
from application.audit.prune_audit import PruneAudit, PruneAuditCommand
from application.audit.verify_audit_chain import (
    ChainReport,
    Sealing,
    UnknownKey,
    UnsealedEntries,
    VerifyAuditChain,
)
from domain.audit.chain_check import BrokenLink, ChainProblem
from domain.identity.api_key import Principal
from domain.identity.role import Role
from tests.builders import ORG, after
from tests.doubles.audit_chain import GivenSealKeys, InMemoryAuditChain
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger
from tests.unit.application.audit.trail import KEYS, a_state_with, add_entries, seal

NOW = after(1_000)
MOMENTS = (after(1), after(2), after(3))


class Ports:
    """A trail of three sealed entries; no entries are sealed by this process."""

    def __init__(self, mocker: MockerFixture, state: InMemoryState) -> None:
        self.state = state
        self.chain: AuditChain = InMemoryAuditChain(state)
        self.entries: UnsealedEntries = InMemoryAuditChain(state)
        self.sealing: MockType = mocker.create_autospec(Sealing, instance=True)
        self.keys = KEYS

    async def verify(self, principal: Principal | None = None) -> ChainReport:
        verifying = VerifyAuditChain(
            chain=self.chain, entries=self.entries, sealing=self.sealing, keys=self.keys, clock=FixedClock(NOW)
        )
        return await verifying.execute(principal or a_principal())


@pytest.fixture
async def ports(mocker: MockerFixture) -> Ports:
    state = a_state_with(*MOMENTS)
    await seal(state, at=after(4))
    return Ports(mocker, state)


@pytest.mark.requirement("C5", "C6")
@pytest.mark.parametrize("role", list(Role))
async def test_every_role_verifies_the_trail_of_its_organization(ports: Ports, role: Role) -> None:
    assert await ports.verify(a_principal(role)) == ChainReport(
        ok=True,
        checked=3,
        sealed_through=3,
        pruned_through=0,
        unsealed=0,
        sealed_late=0,
        first_broken=None,
        unknown_keys=(),
    )


@pytest.mark.requirement("C5", "C6")
async def test_the_trail_of_another_organization_is_not_looked_at(ports: Ports) -> None:
    report = await ports.verify(a_stranger())

    assert (report.ok, report.checked, report.sealed_through) == (True, 0, 0)


def edit(state: InMemoryState) -> None:
    entry = list(state.audit.values())[1]
    state.audit[entry.id] = replace(entry, actor="an impostor")


def delete(state: InMemoryState) -> None:
    del state.audit[list(state.audit)[1]]


def delete_the_end(state: InMemoryState) -> None:
    del state.audit[list(state.audit)[2]]
    state.audit_links[ORG].pop()


def swap(state: InMemoryState) -> None:
    first, second = state.audit_links[ORG][:2]
    state.audit_links[ORG][:2] = [
        replace(first, event_id=second.event_id),
        replace(second, event_id=first.event_id),
    ]


def add_a_foreign_seal(state: InMemoryState) -> None:
    last = state.audit_links[ORG][-1]
    state.audit_links[ORG].append(replace(last, number=4))


def edit_the_head(state: InMemoryState) -> None:
    state.audit_heads[ORG] = replace(state.audit_heads[ORG], number=2)


def delete_the_head(state: InMemoryState) -> None:
    del state.audit_heads[ORG]


@pytest.mark.requirement("C5")
@pytest.mark.parametrize(
    ("tamper", "number", "problem"),
    [
        (edit, 2, ChainProblem.EDITED),
        (delete, 2, ChainProblem.DELETED),
        (delete_the_end, 3, ChainProblem.DELETED),
        (swap, 1, ChainProblem.REORDERED),
        (add_a_foreign_seal, 4, ChainProblem.INSERTED),
        (edit_the_head, None, ChainProblem.HEAD_EDITED),
        (delete_the_head, None, ChainProblem.HEAD_DELETED),
    ],
)
async def test_tampering_is_found_where_it_was_done(
    ports: Ports, tamper: Callable[[InMemoryState], None], number: int | None, problem: ChainProblem
) -> None:
    tamper(ports.state)

    report = await ports.verify()

    assert not report.ok
    assert report.first_broken is not None
    assert (report.first_broken.number, report.first_broken.problem) == (number, problem)


@pytest.mark.requirement("C5")
async def test_an_entry_that_has_waited_over_ten_seconds_for_its_seal_is_a_problem(ports: Ports) -> None:
    [late] = add_entries(ports.state, NOW - timedelta(seconds=11))

    report = await ports.verify()

    assert (report.ok, report.unsealed) == (False, 1)
    assert report.first_broken == BrokenLink(number=None, event_id=late.id, problem=ChainProblem.UNSEALED)


@pytest.mark.requirement("C5")
async def test_an_entry_that_was_just_written_may_wait_for_its_seal(ports: Ports) -> None:
    add_entries(ports.state, NOW - timedelta(seconds=9))

    report = await ports.verify()

    assert (report.ok, report.unsealed) == (True, 1)


@pytest.mark.requirement("C5")
async def test_seals_that_came_late_are_counted_and_are_no_tampering(ports: Ports) -> None:
    add_entries(ports.state, after(5))
    await seal(ports.state, at=after(60))

    report = await ports.verify()

    assert (report.ok, report.checked, report.sealed_late) == (True, 4, 1)


@pytest.mark.requirement("C5")
async def test_seals_under_a_key_that_is_not_known_are_named_and_are_not_called_broken(ports: Ports) -> None:
    former = KEYS.current().id
    ports.keys = GivenSealKeys(b"n" * 32)

    report = await ports.verify()

    assert (report.ok, report.first_broken) == (False, None)
    assert report.unknown_keys == (UnknownKey(key_id=former, links=3),)


@pytest.mark.requirement("C5", "E7")
async def test_what_retention_has_removed_is_no_gap(ports: Ports) -> None:
    chain = InMemoryAuditChain(ports.state)
    ids = SequentialIds()
    for _ in MOMENTS:
        ids.new("aud")
    pruning = PruneAudit(seals=chain, keys=KEYS, clock=FixedClock(NOW), ids=ids)
    await pruning.execute(PruneAuditCommand(organization_id=ORG, before=after(3)))

    report = await ports.verify()

    assert (report.ok, report.checked, report.pruned_through, report.sealed_through) == (True, 1, 2, 3)


@pytest.mark.requirement("C5")
async def test_a_chain_whose_beginning_is_pruned_meanwhile_is_checked_from_its_new_beginning(
    ports: Ports, mocker: MockerFixture
) -> None:
    chain = InMemoryAuditChain(ports.state)
    before = await chain.end(ORG)
    ids = SequentialIds()
    for _ in MOMENTS:
        ids.new("aud")
    pruning = PruneAudit(seals=chain, keys=KEYS, clock=FixedClock(NOW), ids=ids)
    await pruning.execute(PruneAuditCommand(organization_id=ORG, before=after(3)))
    now: ChainEnd = await chain.end(ORG)
    overtaken = mocker.create_autospec(AuditChain, instance=True)
    overtaken.end.side_effect = [before, now, now]
    overtaken.links.side_effect = chain.links
    ports.chain = overtaken

    report = await ports.verify()

    assert (report.ok, report.checked, report.pruned_through) == (True, 1, 2)


@pytest.mark.requirement("C5")
async def test_what_earlier_processes_left_unsealed_is_sealed_before_the_trail_is_read(
    ports: Ports, mocker: MockerFixture
) -> None:
    ports.sealing.caught_up.side_effect = storage_away()
    chain = mocker.create_autospec(AuditChain, instance=True)
    ports.chain = chain

    with refused("storage_unavailable"):
        await ports.verify()

    chain.end.assert_not_awaited()


@pytest.mark.parametrize("failing", ["chain", "entries"])
async def test_a_trail_that_cannot_be_read_gets_no_report(ports: Ports, mocker: MockerFixture, failing: str) -> None:
    chain = mocker.create_autospec(AuditChain, instance=True)
    entries = mocker.create_autospec(UnsealedEntries, instance=True)
    chain.end.side_effect = entries.scan.side_effect = storage_away()
    if failing == "chain":
        ports.chain = chain
    else:
        ports.entries = entries

    with refused("storage_unavailable"):
        await ports.verify()
