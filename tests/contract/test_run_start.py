"""The contract of `RunStore.start`: what a new run does to its thread."""

from dataclasses import replace
from functools import partial

import pytest

from application.audit.ports import AuditFilter
from application.runs.new_run import IdempotencyKey
from application.system.pages import PageRequest
from domain.errors import ErrorKind, ServiceError
from domain.runs.closing import DISPLAYED
from domain.runs.ledger import ToolCallState
from domain.runs.model_settings import Effort, ModelSettings
from domain.runs.run import MultitaskStrategy, RunStatus
from domain.threads.message import Role
from domain.tools.result import ToolOutcome
from tests.builders import (
    AGENT,
    KEY,
    ORG,
    OTHER_ORG,
    RUN,
    THREAD,
    WORKER,
    a_displayable_call,
    a_new_run,
    a_run,
    a_run_id,
    a_settled_call,
    a_thread,
    a_thread_id,
    a_tool_call,
    after,
)
from tests.contract.paging import all_of
from tests.contract.run_changes import messages_of, resume
from tests.contract.run_steps import (
    LEASE_S,
    claim,
    finish_step,
    reply_step,
    run_number,
    settle_step,
    start,
    start_and_claim,
    start_and_suspend,
    stored,
    suspend_step,
)
from tests.contract.stores import Stores
from tests.refusals import refused

ONCE = IdempotencyKey(key="once", body_digest="sha256:1")
UNFINISHED = ["queued", "in_progress", "requires_action"]
REJECT, INTERRUPT, ROLLBACK = MultitaskStrategy.REJECT, MultitaskStrategy.INTERRUPT, MultitaskStrategy.ROLLBACK


async def event_types(stores: Stores, number: int = 1) -> list[str]:
    events = await stores.runs.events(ORG, a_run_id(number), after_seq=0, limit=100)
    return [event.type.value for event in events]


async def start_and_await_approval(stores: Stores) -> None:
    """Run 1 waits for a call that is executed here, so no message of the client can settle it."""
    claimed = await start_and_claim(stores, run_number(1))
    call = a_tool_call(run_id=RUN, state=ToolCallState.AWAITING_CLIENT)
    await stores.journal.commit(claimed.lease, reply_step(claimed.run, call))
    await stores.journal.commit(claimed.lease, suspend_step(claimed.run, call))


async def an_unfinished_run(stores: Stores, state: str) -> None:
    match state:
        case "queued":
            await start(stores, run_number(1))
        case "in_progress":
            await start_and_claim(stores, run_number(1))
        case _:
            await start_and_await_approval(stores)


@pytest.mark.requirement("A1", "E2")
async def test_a_started_run_is_queued_with_its_first_event(run_stores: Stores) -> None:
    started = await start(run_stores)
    assert started.created
    assert started.interrupted == ()
    assert started.run.status is RunStatus.QUEUED
    assert await stored(run_stores, RUN) == started.run
    (event,) = await run_stores.runs.events(ORG, RUN, after_seq=0, limit=100)
    assert (event.run_id, event.seq, event.type.value) == (RUN, 1, "run.queued")
    assert event.data == {"thread_id": THREAD, "agent_id": AGENT}
    assert started.run.last_seq == 1
    assert await messages_of(run_stores.runs, ORG, RUN) == ()


@pytest.mark.requirement("H3")
async def test_settings_of_a_run_are_read_back_as_they_were(run_stores: Stores) -> None:
    settings = ModelSettings(effort=Effort.LOW, stop=("END",), extra_body={"top_k": [1, {"a": None}]})
    run = replace(a_run(), model_settings=settings)
    await run_stores.runs.start(a_new_run(run))
    assert (await stored(run_stores, RUN)).model_settings == settings


@pytest.mark.requirement("A1")
async def test_a_run_may_bring_its_thread(run_stores: Stores) -> None:
    thread = a_thread(a_thread_id(2), metadata={"a": 1})
    await run_stores.runs.start(a_new_run(a_run(thread_id=thread.id), new_thread=thread))
    assert await run_stores.threads.get(ORG, thread.id) == thread
    assert (await claim(run_stores, RUN)).run.thread_id == thread.id


async def test_a_run_on_an_unknown_thread_is_refused(run_stores: Stores) -> None:
    with pytest.raises(ServiceError) as refused:
        await start(run_stores, a_run(thread_id=a_thread_id(2)))
    assert (refused.value.code, refused.value.kind) == ("thread_not_found", ErrorKind.NOT_FOUND)
    assert await run_stores.runs.get(ORG, RUN) is None


