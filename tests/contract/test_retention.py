"""The contracts of `RetentionStore` and `SweepLock`."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import cast

import pytest

from application.retention.ports import Removed, SweepLock, ThreadPlace
from application.runs.new_run import IdempotencyKey
from domain.approvals.approval import ApprovalState
from domain.errors import ServiceError
from domain.ids import OrganizationId, RunId, SourceId, ThreadId, ToolCallId
from domain.runs.events import NewEvent, RunEventType
from domain.runs.run import RunStatus
from domain.runs.turn_end import turn_end
from domain.sources.source import Source, SourceKind
from domain.threads.thread import Quarantine
from infrastructure.jobs.sweep_lock import InProcessSweepLock
from infrastructure.mcp.oauth.grants import OAuthClient, PendingAuthorization
from infrastructure.persistence.engine.postgres.sweep_lock import PostgresSweepLock
from tests.approval_builders import awaiting_approval_call
from tests.builders import (
    KEY,
    ORG,
    OTHER_ORG,
    RUN,
    SERVER,
    START,
    THREAD,
    a_displayable_call,
    a_message,
    a_run,
    a_run_id,
    a_server,
    a_thread,
    a_thread_id,
    a_tool_call,
    after,
    an_audit_event,
    numbered,
)
from tests.contract.paging import all_of
from tests.contract.run_changes import cancel, messages_of
from tests.contract.run_steps import claim, finish_step, reply_step, run_number, start, start_and_claim, stored
from tests.contract.stores import Stores
from tests.databases import PostgresDatabases

BEFORE = after(1_000)
"""Everything of before may go."""
LATER = after(1_500)


async def a_finished_run(
    stores: Stores, number: int = 1, *, at: datetime = START, thread_id: ThreadId = THREAD
) -> RunId:
    claimed = await start_and_claim(stores, run_number(number, thread_id=thread_id))
    await stores.journal.commit(claimed.lease, finish_step(claimed.run, at=at))
    return claimed.run.id


async def a_source(stores: Stores, *, thread_id: ThreadId = THREAD, at: datetime = START, number: int = 1) -> Source:
    source = Source(
        id=SourceId(numbered("src", number)),
        organization_id=ORG,
        thread_id=thread_id,
        name="notes.txt",
        kind=SourceKind.TEXT,
        size=3,
        digest="ab" * 32,
        created_at=at,
    )
    await stores.source_intake.begin(source, stale_before=after(-3_600))
    for position in range(10):
        await stores.source_intake.put_part(source, position, b"abc")
    await stores.source_intake.finish(source, an_audit_event(50 + number))
    return source


async def idle(stores: Stores, organization_id: OrganizationId = ORG) -> tuple[ThreadId, ...]:
    return (await stores.retention.idle_threads(organization_id, BEFORE, after=None, limit=100)).found


async def removed(stores: Stores, thread_id: ThreadId = THREAD) -> Removed:
    """Everything, step by step."""
    total = Removed(more=True)
    while total.more:
        total += await stores.retention.remove(ORG, thread_id, BEFORE)
    return total


# --- which threads are idle ---


@pytest.mark.requirement("E7")
async def test_a_thread_is_idle_when_all_that_happened_on_it_is_old(run_stores: Stores) -> None:
    await run_stores.threads.append(ORG, a_message())
    await a_source(run_stores)
    await a_finished_run(run_stores)
    assert await idle(run_stores) == (THREAD,)
    assert await idle(run_stores, OTHER_ORG) == ()


async def _a_message_later(stores: Stores) -> None:
    await stores.threads.append(ORG, a_message(created_at=BEFORE))


async def _a_source_later(stores: Stores) -> None:
    await a_source(stores, at=BEFORE)


async def _a_run_later(stores: Stores) -> None:
    run = a_run(created_at=BEFORE)
    await start(stores, run)
    await cancel(stores.runs, ORG, run.id, actor=KEY, at=BEFORE)


async def _a_run_that_ends_later(stores: Stores) -> None:
    await a_finished_run(stores, at=BEFORE)


async def _a_queued_run(stores: Stores) -> None:
    await start(stores)


async def _a_run_in_progress(stores: Stores) -> None:
    await start_and_claim(stores)


async def _a_halted_run(stores: Stores) -> None:
    claimed = await start_and_claim(stores)
    halted = finish_step(claimed.run, RunStatus.HALTED)
    await stores.journal.commit(
        claimed.lease, replace(halted, quarantine=Quarantine(run_id=RUN, canary_id="c1", at=START))
    )


ACTIVITY = [
    _a_message_later,
    _a_source_later,
    _a_run_later,
    _a_run_that_ends_later,
    _a_queued_run,
    _a_run_in_progress,
    _a_halted_run,
]


@pytest.mark.requirement("E7")
@pytest.mark.parametrize("happens", ACTIVITY, ids=lambda happens: happens.__name__.strip("_"))
async def test_a_thread_that_is_not_idle_is_neither_found_nor_removed(
    run_stores: Stores, happens: Callable[[Stores], Awaitable[None]]
) -> None:
    await run_stores.threads.append(ORG, a_message(7))
    await happens(run_stores)
    messages = await all_of(partial(run_stores.threads.messages, ORG, THREAD))

    assert await idle(run_stores) == ()
    assert await run_stores.retention.remove(ORG, THREAD, BEFORE) == Removed()

    assert await run_stores.threads.get(ORG, THREAD) is not None
    assert await all_of(partial(run_stores.threads.messages, ORG, THREAD)) == messages


async def test_a_thread_made_at_that_moment_is_kept(stores: Stores) -> None:
    await stores.threads.add(a_thread(created_at=BEFORE))
    assert await idle(stores) == ()
    assert await stores.retention.remove(ORG, THREAD, BEFORE) == Removed()
    assert await stores.threads.get(ORG, THREAD) is not None


async def test_threads_are_looked_through_oldest_first_in_stretches_that_active_ones_count_in(stores: Stores) -> None:
    for number in (3, 1, 2, 5, 4):
        await stores.threads.add(a_thread(a_thread_id(number), created_at=after(number // 2)))
    await stores.threads.append(ORG, a_message(thread_id=a_thread_id(2), created_at=LATER))
    stretches: list[tuple[ThreadId, ...]] = []
    place: ThreadPlace | None = None
    while True:
        stretch = await stores.retention.idle_threads(ORG, BEFORE, after=place, limit=2)
        stretches.append(stretch.found)
        place = stretch.next
        if place is None:
            break
    assert stretches == [(a_thread_id(1),), (a_thread_id(3), a_thread_id(4)), (a_thread_id(5),)]


# --- removing them ---


@pytest.mark.requirement("E7")
async def test_an_idle_thread_goes_with_all_that_is_in_it(run_stores: Stores) -> None:
    await run_stores.threads.append(ORG, a_message())
    source = await a_source(run_stores)
    claimed = await start_and_claim(run_stores, run_number(1))
    await run_stores.journal.commit(claimed.lease, reply_step(claimed.run, a_displayable_call()))
    await run_stores.journal.commit(claimed.lease, finish_step(claimed.run))
    second = await a_finished_run(run_stores, 2)
    await run_stores.threads.add(a_thread(a_thread_id(2)))
    other_run = await a_finished_run(run_stores, 3, thread_id=a_thread_id(2))

    assert await removed(run_stores) == Removed(threads=1, runs=2, messages=4, sources=1)

    assert await run_stores.threads.get(ORG, THREAD) is None
    assert await all_of(partial(run_stores.threads.messages, ORG, THREAD)) == ()
    assert await run_stores.sources.get(ORG, source.id) is None
    for run_id in (RUN, second):
        assert await run_stores.runs.get(ORG, run_id) is None
        assert await run_stores.runs.events(ORG, run_id, after_seq=0, limit=9) == ()
        assert await run_stores.runs.tool_calls(ORG, run_id) == ()
    assert (await stored(run_stores, other_run)).status is RunStatus.COMPLETED
    assert await removed(run_stores) == Removed()


@pytest.mark.requirement("E7")
async def test_approvals_and_idempotency_keys_go_with_their_run(run_stores: Stores) -> None:
    key = IdempotencyKey(key="once", body_digest="sha256:1")
    await start(run_stores, idempotency=key)
    claimed = await claim(run_stores, RUN)
    call = awaiting_approval_call(a_tool_call(), ttl_s=60)
    reply = reply_step(claimed.run, call)
    await run_stores.journal.commit(claimed.lease, reply)
    end = turn_end(reply.run, (call,), list(reply.messages), at=START)
    assert end is not None
    await run_stores.journal.commit(claimed.lease, end)
    await cancel(run_stores.runs, ORG, RUN, actor=KEY, at=START)
    (approval,) = await run_stores.approvals.of_run(ORG, RUN)
    assert approval.state is not ApprovalState.PENDING

    assert (await removed(run_stores)).runs == 1

    assert await run_stores.approvals.get(ORG, approval.id) is None
    assert await run_stores.timers.next_due() is None
    assert await run_stores.retention.forget_idempotency_keys(ORG, LATER, limit=9) == 0


async def test_long_runs_and_long_conversations_go_whole(run_stores: Stores) -> None:
    for number in range(1, 252):
        await run_stores.threads.append(ORG, a_message(number))
    claimed = await start_and_claim(run_stores)
    told = tuple(
        NewEvent(type=RunEventType.TOOL_PROGRESS, at=START, data={"tool_call_id": ToolCallId("call_1"), "progress": n})
        for n in range(2_500)
    )
    await run_stores.journal.commit(claimed.lease, replace(reply_step(claimed.run), events=told))
    await run_stores.journal.commit(claimed.lease, finish_step(claimed.run))
    assert await removed(run_stores) == Removed(threads=1, runs=1, messages=253)
    assert await run_stores.threads.get(ORG, THREAD) is None


@pytest.mark.requirement("E7")
async def test_a_thread_that_somebody_returns_to_between_two_steps_stays_as_it_is_then(run_stores: Stores) -> None:
    await a_finished_run(run_stores, 1)
    second = await a_finished_run(run_stores, 2)
    step = await run_stores.retention.remove(ORG, THREAD, BEFORE)
    assert step == Removed(runs=1, messages=1, more=True)

    again = run_number(3)
    await start(run_stores, again)

    assert await run_stores.retention.remove(ORG, THREAD, BEFORE) == Removed()
    assert await run_stores.runs.get(ORG, RUN) is None
    assert len(await messages_of(run_stores.runs, ORG, second)) == 1
    assert (await claim(run_stores, again.id)).run.id == again.id


@pytest.mark.requirement("C6")
async def test_another_organization_removes_nothing(run_stores: Stores) -> None:
    await a_finished_run(run_stores)
    assert await run_stores.retention.remove(OTHER_ORG, THREAD, BEFORE) == Removed()
    assert (await stored(run_stores, RUN)).id == RUN


# --- what expires by itself ---


@pytest.mark.requirement("E7")
async def test_idempotency_keys_are_forgotten_by_age_in_batches_and_per_organization(run_stores: Stores) -> None:
    for number in range(1, 5):
        thread_id = a_thread_id(10 + number)
        await run_stores.threads.add(a_thread(thread_id))
        key = IdempotencyKey(key=f"key {number}", body_digest="sha256:1")
        await start(run_stores, run_number(number, thread_id=thread_id), idempotency=key)
    forget = run_stores.retention.forget_idempotency_keys
    assert await forget(OTHER_ORG, LATER, limit=9) == 0
    assert await forget(ORG, after(3), limit=2) == 2
    assert await forget(ORG, after(3), limit=2) == 1
    assert await forget(ORG, after(3), limit=2) == 0
    assert (await stored(run_stores, a_run_id(1))).status is RunStatus.QUEUED
    with pytest.raises(ServiceError) as refused:
        await start(run_stores, run_number(9), idempotency=IdempotencyKey(key="key 4", body_digest="sha256:another"))
    assert refused.value.code == "idempotency_key_reused"


@pytest.mark.requirement("E7")
async def test_authorizations_that_nobody_came_back_from_are_forgotten_once_they_have_expired(stores: Stores) -> None:
    await stores.servers.add(a_server(), an_audit_event())
    for number in range(1, 5):
        await stores.oauth.expect(f"hash {number}", an_authorization(expires_at=after(number)), START)
    assert await stores.retention.forget_authorizations(after(4), limit=2) == 2
    assert await stores.retention.forget_authorizations(after(4), limit=2) == 1
    assert await stores.retention.forget_authorizations(after(4), limit=2) == 0
    assert await stores.oauth.take("hash 3") is None
    assert await stores.oauth.take("hash 4") is not None


def an_authorization(*, expires_at: datetime) -> PendingAuthorization:
    return PendingAuthorization(
        organization_id=ORG,
        server_id=SERVER,
        key_id=KEY,
        expires_at=expires_at,
        binding="b1",
        issuer="https://auth.example.org",
        issuer_in_answer=True,
        resource="https://mcp.example.org/mcp",
        scope=None,
        token_endpoint="https://auth.example.org/token",
        client=OAuthClient(client_id="c1", auth_method="none"),
        redirect_uri="https://here/back",
        verifier="verifier",
    )


# --- whose turn it is ---


@pytest.fixture(params=["in process", "postgres"])
def locks(request: pytest.FixtureRequest) -> Iterator[tuple[SweepLock, SweepLock]]:
    """The lock as two who want to sweep have it."""
    if request.param == "in process":
        lock = InProcessSweepLock()
        yield lock, lock
        return
    databases = cast(PostgresDatabases, request.getfixturevalue("postgres_databases"))
    with databases.fresh() as url:
        yield PostgresSweepLock(url), PostgresSweepLock(url)


async def test_one_sweeps_at_a_time_and_then_another_may(locks: tuple[SweepLock, SweepLock]) -> None:
    one, other = locks
    async with one.taken() as ours:
        async with other.taken() as theirs:
            assert (ours, theirs) == (True, False)
        async with other.taken() as theirs:
            assert not theirs
    async with other.taken() as theirs:
        assert theirs


async def test_the_turn_ends_with_a_sweep_that_fails(locks: tuple[SweepLock, SweepLock]) -> None:
    one, other = locks
    with pytest.raises(LookupError):
        async with one.taken():
            raise LookupError
    async with other.taken() as theirs:
        assert theirs


async def test_a_database_that_is_away_is_unavailable() -> None:
    with pytest.raises(ServiceError) as raised:
        async with PostgresSweepLock("postgresql://nobody@127.0.0.1:1/nothing").taken():
            pass
    assert raised.value.code == "storage_unavailable"
