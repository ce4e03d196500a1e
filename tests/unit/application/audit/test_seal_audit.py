"""SealAudit: which entries get a seal and when, and that a tampered chain is not sealed over."""

import asyncio
import logging
from dataclasses import replace
from datetime import timedelta

import pytest
from pytest_mock import MockerFixture, MockType

from application.audit.ports import AuditSeals, Place, Sealed, Waiting
from application.audit.seal_audit import FAR, NEAR, SealAudit
from domain.errors import ErrorKind, ServiceError, conflict
from domain.ids import OrganizationId
from tests.builders import ORG, OTHER_ORG, after
from tests.doubles.audit_chain import GivenSealKeys, InMemoryAuditChain
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.refusals import refused, storage_away
from tests.unit.application.audit.trail import KEYS, a_state_with, add_entries

NOW = after(1_000)
JUST_NOW = NOW - timedelta(seconds=1)
BROKEN = conflict("audit_chain_broken", "The audit chain is not as it was left.")
HANG_S = 30.0
"""Far beyond what a step takes: passed only when a task hangs."""


def sealing(seals: AuditSeals, keys: GivenSealKeys = KEYS) -> SealAudit:
    """Seals two entries at a time, at NOW."""
    return SealAudit(seals=seals, keys=keys, clock=FixedClock(NOW), batch=2)


def over(state: InMemoryState) -> SealAudit:
    return sealing(InMemoryAuditChain(state))


def sealed_ids(state: InMemoryState, organization_id: OrganizationId = ORG) -> list[str]:
    return [link.event_id for link in state.audit_links.get(organization_id, [])]


@pytest.fixture
def seals(mocker: MockerFixture) -> MockType:
    """Both organizations have one entry to seal."""
    seals: MockType = mocker.create_autospec(AuditSeals, instance=True)
    seals.waiting.return_value = tuple(Waiting(organization_id=id, since=Place(at=0)) for id in (ORG, OTHER_ORG))
    seals.organizations.return_value = ()
    seals.seal.return_value = Sealed(count=1, last=Place(at=0))
    return seals


@pytest.mark.requirement("C5")
async def test_what_was_just_written_is_sealed_in_order_and_in_batches_for_each_organization() -> None:
    state = a_state_with()
    ours = add_entries(state, *[JUST_NOW] * 5)
    theirs = add_entries(state, JUST_NOW, organization_id=OTHER_ORG)

    assert await over(state).execute() == 6

    assert sealed_ids(state) == [entry.id for entry in ours]
    assert sealed_ids(state, OTHER_ORG) == [entry.id for entry in theirs]


@pytest.mark.requirement("C5")
async def test_an_entry_is_sealed_once() -> None:
    state = a_state_with(JUST_NOW)
    await over(state).execute()

    assert await over(state).execute() == 0
    assert len(sealed_ids(state)) == 1


@pytest.mark.requirement("C5")
@pytest.mark.parametrize(("look_back", "count"), [(NEAR, 1), (FAR, 2)], ids=["near", "far"])
async def test_a_round_looks_back_as_far_as_it_is_told(look_back: timedelta, count: int) -> None:
    state = a_state_with(NOW - timedelta(seconds=30), JUST_NOW)

    assert await over(state).execute(look_back=look_back) == count


@pytest.mark.requirement("C5")
async def test_a_sweep_seals_everything_that_a_crash_has_left_without_a_seal() -> None:
    state = a_state_with(NOW - timedelta(days=400), NOW - timedelta(days=3), JUST_NOW)

    assert await over(state).sweep() == 3


@pytest.mark.requirement("C5")
async def test_a_sweep_of_a_day_leaves_what_is_older() -> None:
    state = a_state_with(NOW - timedelta(days=3), JUST_NOW)

    assert await over(state).sweep(look_back=timedelta(days=1)) == 1


@pytest.mark.requirement("C5")
async def test_a_head_under_a_former_key_is_signed_with_the_current_one() -> None:
    state = a_state_with(JUST_NOW)
    await over(state).execute()
    rotated = GivenSealKeys(b"n" * 32, *KEYS.secrets)

    assert await sealing(InMemoryAuditChain(state), rotated).execute() == 0

    assert state.audit_heads[ORG].key_id == rotated.current().id