@pytest.mark.requirement("C6")
async def test_a_run_on_another_organizations_thread_is_refused(run_stores: Stores) -> None:
    with pytest.raises(ServiceError) as refused:
        await start(run_stores, a_run(organization_id=OTHER_ORG))
    assert (refused.value.code, refused.value.kind) == ("thread_not_found", ErrorKind.NOT_FOUND)


@pytest.mark.requirement("E5")
async def test_the_same_key_and_body_give_the_same_run_as_it_stands_now(run_stores: Stores) -> None:
    await start(run_stores, idempotency=ONCE)
    await claim(run_stores, RUN)
    again = await run_stores.runs.start(
        a_new_run(
            run_number(2),
            new_thread=a_thread(a_thread_id(2)),
            strategy=REJECT,
            idempotency=ONCE,
        )
    )
    assert not again.created
    assert again.run == await stored(run_stores, RUN)
    assert again.run.status is RunStatus.IN_PROGRESS
    assert await run_stores.runs.get(ORG, a_run_id(2)) is None
    assert await run_stores.threads.get(ORG, a_thread_id(2)) is None


@pytest.mark.requirement("E5")
async def test_the_same_key_with_another_body_is_refused(run_stores: Stores) -> None:
    await start(run_stores, idempotency=ONCE)
    with pytest.raises(ServiceError) as refused:
        await start(run_stores, run_number(2), idempotency=IdempotencyKey(key="once", body_digest="sha256:2"))
    assert (refused.value.code, refused.value.kind) == ("idempotency_key_reused", ErrorKind.INVALID)
    assert await run_stores.runs.get(ORG, a_run_id(2)) is None


@pytest.mark.requirement("E5", "C6")
async def test_the_run_of_a_key_is_found_for_a_day_by_the_same_body_and_organization(run_stores: Stores) -> None:
    runs = run_stores.runs
    assert await runs.started_before(ORG, ONCE, at=after(0)) is None
    await start(run_stores, a_run(created_at=after(0)), idempotency=ONCE)
    await claim(run_stores, RUN)
    assert await runs.started_before(ORG, ONCE, at=after(24 * 3600 - 1)) == await stored(run_stores, RUN)
    assert await runs.started_before(ORG, ONCE, at=after(24 * 3600)) is None
    assert await runs.started_before(OTHER_ORG, ONCE, at=after(1)) is None


@pytest.mark.requirement("E5", "C6")
async def test_the_same_key_of_another_organization_is_another_key(run_stores: Stores) -> None:
    await start(run_stores, idempotency=ONCE)
    await run_stores.threads.add(a_thread(a_thread_id(2), organization_id=OTHER_ORG))
    theirs = a_run(a_run_id(2), organization_id=OTHER_ORG, thread_id=a_thread_id(2))
    started = await start(run_stores, theirs, idempotency=IdempotencyKey(key="once", body_digest="sha256:2"))
    assert started.created


@pytest.mark.requirement("E5")
@pytest.mark.parametrize(("age_s", "created"), [(24 * 3600 - 1, False), (24 * 3600, True)])
async def test_a_key_is_free_again_after_a_day(run_stores: Stores, age_s: float, created: bool) -> None:
    await start(run_stores, a_run(created_at=after(0)), idempotency=ONCE)
    later = a_run(a_run_id(2), created_at=after(age_s))
    assert (await start(run_stores, later, idempotency=ONCE)).created is created
    again = a_run(a_run_id(3), created_at=after(age_s + 1))
    repeated = await start(run_stores, again, idempotency=ONCE)
    assert repeated.run.id == (a_run_id(2) if created else a_run_id(3))


@pytest.mark.requirement("E5")
async def test_a_refused_start_does_not_use_up_its_key(run_stores: Stores) -> None:
    await start(run_stores, run_number(1))
    with pytest.raises(ServiceError):
        await start(run_stores, run_number(2), strategy=REJECT, idempotency=ONCE)
    assert (await start(run_stores, run_number(3), idempotency=ONCE)).created


@pytest.mark.requirement("E5")
@pytest.mark.parametrize("state", UNFINISHED)
async def test_reject_refuses_a_second_run_naming_the_unfinished_one(run_stores: Stores, state: str) -> None:
    await an_unfinished_run(run_stores, state)
    before = await stored(run_stores, RUN)
    with pytest.raises(ServiceError) as refused:
        await start(run_stores, run_number(2), strategy=REJECT)
    assert (refused.value.code, refused.value.kind) == ("thread_busy", ErrorKind.CONFLICT)
    assert refused.value.extra == {"run_id": RUN}
    assert await run_stores.runs.get(ORG, a_run_id(2)) is None
    assert await stored(run_stores, RUN) == before


