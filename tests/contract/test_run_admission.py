"""The contract of `RunStore.start` with a bound of the queue: exact, whatever starts at the same
time."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from application.runs.new_run import IdempotencyKey, NewRun, StartedRun
from domain.errors import ServiceError
from domain.ids import AgentId, ApiKeyId
from domain.runs.admission import Admission, UserBound
from domain.runs.change import RunChange
from domain.runs.resuming import resumed_step
from domain.runs.run import MultitaskStrategy
from tests.builders import (
    AGENT,
    ORG,
    OTHER_ORG,
    START,
    a_key,
    a_new_run,
    a_run,
    a_run_id,
    a_thread,
    a_thread_id,
    an_audit_event,
    numbered,
)
from tests.contract.run_steps import claim, start_and_suspend
from tests.contract.stores import Stores
from tests.people_builders import USER

OTHER_AGENT = AgentId(numbered("agt", 2))


def bounded(number: int, admission: Admission, *, agent_id: AgentId = AGENT, of_other: bool = False) -> NewRun:
    """Run `number` on a thread that is new, under these bounds."""
    owner = OTHER_ORG if of_other else ORG
    thread = a_thread(a_thread_id(100 + number), organization_id=owner)
    run = a_run(a_run_id(number), organization_id=owner, thread_id=thread.id, agent_id=agent_id)
    return replace(a_new_run(run, new_thread=thread), admission=admission)


@pytest.mark.requirement("K2")
async def test_no_more_runs_are_queued_than_the_bound_allows_and_a_claim_makes_room(run_stores: Stores) -> None:
    of_two = Admission(organization=2)
    for number in (1, 2):
        await run_stores.runs.start(bounded(number, of_two))
    with pytest.raises(ServiceError) as full:
        await run_stores.runs.start(bounded(3, of_two))
    assert (full.value.code, full.value.extra["position"]) == ("queue_full", "3")
    assert await run_stores.runs.get(ORG, a_run_id(3)) is None
    assert await run_stores.threads.get(ORG, a_thread_id(103)) is None
    await claim(run_stores, a_run_id(1), at=START)
    assert (await run_stores.runs.start(bounded(3, of_two))).created


@pytest.mark.requirement("K2")
async def test_a_run_that_was_begun_and_waits_again_says_nothing_of_how_fast_the_queue_moves(
    run_stores: Stores,
) -> None:
    begun, _ = await start_and_suspend(run_stores)
    later = START + timedelta(days=3)
    await run_stores.runs.change(
        ORG, begun.id, lambda facts: RunChange(run=facts.run, step=resumed_step(facts.run, at=later))
    )
    waiting = bounded(2, Admission())
    await run_stores.runs.start(replace(waiting, run=replace(waiting.run, created_at=later - timedelta(seconds=4))))
    for admission in (Admission(organization=2), Admission(agent=2)):
        refused = bounded(3, admission)
        with pytest.raises(ServiceError) as full:
            await run_stores.runs.start(replace(refused, run=replace(refused.run, created_at=later)))
        assert (full.value.extra["position"], full.value.extra["retry_after_s"]) == ("3", "2")


@pytest.mark.requirement("K2", "E3")
async def test_a_repeated_start_gets_its_run_also_when_the_queue_is_full(run_stores: Stores) -> None:
    key = IdempotencyKey(key="once", body_digest="same")
    first = await run_stores.runs.start(replace(bounded(1, Admission(organization=1)), idempotency=key))
    again = await run_stores.runs.start(replace(bounded(2, Admission(organization=1)), idempotency=key))
    assert (again.run.id, again.created) == (first.run.id, False)


@pytest.mark.requirement("K2")
async def test_bounds_count_runs_of_their_organization_and_agent_only(run_stores: Stores) -> None:
    await run_stores.runs.start(bounded(1, Admission()))
    await run_stores.runs.start(bounded(2, Admission(organization=1), of_other=True))
    await run_stores.runs.start(bounded(3, Admission(agent=1), agent_id=OTHER_AGENT))
    for number, admission in ((4, Admission(agent=1)), (5, Admission(organization=2))):
        with pytest.raises(ServiceError) as full:
            await run_stores.runs.start(bounded(number, admission))
        assert full.value.extra["limited"] == ("agent" if admission.organization is None else "organization")


@pytest.mark.requirement("K2")
async def test_starts_at_the_same_moment_do_not_exceed_the_bound_together(run_stores: Stores) -> None:
    starts = [run_stores.runs.start(bounded(number, Admission(organization=4))) for number in range(1, 13)]
    found = await asyncio.gather(*starts, return_exceptions=True)
    assert len([started for started in found if isinstance(started, StartedRun)]) == 4
    assert {error.code for error in found if isinstance(error, ServiceError)} == {"queue_full"}


def by(number: int, starter: str, most: int | None) -> NewRun:
    """Run `number` that the starter requests, while the user may have so many active runs."""
    admission = Admission() if most is None else Admission(of_user=UserBound(user_id=USER, max_active=most))
    new = bounded(number, admission)
    return replace(new, run=replace(new.run, requested_by=ApiKeyId(starter)))


@pytest.mark.requirement("P2")
async def test_a_user_has_no_more_active_runs_than_the_bound_whoever_they_act_as(run_stores: Stores) -> None:
    await run_stores.runs.start(by(1, USER, 2))
    await claim(run_stores, a_run_id(1), at=START)
    await run_stores.runs.start(by(2, "usr_another", None))
    await run_stores.runs.start(by(3, f"impersonation:usr_another:{USER}", None))
    await run_stores.runs.start(by(4, f"impersonation:{USER}:usr_another", 2))
    with pytest.raises(ServiceError) as full:
        await run_stores.runs.start(by(5, USER, 2))
    assert (full.value.code, full.value.extra["limited"]) == ("user_runs_full", "user")
    assert await run_stores.runs.get(ORG, a_run_id(5)) is None
    assert (await run_stores.runs.start(by(5, USER, 3))).created


@pytest.mark.requirement("P2")
async def test_a_run_that_waits_for_people_is_not_active(run_stores: Stores) -> None:
    waiting, _ = await start_and_suspend(run_stores, a_run(requested_by=ApiKeyId(USER)))
    assert waiting.requested_by == ApiKeyId(USER)
    assert (await run_stores.runs.start(by(2, USER, 1))).created


@pytest.mark.requirement("P2")
@pytest.mark.parametrize("strategy", [MultitaskStrategy.INTERRUPT, MultitaskStrategy.ROLLBACK])
async def test_a_run_that_the_start_stops_takes_no_place_of_its_user(
    run_stores: Stores, strategy: MultitaskStrategy
) -> None:
    first = by(1, USER, 1)
    await run_stores.runs.start(first)
    await claim(run_stores, a_run_id(1), at=START)
    for number in (2, 3):  # The run in progress has not stopped yet at the second start, either.
        instead = replace(by(number, USER, 1), new_thread=None, strategy=strategy)
        instead = replace(instead, run=replace(instead.run, thread_id=first.run.thread_id))
        assert (await run_stores.runs.start(instead)).created
    with pytest.raises(ServiceError) as full:
        await run_stores.runs.start(replace(by(4, USER, 1), strategy=strategy))
    assert full.value.code == "user_runs_full"


@pytest.mark.requirement("P2")
async def test_starts_of_a_user_at_the_same_moment_do_not_exceed_their_bound_together(run_stores: Stores) -> None:
    starts = [run_stores.runs.start(by(number, USER, 4)) for number in range(1, 13)]
    found = await asyncio.gather(*starts, return_exceptions=True)
    assert len([started for started in found if isinstance(started, StartedRun)]) == 4
    assert {error.code for error in found if isinstance(error, ServiceError)} == {"user_runs_full"}


@pytest.mark.requirement("P2")
async def test_runs_with_keys_of_a_user_are_active_runs_of_the_user_where_keys_count(run_stores: Stores) -> None:
    key = replace(a_key(ApiKeyId("key_of_user"), token="dgm_of_user"), person_id=USER)
    await run_stores.identity.add_key(key, an_audit_event(90))
    await run_stores.runs.start(by(1, key.id, None))
    wanted = by(2, USER, None)
    bound = UserBound(user_id=USER, max_active=1, with_keys=True)
    with pytest.raises(ServiceError) as full:
        await run_stores.runs.start(replace(wanted, admission=Admission(of_user=bound)))
    assert full.value.code == "user_runs_full"
    without = replace(bound, with_keys=False)
    assert (await run_stores.runs.start(replace(wanted, admission=Admission(of_user=without)))).created