@pytest.mark.requirement("C5")
async def test_a_chain_that_was_tampered_with_is_left_alone_and_others_are_sealed() -> None:
    state = a_state_with(JUST_NOW)
    await over(state).execute()
    state.audit_heads[ORG] = forged = replace(state.audit_heads[ORG], signature="forged")
    for organization_id in (ORG, OTHER_ORG):
        add_entries(state, JUST_NOW, organization_id=organization_id)

    assert await over(state).execute() == 1

    assert state.audit_heads[ORG] == forged
    assert len(sealed_ids(state)) == len(sealed_ids(state, OTHER_ORG)) == 1


async def test_a_broken_chain_is_logged_once_not_with_every_round(
    seals: MockType, caplog: pytest.LogCaptureFixture
) -> None:
    seals.seal.side_effect = BROKEN
    seal = sealing(seals)

    for _ in range(3):
        assert await seal.execute() == 0

    errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert errors == [BROKEN.detail] * 2  # one for each organization


async def test_with_nothing_to_seal_no_key_is_read(seals: MockType, mocker: MockerFixture) -> None:
    seals.waiting.return_value = ()
    read = mocker.spy(KEYS, "all")

    assert await sealing(seals).execute() == 0

    read.assert_not_called()
    seals.seal.assert_not_awaited()


async def test_a_database_that_is_away_ends_the_round(seals: MockType) -> None:
    seals.seal.side_effect = storage_away()

    with refused("storage_unavailable"):
        await sealing(seals).execute()

    assert seals.seal.await_count == 1


async def test_a_process_that_stops_seals_a_minute_back_and_survives_a_failure(
    seals: MockType, caplog: pytest.LogCaptureFixture
) -> None:
    state = a_state_with(NOW - timedelta(seconds=59))
    await over(state).finish()
    assert len(sealed_ids(state)) == 1

    seals.waiting.side_effect = storage_away()
    await sealing(seals).finish()

    assert "sealing the audit trail failed" in caplog.text


# --- the periodic task ---


@pytest.mark.requirement("C5")
async def test_who_waits_for_the_first_sweep_waits_until_it_has_ended(seals: MockType) -> None:
    is_sweeping, may_sweep = asyncio.Event(), asyncio.Event()

    async def organizations() -> tuple[OrganizationId, ...]:
        is_sweeping.set()
        await may_sweep.wait()
        return ()

    seals.organizations.side_effect = organizations
    seal = sealing(seals)
    keeping = asyncio.create_task(seal.keep())
    try:
        async with asyncio.timeout(HANG_S):
            await is_sweeping.wait()
            waiting = asyncio.create_task(seal.caught_up())
            await asyncio.sleep(0)
            assert not waiting.done()
            may_sweep.set()
            await waiting
    finally:
        keeping.cancel()
        await asyncio.wait({keeping})


@pytest.mark.parametrize("failure", [storage_away(), ServiceError("broken", ErrorKind.INTERNAL, "Broken.")])
async def test_who_waits_for_the_first_sweep_does_not_wait_for_ever_when_it_fails(
    seals: MockType, failure: ServiceError
) -> None:
    is_failing = asyncio.Event()

    async def organizations() -> tuple[OrganizationId, ...]:
        is_failing.set()
        raise failure

    seals.organizations.side_effect = organizations
    seal = sealing(seals)
    keeping = asyncio.create_task(seal.keep())
    try:
        async with asyncio.timeout(HANG_S):
            await is_failing.wait()
            await seal.caught_up()
        assert not keeping.done()
    finally:
        keeping.cancel()
        await asyncio.wait({keeping})


async def test_where_no_periodic_task_is_at_work_there_is_nothing_to_wait_for(seals: MockType) -> None:
    async with asyncio.timeout(HANG_S):
        await sealing(seals).caught_up()

    seals.organizations.assert_not_awaited()