@pytest.mark.requirement("E5")
async def test_reject_takes_a_run_where_all_former_ones_have_ended(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores, run_number(1))
    await run_stores.journal.commit(claimed.lease, finish_step(claimed.run))
    assert (await start(run_stores, run_number(2), strategy=REJECT)).created


@pytest.mark.requirement("E5")
@pytest.mark.parametrize("state", UNFINISHED)
async def test_enqueue_leaves_the_unfinished_run_alone_and_waits(run_stores: Stores, state: str) -> None:
    await an_unfinished_run(run_stores, state)
    before = await stored(run_stores, RUN)
    started = await start(run_stores, run_number(2))
    assert started.interrupted == ()
    assert await stored(run_stores, RUN) == before
    assert await run_stores.leases.claim(a_run_id(2), WORKER, lease_s=LEASE_S, at=after(9)) is None


@pytest.mark.requirement("E5")
@pytest.mark.parametrize("strategy", [INTERRUPT, ROLLBACK])
@pytest.mark.parametrize("state", ["queued", "requires_action"])
async def test_interrupt_and_rollback_cancel_at_once_what_nobody_executes(
    run_stores: Stores, strategy: MultitaskStrategy, state: str
) -> None:
    await an_unfinished_run(run_stores, state)
    new = a_run(a_run_id(2), requested_by=KEY, created_at=after(7))
    started = await start(run_stores, new, strategy=strategy)
    assert started.interrupted == (RUN,)
    old = await stored(run_stores, RUN)
    assert started.ended == (old,)
    assert (old.status, old.finished_at, old.pending) == (RunStatus.CANCELLED, after(7), ())
    assert (await event_types(run_stores))[-1] == "run.cancelled"
    (entry,) = (await run_stores.audit.page(ORG, AuditFilter(action="run.cancelled"), PageRequest())).items
    assert (entry.actor, entry.resource) == (KEY, RUN)
    assert (await claim(run_stores, a_run_id(2))).run.id == a_run_id(2)


@pytest.mark.requirement("E5", "A12")
@pytest.mark.parametrize("strategy", [INTERRUPT, ROLLBACK])
async def test_interrupt_and_rollback_ask_a_run_in_progress_to_stop_and_wait_for_it(
    run_stores: Stores, strategy: MultitaskStrategy
) -> None:
    claimed = await start_and_claim(run_stores, run_number(1))
    started = await start(run_stores, run_number(2), strategy=strategy)

    assert started.interrupted == (RUN,)
    assert (await stored(run_stores, RUN)).status is RunStatus.IN_PROGRESS
    assert await run_stores.journal.cancel_requested_by(claimed.lease)
    assert await run_stores.leases.claim(a_run_id(2), WORKER, lease_s=LEASE_S, at=after(9)) is None
    outcome = await run_stores.journal.commit(claimed.lease, finish_step(claimed.run))
    assert outcome.promoted == a_run_id(2)
    await claim(run_stores, a_run_id(2))


@pytest.mark.requirement("E5", "C6")
@pytest.mark.parametrize("strategy", [INTERRUPT, ROLLBACK])
async def test_a_start_that_may_not_stop_the_runs_of_others_changes_nothing(
    run_stores: Stores, strategy: MultitaskStrategy
) -> None:
    await start(run_stores, run_number(1))
    before = await stored(run_stores, RUN)
    new = a_run(a_run_id(2), requested_by=KEY, created_at=after(7))
    with refused("run_not_yours"):
        await run_stores.runs.start(a_new_run(new, strategy=strategy, may_stop_any=False))
    assert await stored(run_stores, RUN) == before
    assert await run_stores.runs.get(ORG, new.id) is None


@pytest.mark.requirement("E5")
async def test_interrupt_stops_everything_before_it(run_stores: Stores) -> None:
    await start_and_claim(run_stores, run_number(1))
    await start(run_stores, run_number(2))
    await start(run_stores, run_number(3))
    started = await start(run_stores, run_number(4), strategy=INTERRUPT)
    assert set(started.interrupted) == {a_run_id(1), a_run_id(2), a_run_id(3)}
    statuses = [(await stored(run_stores, a_run_id(number))).status.value for number in (1, 2, 3, 4)]
    assert statuses == ["in_progress", "cancelled", "cancelled", "queued"]


@pytest.mark.requirement("E5")
async def test_an_interrupted_runs_messages_stay_in_the_transcript(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores, run_number(1))
    await start(run_stores, run_number(2), strategy=INTERRUPT)
    await run_stores.journal.commit(claimed.lease, finish_step(claimed.run))
    second = await claim(run_stores, a_run_id(2))
    assert [message.run_id for message in second.transcript] == [a_run_id(1), a_run_id(2)]


