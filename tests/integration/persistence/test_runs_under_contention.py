"""Several hands on the same runs at once: what the databases themselves must prevent."""

import asyncio
from dataclasses import replace

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError

from application.runs.new_run import IdempotencyKey
from application.runs.ports import ClaimedRun, LeaseLost
from application.system.pages import PageRequest
from domain.ids import WorkerId
from domain.runs.ledger import ToolCallState
from domain.runs.run import MultitaskStrategy, RunStatus
from domain.runs.run_events import turn_started
from domain.runs.step import Step
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.identity.store import SqlIdentityStore
from tests.builders import (
    KEY,
    ORG,
    OTHER_ORG,
    RUN,
    THREAD,
    WORKER,
    a_deletion,
    a_key,
    a_new_run,
    a_run,
    a_run_id,
    a_settled_call,
    a_tool_call,
    after,
    an_organization,
)
from tests.contract.run_changes import cancel
from tests.contract.run_steps import (
    LEASE_S,
    claim,
    finish_step,
    reply_step,
    run_number,
    settle_step,
    start,
    start_and_claim,
    stored,
    suspend_step,
)
from tests.contract.stores import Stores


@pytest.mark.requirement("E4")
async def test_of_many_workers_that_claim_a_run_one_gets_it(stores: Stores) -> None:
    await start(stores)
    claims = await asyncio.gather(
        *(stores.leases.claim(RUN, WorkerId(f"worker-{n}"), lease_s=LEASE_S, at=after(1)) for n in range(12))
    )
    assert len([claimed for claimed in claims if claimed is not None]) == 1
    run = await stored(stores, RUN)
    assert (run.status, run.attempt, run.epoch) == (RunStatus.IN_PROGRESS, 1, 1)


@pytest.mark.requirement("E5")
async def test_of_many_runs_claimed_on_one_thread_one_is_had(stores: Stores) -> None:
    ids = [a_run_id(number) for number in range(1, 7)]
    for number in range(1, 7):
        await start(stores, run_number(number))
    claims = await asyncio.gather(
        *(stores.leases.claim(run_id, WORKER, lease_s=LEASE_S, at=after(9)) for run_id in ids)
    )
    assert [claimed.run.id for claimed in claims if claimed is not None] == [ids[0]]


@pytest.mark.requirement("E5")
@pytest.mark.parametrize("first", ["in_progress", "requires_action"])
@pytest.mark.parametrize("second", ["in_progress", "requires_action"])
async def test_two_active_runs_on_a_thread_are_impossible_even_by_hand(
    stores: Stores, database: Database, first: str, second: str
) -> None:
    await start(stores, run_number(1))
    await start(stores, run_number(2))
    claimed = await claim(stores, a_run_id(1))
    if first == "requires_action":
        call = a_tool_call(state=ToolCallState.AWAITING_CLIENT)
        await stores.journal.commit(claimed.lease, reply_step(claimed.run, call))
        await stores.journal.commit(claimed.lease, suspend_step(claimed.run, call))

    def activate(connection: Connection) -> None:
        connection.execute(
            text("UPDATE run SET status = :status WHERE id = :id"), {"status": second, "id": a_run_id(2)}
        )

    with pytest.raises(IntegrityError):
        await database.write(activate, scope=SYSTEM)
    assert (await stored(stores, a_run_id(2))).status is RunStatus.QUEUED


@pytest.mark.requirement("E4")
async def test_a_worker_with_an_old_epoch_changes_no_row_at_all(stores: Stores, database: Database) -> None:
    old = await start_and_claim(stores)
    call = a_tool_call()
    await stores.journal.commit(old.lease, reply_step(old.run, call))
    await stores.leases.recoverable(at=after(60), limit=10)
    new = await claim(stores, RUN, worker_id=WorkerId("another"), at=after(61))
    before = await every_row(database)

    attempts = [
        stores.journal.commit(old.lease, settle_step(old.run, a_settled_call(call))),
        stores.journal.commit(old.lease, finish_step(old.run)),
        stores.journal.append(old.lease, (turn_started(2, at=after(62)),)),
    ]
    for attempt in attempts:
        with pytest.raises(LeaseLost):
            await attempt
    assert not await stores.leases.hand_back(old.lease, active_s=1.0, at=after(62))
    assert await stores.leases.renew(WORKER, (old.lease,), lease_s=LEASE_S, at=after(62)) == {RUN}
    assert await stores.journal.cancel_requested_by(old.lease)
    assert await every_row(database) == before
    await stores.journal.commit(new.lease, settle_step(new.run, a_settled_call(call)))


@pytest.mark.requirement("E5")
async def test_of_many_starts_with_one_idempotency_key_one_makes_a_run(stores: Stores) -> None:
    key = IdempotencyKey(key="once", body_digest="sha256:1")
    started = await asyncio.gather(
        *(stores.runs.start(a_new_run(run_number(number), idempotency=key)) for number in range(1, 9))
    )
    assert [one.created for one in started].count(True) == 1
    assert len({one.run.id for one in started}) == 1


