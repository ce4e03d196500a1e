"""The contract of sealing, verifying, exporting and pruning the audit trail."""

import asyncio
from dataclasses import dataclass, replace

import pytest

from application.audit.export_audit_events import ExportAuditEvents, ExportAuditEventsCommand, ExportedEntry
from application.audit.ports import AuditFilter, Place, Waiting
from application.audit.prune_audit import PruneAudit, PruneAuditCommand
from application.audit.seal_audit import SealAudit
from application.audit.verify_audit_chain import ChainReport, VerifyAuditChain
from domain.audit.chain_check import BrokenLink, ChainProblem
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError
from domain.identity.role import Role
from domain.ids import OrganizationId
from infrastructure.runtime.system import RandomIds
from tests.builders import ORG, OTHER_ORG, RUN, SERVER, after, an_audit_event
from tests.contract.stores import Stores
from tests.doubles.audit_chain import GivenSealKeys
from tests.doubles.surroundings import FixedClock
from tests.unit.application.actors import a_principal

OLD, NEW = b"o" * 32, b"n" * 32


@dataclass(slots=True)
class Trail:
    """The audit trail of one backend, and the use cases over it."""

    stores: Stores
    keys: GivenSealKeys
    clock: FixedClock

    async def record(self, *numbers: int, organization_id: OrganizationId = ORG) -> None:
        for number in numbers:
            await self.stores.audit.record(an_audit_event(number, organization_id=organization_id))

    def sealer(self, *, batch: int = 250) -> SealAudit:
        return SealAudit(seals=self.stores.audit_seals, keys=self.keys, clock=self.clock, batch=batch)

    async def sealed(self) -> int:
        return await self.sealer(batch=2).sweep()

    async def report(self, organization_id: OrganizationId = ORG) -> ChainReport:
        verify = VerifyAuditChain(
            chain=self.stores.audit_chain,
            entries=self.stores.audit_seals,
            sealing=self.sealer(),
            keys=self.keys,
            clock=self.clock,
        )
        principal = a_principal(Role.VIEWER, organization_id=organization_id)
        return await verify.execute(principal)

    async def exported(self, wanted: AuditFilter | None = None) -> list[ExportedEntry]:
        export = ExportAuditEvents(chain=self.stores.audit_chain)
        command = ExportAuditEventsCommand(principal=a_principal(Role.VIEWER), wanted=wanted or AuditFilter())
        return [entry async for part in export.execute(command) for entry in part]

    async def prune(self, before: float, *, batch: int = 2) -> int:
        prune = PruneAudit(
            seals=self.stores.audit_seals, keys=self.keys, clock=self.clock, ids=RandomIds(), batch=batch
        )
        return await prune.execute(PruneAuditCommand(organization_id=ORG, before=after(before)))


@pytest.fixture
async def trail(stores: Stores) -> Trail:
    return Trail(stores, GivenSealKeys(OLD), FixedClock(start=after(60)))


def place(number: int) -> Place:
    """Where this entry is found by its time."""
    return Place(at=int(after(number).timestamp()) * 1_000_000)


def event_ids(entries: list[ExportedEntry]) -> list[object]:
    return [exported.entry[0] for exported in entries]


@pytest.mark.requirement("C5")
async def test_entries_are_sealed_by_time_in_batches_and_verified(trail: Trail) -> None:
    await trail.record(3, 1, 2, 5, 4)
    assert await trail.sealed() == 5
    assert await trail.sealed() == 0
    report = await trail.report()
    assert (report.ok, report.checked, report.sealed_through, report.unsealed) == (True, 5, 5, 0)
    exported = await trail.exported()
    assert event_ids(exported) == [an_audit_event(number).id for number in range(1, 6)]
    assert [entry.link.number for entry in exported if entry.link is not None] == [1, 2, 3, 4, 5]


@pytest.mark.requirement("C5")
async def test_a_round_seals_what_was_written_just_now_and_a_sweep_whatever_was_left(trail: Trail) -> None:
    trail.clock = FixedClock(start=after(100))
    await trail.record(1, 99)
    assert await trail.sealer().execute() == 1
    assert (await trail.report()).unsealed == 1
    assert await trail.sealer().execute() == 0
    assert await trail.sealer().sweep() == 1
    report = await trail.report()
    assert (report.ok, report.sealed_through, report.sealed_late) == (True, 2, 1)


@pytest.mark.requirement("C5")
async def test_what_waits_is_named_with_its_oldest_entry_that_is_not_sealed(trail: Trail) -> None:
    await trail.record(1, 2)
    await trail.sealed()
    await trail.record(5, 4, organization_id=OTHER_ORG)
    seals, key = trail.stores.audit_seals, trail.keys.current().id
    theirs = Waiting(organization_id=OTHER_ORG, since=place(4))
    assert await seals.waiting(place(1), key) == (theirs,)
    assert await seals.waiting(place(5), key) == (replace(theirs, since=place(5)),)
    assert await seals.waiting(place(6), key) == ()
    await trail.record(3)
    ours = Waiting(organization_id=ORG, since=place(3))
    assert set(await seals.waiting(place(2), key)) == {ours, theirs}