@pytest.mark.requirement("E5")
@pytest.mark.parametrize("status", [RunStatus.COMPLETED, RunStatus.FAILED])
async def test_a_rolled_back_runs_messages_are_superseded_once_it_has_ended_and_none_is_deleted(
    run_stores: Stores, status: RunStatus
) -> None:
    claimed = await start_and_claim(run_stores, run_number(1))
    await run_stores.journal.commit(claimed.lease, reply_step(claimed.run))
    await start(run_stores, run_number(2), strategy=ROLLBACK)
    listed = partial(run_stores.threads.messages, ORG, THREAD)
    assert len(await all_of(listed)) == 2

    await run_stores.journal.commit(claimed.lease, finish_step(claimed.run, status))

    assert await all_of(listed) == ()
    assert [message.role for message in await messages_of(run_stores.runs, ORG, RUN)] == [Role.USER, Role.ASSISTANT]
    second = await claim(run_stores, a_run_id(2))
    assert [message.run_id for message in second.transcript] == [a_run_id(2)]
    assert await all_of(listed) == second.transcript


@pytest.mark.requirement("E5")
async def test_a_rollback_still_counts_when_an_interrupt_comes_after_it(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores, run_number(1))
    await start(run_stores, run_number(2), strategy=ROLLBACK)
    await start(run_stores, run_number(3), strategy=INTERRUPT)
    await run_stores.journal.commit(claimed.lease, finish_step(claimed.run))
    assert await all_of(partial(run_stores.threads.messages, ORG, THREAD)) == ()


@pytest.mark.requirement("E5")
async def test_a_waiting_run_is_rolled_back_at_once(run_stores: Stores) -> None:
    await start_and_await_approval(run_stores)
    await start(run_stores, run_number(2), strategy=ROLLBACK)
    assert await all_of(partial(run_stores.threads.messages, ORG, THREAD)) == ()


@pytest.mark.requirement("D5")
@pytest.mark.parametrize("strategy", list(MultitaskStrategy))
async def test_the_next_message_completes_a_run_whose_calls_were_only_displayed_whatever_the_strategy(
    run_stores: Stores, strategy: MultitaskStrategy
) -> None:
    waiting, calls = await start_and_suspend(run_stores, run_number(1), count=2)

    started = await start(run_stores, a_run(a_run_id(2), created_at=after(7)), strategy=strategy)

    run = await stored(run_stores, RUN)
    assert (started.created, started.interrupted, started.ended) == (True, (), (run,))
    assert (run.status, run.output, run.pending, run.finished_at) == (
        RunStatus.COMPLETED,
        waiting.output,
        (),
        after(7),
    )
    answer = (await messages_of(run_stores.runs, ORG, RUN))[-1]
    assert [(result.tool_id, result.result) for result in answer.tool_results] == [
        (call.id, DISPLAYED) for call in calls
    ]
    assert (await event_types(run_stores))[-4:] == [
        "tool.executed",
        "tool.executed",
        "message.completed",
        "run.completed",
    ]
    second = await claim(run_stores, a_run_id(2))
    assert [message.role for message in second.transcript] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.USER]


@pytest.mark.requirement("D5")
async def test_what_the_client_and_the_siblings_settled_before_stays_as_they_settled_it(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores, run_number(1))
    done, settled_by_client, displayed = a_tool_call(0), a_displayable_call(1), a_displayable_call(2)
    step = reply_step(claimed.run, done, settled_by_client, displayed)
    await run_stores.journal.commit(claimed.lease, step)
    await run_stores.journal.commit(claimed.lease, settle_step(claimed.run, a_settled_call(done)))
    await run_stores.journal.commit(claimed.lease, suspend_step(claimed.run, settled_by_client, displayed))
    await resume(run_stores.runs, ORG, RUN, (a_settled_call(settled_by_client),), actor=KEY, at=after(5))

    await start(run_stores, run_number(2))

    answer = (await messages_of(run_stores.runs, ORG, RUN))[-1]
    assert [result.result for result in answer.tool_results] == ["done", "done", DISPLAYED]
    calls = await run_stores.runs.tool_calls(ORG, RUN)
    assert all(call.result is not None and call.result.outcome is ToolOutcome.SUCCEEDED for call in calls)


@pytest.mark.requirement("D5")
async def test_reject_minds_the_message_that_completed_the_waiting_run(run_stores: Stores) -> None:
    await start_and_suspend(run_stores, run_number(1))
    await start(run_stores, run_number(2))
    with pytest.raises(ServiceError) as refused:
        await start(run_stores, run_number(3), strategy=REJECT)
    assert refused.value.extra == {"run_id": a_run_id(2)}