@pytest.mark.requirement("E5")
async def test_of_many_interrupting_starts_one_run_is_left_to_go_on(stores: Stores) -> None:
    await asyncio.gather(
        *(start(stores, run_number(number), strategy=MultitaskStrategy.INTERRUPT) for number in range(1, 9))
    )
    runs = [await stored(stores, a_run_id(number)) for number in range(1, 9)]
    assert sorted(run.status for run in runs) == [*["cancelled"] * 7, "queued"]


@pytest.mark.requirement("E5")
async def test_a_run_started_while_another_ends_is_always_rung_for_by_one_of_them(stores: Stores) -> None:
    """Either the ending run names it as promoted, or the start finds the thread free."""
    claimed = await start_and_claim(stores, run_number(1))
    for number in range(2, 14):
        run_id = a_run_id(number)

        async def start_and_try(number: int = number) -> object:
            started = await start(stores, run_number(number))
            return await stores.leases.claim(started.run.id, WORKER, lease_s=LEASE_S, at=after(number))

        ended, next_claim = await asyncio.gather(
            stores.journal.commit(claimed.lease, finish_step(claimed.run)), start_and_try()
        )
        assert ended.promoted in {None, run_id}
        if next_claim is None:
            assert ended.promoted == run_id
            next_claim = await claim(stores, run_id, at=after(number))
        assert isinstance(next_claim, ClaimedRun)
        claimed = next_claim


@pytest.mark.requirement("E2")
async def test_events_of_a_run_written_at_once_are_numbered_without_gaps(stores: Stores) -> None:
    claimed = await start_and_claim(stores)
    before = claimed.run.last_seq
    await asyncio.gather(
        *(stores.journal.append(claimed.lease, (turn_started(n, at=after(n)),) * (n % 3 + 1)) for n in range(1, 31)),
        *(stores.journal.commit(claimed.lease, Step(run=replace(claimed.run, active_s=float(n)))) for n in range(5)),
    )
    events = await stores.runs.events(ORG, RUN, after_seq=0, limit=1000)
    assert [event.seq for event in events] == list(range(1, before + 60 + 1))
    assert (await stored(stores, RUN)).last_seq == before + 60


@pytest.mark.requirement("E5")
async def test_cancelling_and_ending_a_run_at_once_ends_it_once(stores: Stores) -> None:
    for number in range(1, 9):
        claimed = await start_and_claim(stores, run_number(number))
        outcome, _ = await asyncio.gather(
            cancel(stores.runs, ORG, a_run_id(number), actor=KEY, at=after(number)),
            stores.journal.commit(claimed.lease, finish_step(claimed.run)),
        )
        assert outcome is not None
        events = await stores.runs.events(ORG, a_run_id(number), after_seq=0, limit=100)
        assert [event.type for event in events][-1] == "run.completed"
        assert (await stored(stores, a_run_id(number))).status is RunStatus.COMPLETED


@pytest.mark.requirement("E4")
async def test_a_lapsed_run_is_put_back_by_one_of_several_sweeps(stores: Stores) -> None:
    await start_and_claim(stores)
    sweeps = await asyncio.gather(*(stores.leases.recoverable(at=after(60), limit=10) for _ in range(4)))
    assert RUN in {run_id for found in sweeps for run_id in found}
    run = await stored(stores, RUN)
    assert (run.status, run.epoch) == (RunStatus.QUEUED, 2)


async def test_of_many_first_starts_one_makes_the_first_organization(database: Database) -> None:
    def forget(connection: Connection) -> None:
        connection.execute(text("DELETE FROM organization"))

    await database.write(forget, scope=SYSTEM)
    identity = SqlIdentityStore(database=database)
    made = await asyncio.gather(
        *(
            identity.bootstrap(an_organization(organization_id), a_key(organization_id=organization_id))
            for organization_id in (ORG, OTHER_ORG) * 3
        )
    )
    assert made.count(True) == 1
    keys = [await identity.keys(organization_id, PageRequest()) for organization_id in (ORG, OTHER_ORG)]
    assert sum(len(page.items) for page in keys) == 1


async def test_a_thread_deleted_while_a_run_starts_takes_the_run_along_or_stays_whole(stores: Stores) -> None:
    deleted, started = await asyncio.gather(
        stores.threads.delete(ORG, THREAD, a_deletion()), start(stores, a_run()), return_exceptions=True
    )
    thread = await stores.threads.get(ORG, THREAD)
    run = await stores.runs.get(ORG, RUN)
    assert (thread is None) == (run is None) == (deleted is True) == isinstance(started, Exception)


async def every_row(database: Database) -> list[list[tuple[object, ...]]]:
    """The whole content of the tables that belong to runs."""
    tables = ("run", "run_request", "run_event", "message", "tool_call", "audit_event", "idempotency_key")

    def unit(connection: Connection) -> list[list[tuple[object, ...]]]:
        return [
            sorted((tuple(row) for row in connection.execute(text(f"SELECT * FROM {table}"))), key=repr)
            for table in tables
        ]

    return await database.read(unit, scope=SYSTEM)