@pytest.mark.requirement("C5")
async def test_a_head_under_another_key_waits_though_every_entry_is_sealed(trail: Trail) -> None:
    await trail.record(1)
    await trail.sealed()
    seals, since = trail.stores.audit_seals, place(1)
    assert await seals.waiting(since, GivenSealKeys(OLD).current().id) == ()
    assert await seals.waiting(since, GivenSealKeys(NEW).current().id) == (Waiting(organization_id=ORG, since=since),)


@pytest.mark.requirement("C5")
async def test_a_round_seals_entries_of_slow_transactions_beside_later_ones_of_many_organizations(trail: Trail) -> None:
    trail.clock = FixedClock(start=after(8))
    await trail.record(4, 6)
    await trail.record(7, organization_id=OTHER_ORG)
    assert await trail.sealer(batch=1).execute() == 3
    await trail.record(3, 5, 8)
    await trail.record(2, 9, organization_id=OTHER_ORG)
    trail.clock = FixedClock(start=after(7))
    assert await trail.sealer(batch=1).execute() == 5
    assert [(await trail.report(each)).unsealed for each in (ORG, OTHER_ORG)] == [0, 0]
    assert event_ids(await trail.exported()) == [an_audit_event(number).id for number in (4, 6, 3, 5, 8)]


@pytest.mark.requirement("C5")
async def test_an_entry_that_becomes_visible_after_later_ones_were_sealed_is_sealed_then(trail: Trail) -> None:
    await trail.record(2)
    await trail.sealed()
    await trail.record(1)
    assert await trail.sealed() == 1
    assert event_ids(await trail.exported()) == [an_audit_event(2).id, an_audit_event(1).id]
    assert (await trail.report()).ok


@pytest.mark.requirement("C5")
async def test_an_entry_without_a_seal_is_reported_once_it_has_waited_for_over_ten_seconds(trail: Trail) -> None:
    trail.clock = FixedClock(start=after(11))
    await trail.record(1)
    assert (await trail.report()).ok
    trail.clock = FixedClock(start=after(12))
    report = await trail.report()
    late = BrokenLink(number=None, event_id=an_audit_event(1).id, problem=ChainProblem.UNSEALED)
    assert (report.ok, report.unsealed, report.first_broken) == (False, 1, late)


@pytest.mark.requirement("C5", "C6")
async def test_each_organization_has_its_own_chain(trail: Trail) -> None:
    await trail.record(1, 2)
    await trail.record(11, 12, 13, organization_id=OTHER_ORG)
    await trail.sealed()
    assert [(await trail.report(one)).checked for one in (ORG, OTHER_ORG)] == [2, 3]
    assert event_ids(await trail.exported()) == [an_audit_event(number).id for number in (1, 2)]


@pytest.mark.requirement("C5")
async def test_two_sealers_at_once_make_one_chain(trail: Trail) -> None:
    for start in range(0, 60, 10):
        await trail.record(*range(start, start + 10))
        await asyncio.gather(*(trail.sealer(batch=3).sweep() for _ in range(4)))
    report = await trail.report()
    assert (report.ok, report.checked, report.unsealed) == (True, 60, 0)


@pytest.mark.requirement("C5")
async def test_sealing_goes_on_while_entries_are_written_and_leaves_none_out(trail: Trail) -> None:
    async def write(first: int) -> None:
        for number in range(first, first + 20):
            await trail.record(number)

    async def seal() -> None:
        while (await trail.report()).sealed_through < 40:
            await trail.sealer(batch=5).sweep()

    await asyncio.gather(write(0), write(100), seal(), seal())
    report = await trail.report()
    assert (report.ok, report.checked, report.unsealed) == (True, 40, 0)


@pytest.mark.requirement("C5")
async def test_an_export_keeps_to_its_conditions_and_ends_with_what_is_not_sealed_yet(trail: Trail) -> None:
    entries = [
        an_audit_event(1, action=AuditAction.TOOL_EXECUTED, run_id=RUN, server_id=SERVER, tool="mcp__files__read"),
        an_audit_event(2, action=AuditAction.RUN_STARTED, run_id=RUN),
        an_audit_event(3, action=AuditAction.TOOL_FAILED, details={"error": "ü"}),
    ]
    for entry in entries:
        await trail.stores.audit.record(entry)
    await trail.sealed()
    await trail.stores.audit.record(an_audit_event(4, action=AuditAction.TOOL_BLOCKED))
    exported = await trail.exported(AuditFilter(action="tool.*"))
    numbers = [None if entry.link is None else entry.link.number for entry in exported]
    assert numbers == [1, 3, None]
    assert event_ids(exported) == [an_audit_event(number).id for number in (1, 3, 4)]
    assert event_ids(await trail.exported(AuditFilter(server_id=SERVER))) == [entries[0].id]


@pytest.mark.requirement("C5")
async def test_long_exports_come_in_parts_and_whole(trail: Trail, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("application.audit.export_audit_events.BATCH", 2)
    await trail.record(*range(1, 6))
    await trail.sealed()
    assert event_ids(await trail.exported()) == [an_audit_event(number).id for number in range(1, 6)]


@pytest.mark.requirement("C5")
async def test_after_a_rotation_both_keys_verify_and_without_the_old_one_it_is_named(trail: Trail) -> None:
    await trail.record(1, 2)
    await trail.sealed()
    trail.keys = GivenSealKeys(NEW, OLD)
    assert await trail.sealer().execute() == 0  # nothing to seal, but a head to sign
    await trail.record(3)
    await trail.sealed()
    assert (await trail.report()).ok
    old = GivenSealKeys(OLD).current().id
    trail.keys = GivenSealKeys(NEW)
    report = await trail.report()
    assert (report.ok, report.first_broken, report.checked) == (False, None, 3)
    assert [(unknown.key_id, unknown.links) for unknown in report.unknown_keys] == [(old, 2)]


@pytest.mark.requirement("C5")
async def test_where_the_old_key_is_lost_the_chain_goes_on_and_the_seam_stays_visible(trail: Trail) -> None:
    await trail.record(1)
    await trail.sealed()
    trail.keys = GivenSealKeys(NEW)
    assert [unknown.links for unknown in (await trail.report()).unknown_keys] == [1]
    await trail.record(2)
    assert await trail.sealed() == 1
    report = await trail.report()
    assert (report.ok, report.sealed_through, report.first_broken) == (False, 2, None)
    trail.keys = GivenSealKeys(NEW, OLD)
    assert (await trail.report()).ok


@pytest.mark.requirement("C5", "E7")
async def test_retention_removes_the_beginning_and_leaves_from_where_the_chain_goes_on(trail: Trail) -> None:
    await trail.record(*range(1, 8))
    await trail.sealed()
    assert await trail.prune(6) == 5
    report = await trail.report()
    assert (report.pruned_through, report.checked, report.sealed_through) == (5, 2, 7)
    await trail.sealed()
    report = await trail.report()
    assert report.ok
    kept = await trail.exported()
    assert event_ids(kept)[:2] == [an_audit_event(number).id for number in (6, 7)]
    actions = [exported.entry[2] for exported in kept[2:]]
    assert actions == [AuditAction.AUDIT_PRUNED.value] * 3  # a batch of two, another, and the rest
    assert await trail.prune(6) == 0


@pytest.mark.requirement("C5", "E7")
async def test_what_is_sealed_under_an_unknown_key_is_not_pruned(trail: Trail) -> None:
    """Else naming another key in old links would be enough to have what they seal removed."""
    await trail.record(1, 2)
    await trail.sealed()
    trail.keys = GivenSealKeys(NEW)
    await trail.record(3)
    await trail.sealed()
    with pytest.raises(ServiceError) as refused:
        await trail.prune(100)
    assert refused.value.code == "audit_chain_broken"
    assert len(await trail.exported()) == 3
    trail.keys = GivenSealKeys(NEW, OLD)
    assert await trail.prune(100) == 3


@pytest.mark.requirement("C5", "E7")
async def test_what_is_not_sealed_is_not_pruned(trail: Trail) -> None:
    await trail.record(1, 2)
    assert await trail.prune(100) == 0
    assert (await trail.report()).unsealed == 2


@pytest.mark.requirement("C5")
async def test_a_chain_whose_head_was_signed_by_somebody_else_is_neither_sealed_over_nor_pruned(trail: Trail) -> None:
    """The stranger's key is unknown in the head and known at the last seal, as if the end had been
    cut off."""
    await trail.record(1)
    await trail.sealed()
    stranger = await GivenSealKeys(b"s" * 32, OLD).all()
    await trail.stores.audit_seals.seal(ORG, Place(at=2**60), keys=stranger, at=after(5), limit=1)
    await trail.record(2)
    for act in (_seal, _prune):
        with pytest.raises(ServiceError) as refused:
            await act(trail)
        assert (refused.value.code, refused.value.kind) == ("audit_chain_broken", ErrorKind.CONFLICT)
    assert await trail.sealed() == 0  # a round goes on with the other organizations
    assert not (await trail.report()).ok


async def _seal(trail: Trail) -> None:
    keys = await trail.keys.all()
    await trail.stores.audit_seals.seal(ORG, Place(at=0), keys=keys, at=after(5), limit=1)


async def _prune(trail: Trail) -> None:
    await trail.prune(100)
