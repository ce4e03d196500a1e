"""Sums of usage by day, and reservations against daily budgets."""

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

import pytest

from application.runs.ports import ClaimedRun, LeaseLost
from application.system.pages import PageRequest
from application.usage.ports import Reservation, UsageFilter
from domain.errors import ServiceError
from domain.identity.api_key import person_of
from domain.identity.impersonation import as_others
from domain.ids import AgentId, ApiKeyId, UserId
from domain.runs.run import RunStatus
from domain.runs.usage import ModelSpending, ModelUsage
from domain.usage.daily_usage import UsageKey, UsageSum
from tests.builders import AGENT, ORG, OTHER_ORG, START, a_key, a_thread, a_thread_id, an_audit_event
from tests.contract.run_steps import finish_step, reply_step, run_number, start_and_claim, start_and_suspend
from tests.contract.stores import Stores

TODAY = START.date()
SPENT = ModelUsage(input_tokens=100, output_tokens=20, cached_tokens=40, cost_usd=Decimal("0.003000001"))


def spending(model: str = "openai:a", *, days: int = 0, usage: ModelUsage = SPENT) -> ModelSpending:
    return ModelSpending(model=model, usage=usage, at=START + timedelta(days=days))


async def a_claimed_run(stores: Stores, number: int = 1) -> ClaimedRun:
    """Each on a thread of its own, so that all can be in progress."""
    thread_id = a_thread_id(10 + number)
    await stores.threads.add(a_thread(thread_id))
    return await start_and_claim(stores, run_number(number, thread_id=thread_id))


async def spend(stores: Stores, claimed: ClaimedRun, *spent: ModelSpending) -> None:
    await stores.journal.commit(claimed.lease, replace(reply_step(claimed.run), spent=spent))


def wants(amount: str, *, organization: str | None = "1", agent: str | None = None, day: date = TODAY) -> Reservation:
    return Reservation(
        agent_id=AGENT,
        day=day,
        amount_usd=Decimal(amount),
        organization_budget_usd=None if organization is None else Decimal(organization),
        agent_budget_usd=None if agent is None else Decimal(agent),
    )


async def sums(stores: Stores, wanted: UsageFilter | None = None) -> tuple[UsageSum, ...]:
    return (await stores.usage.page(ORG, wanted or UsageFilter(), PageRequest())).items


@pytest.mark.requirement("A10")
async def test_what_is_spent_is_summed_by_day_agent_and_model(run_stores: Stores) -> None:
    claimed = await a_claimed_run(run_stores)
    unpriced = ModelUsage(input_tokens=1)
    await spend(run_stores, claimed, spending(), spending(), spending("openai:b", usage=unpriced), spending(days=-1))
    today, other, yesterday = await sums(run_stores)
    assert today == UsageSum(
        day=TODAY,
        agent_id=AGENT,
        model="openai:a",
        model_calls=2,
        input_tokens=200,
        output_tokens=40,
        cached_tokens=80,
        reasoning_tokens=0,
        cost_usd=Decimal("0.006000002"),
        unpriced_calls=0,
        estimated_calls=0,
    )
    assert (other.model, other.cost_usd, other.unpriced_calls) == ("openai:b", Decimal(0), 1)
    assert (yesterday.day, yesterday.model_calls) == (TODAY - timedelta(days=1), 1)


@pytest.mark.requirement("H1", "H6", "A10")
async def test_reasoning_and_calls_with_estimated_tokens_are_summed(run_stores: Stores) -> None:
    claimed = await a_claimed_run(run_stores)
    reasoned = ModelUsage(output_tokens=50, reasoning_tokens=40)
    estimated = ModelUsage(input_tokens=7, output_tokens=3, estimated=True)
    await spend(run_stores, claimed, spending(usage=reasoned), spending(usage=reasoned), spending(usage=estimated))
    [today] = await sums(run_stores)
    assert (today.output_tokens, today.reasoning_tokens) == (103, 80)
    assert (today.model_calls, today.estimated_calls) == (3, 1)


@pytest.mark.requirement("A10")
async def test_sums_leave_out_what_is_not_asked_for(run_stores: Stores) -> None:
    claimed = await a_claimed_run(run_stores)
    await spend(run_stores, claimed, spending(), spending("openai:b"), spending(days=-1))
    [everything] = await sums(run_stores, UsageFilter(by=frozenset()))
    assert (everything.day, everything.agent_id, everything.model, everything.model_calls) == (None, None, None, 3)
    by_day = await sums(run_stores, UsageFilter(by=frozenset({UsageKey.DAY})))
    assert [(entry.day, entry.model_calls) for entry in by_day] == [(TODAY, 2), (TODAY - timedelta(days=1), 1)]
    by_model = await sums(run_stores, UsageFilter(by=frozenset({UsageKey.MODEL})))
    assert [(entry.model, entry.model_calls) for entry in by_model] == [("openai:a", 2), ("openai:b", 1)]


@pytest.mark.requirement("A10")
async def test_sums_are_of_the_days_agent_and_model_asked_for(run_stores: Stores) -> None:
    claimed = await a_claimed_run(run_stores)
    await spend(run_stores, claimed, *(spending(days=-days) for days in range(4)), spending("openai:b"))
    middle = UsageFilter(since=TODAY - timedelta(days=2), until=TODAY - timedelta(days=1))
    assert [entry.day for entry in await sums(run_stores, middle)] == [middle.until, middle.since]
    assert [entry.model for entry in await sums(run_stores, UsageFilter(model="openai:b"))] == ["openai:b"]
    assert len(await sums(run_stores, UsageFilter(agent_id=AGENT))) == 5
    assert await sums(run_stores, UsageFilter(agent_id=AgentId("agt_other"))) == ()


@pytest.mark.requirement("A10", "U6")
async def test_what_is_spent_is_summed_by_who_started_the_runs(run_stores: Stores) -> None:
    for number, starter in enumerate(("usr_ada", "key_bob", "usr_ada"), start=1):
        thread_id = a_thread_id(10 + number)
        await run_stores.threads.add(a_thread(thread_id))
        run = replace(run_number(number, thread_id=thread_id), requested_by=ApiKeyId(starter))
        await spend(run_stores, await start_and_claim(run_stores, run), spending(), spending(days=-number))
    by_person = UsageFilter(by=frozenset({UsageKey.PERSON}))
    [bob, ada] = await sums(run_stores, by_person)
    assert [(each.started_by, each.model_calls, each.cost_usd) for each in (bob, ada)] == [
        ("key_bob", 2, 2 * Decimal("0.003000001")),
        ("usr_ada", 4, 4 * Decimal("0.003000001")),
    ]
    adas = await sums(run_stores, UsageFilter(started_by="usr_ada", since=TODAY))
    assert [(each.day, each.started_by, each.model_calls) for each in adas] == [(TODAY, None, 2)]
    by_day = replace(by_person, by=frozenset({UsageKey.DAY, UsageKey.PERSON}))
    first = await run_stores.usage.page(ORG, by_day, PageRequest(limit=1))
    rest = await run_stores.usage.page(ORG, by_day, PageRequest(cursor=first.next_cursor))
    found = [(each.day, each.started_by) for each in (*first.items, *rest.items)]
    assert found[:2] == [(TODAY, "key_bob"), (TODAY, "usr_ada")]
    assert len(found) == 5


@pytest.mark.requirement("A10")
async def test_without_usage_there_are_no_sums(run_stores: Stores) -> None:
    assert await sums(run_stores) == ()
    assert await sums(run_stores, UsageFilter(by=frozenset())) == ()


async def test_sums_are_paged_without_gaps_or_repetition(run_stores: Stores) -> None:
    claimed = await a_claimed_run(run_stores)
    spent = [spending(f"openai:{name}", days=-days) for days in range(3) for name in "abc"]
    await spend(run_stores, claimed, *spent)
    found: list[UsageSum] = []
    cursor: str | None = None
    while True:
        page = await run_stores.usage.page(ORG, UsageFilter(), PageRequest(limit=2, cursor=cursor))
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            break
    assert found == list(await sums(run_stores))
    assert len(found) == 9
    with pytest.raises(ServiceError) as raised:
        await run_stores.usage.page(ORG, UsageFilter(), PageRequest(cursor="nonsense"))
    assert raised.value.code == "cursor_invalid"


@pytest.mark.requirement("C6")
async def test_usage_of_another_organization_is_not_summed(run_stores: Stores) -> None:
    claimed = await a_claimed_run(run_stores)
    await spend(run_stores, claimed, spending())
    assert (await run_stores.usage.page(OTHER_ORG, UsageFilter(), PageRequest())).items == ()


@pytest.mark.requirement("A7")
async def test_runs_side_by_side_cannot_reserve_more_than_the_budget(run_stores: Stores) -> None:
    first, second = await a_claimed_run(run_stores, 1), await a_claimed_run(run_stores, 2)
    assert await run_stores.reservations.reserve(first.lease, wants("0.6"))
    assert not await run_stores.reservations.reserve(second.lease, wants("0.6"))
    assert await run_stores.reservations.reserve(second.lease, wants("0.4"))
    assert await run_stores.reservations.reserve(first.lease, wants("0.5")), "its own reservation is replaced"


@pytest.mark.requirement("A7")
async def test_what_was_spent_today_counts_and_what_is_kept_stays_reserved(run_stores: Stores) -> None:
    first, second = await a_claimed_run(run_stores, 1), await a_claimed_run(run_stores, 2)
    assert await run_stores.reservations.reserve(first.lease, wants("0.9"))
    usage = ModelUsage(cost_usd=Decimal("0.5"))
    await spend(run_stores, first, ModelSpending(model="m:m", usage=usage, at=START, still_reserved_usd=Decimal("0.1")))
    assert not await run_stores.reservations.reserve(second.lease, wants("0.41"))
    assert await run_stores.reservations.reserve(second.lease, wants("0.4"))
    assert await run_stores.reservations.reserve(second.lease, wants("0.9", day=TODAY + timedelta(days=1)))


@pytest.mark.requirement("A7")
async def test_the_budget_of_the_agent_holds_beside_that_of_the_organization(run_stores: Stores) -> None:
    claimed = await a_claimed_run(run_stores)
    assert not await run_stores.reservations.reserve(claimed.lease, wants("0.3", agent="0.2"))
    assert not await run_stores.reservations.reserve(claimed.lease, wants("0.3", organization="0.2", agent="5"))
    assert await run_stores.reservations.reserve(claimed.lease, wants("0.3", organization=None, agent="0.3"))


@pytest.mark.requirement("A7")
async def test_ended_and_waiting_runs_hold_nothing_back(run_stores: Stores) -> None:
    ended, waiting, third = [await a_claimed_run(run_stores, number) for number in (1, 2, 3)]
    assert await run_stores.reservations.reserve(ended.lease, wants("0.5"))
    assert await run_stores.reservations.reserve(waiting.lease, wants("0.5"))
    assert not await run_stores.reservations.reserve(third.lease, wants("0.1"))
    await run_stores.journal.commit(ended.lease, finish_step(ended.run, RunStatus.FAILED))
    assert await run_stores.reservations.reserve(third.lease, wants("0.5"))
    assert not await run_stores.reservations.reserve(third.lease, wants("0.6"))


@pytest.mark.requirement("A7")
async def test_a_run_that_waits_for_its_client_reserves_nothing(run_stores: Stores) -> None:
    waiting, _ = await start_and_suspend(run_stores)
    claimed = await a_claimed_run(run_stores, 2)
    assert await run_stores.reservations.reserve(claimed.lease, wants("1"))
    assert waiting.status is RunStatus.REQUIRES_ACTION


@pytest.mark.requirement("E4")
async def test_a_former_worker_reserves_nothing(run_stores: Stores) -> None:
    claimed = await a_claimed_run(run_stores)
    await run_stores.leases.hand_back(claimed.lease, active_s=0, at=START)
    with pytest.raises(LeaseLost):
        await run_stores.reservations.reserve(claimed.lease, wants("0.1"))


@pytest.mark.requirement("P2")
async def test_runs_of_one_user_reserve_within_the_budget_of_the_user_together(run_stores: Stores) -> None:
    claimed = []
    for number, starter in enumerate(("usr_ann", "usr_ann", "usr_bob")):
        thread_id = a_thread_id(10 + number)
        await run_stores.threads.add(a_thread(thread_id))
        run = replace(run_number(number, thread_id=thread_id), requested_by=ApiKeyId(starter))
        claimed.append(await start_and_claim(run_stores, run))
    first, second, bobs = claimed

    def of_user(amount: str, claimed: ClaimedRun, *, day: date = TODAY) -> Reservation:
        user_id = person_of(claimed.run.requested_by)
        return replace(wants(amount, organization=None, day=day), user_id=user_id, user_budget_usd=Decimal(1))

    reserve = run_stores.reservations.reserve
    assert await reserve(first.lease, of_user("0.6", first))
    assert not await reserve(second.lease, of_user("0.5", second))
    assert await reserve(bobs.lease, of_user("1", bobs)), "another user has another budget"
    usage = replace(SPENT, cost_usd=Decimal("0.5"))
    await spend(run_stores, first, ModelSpending(model="m:m", usage=usage, at=START, still_reserved_usd=Decimal("0.1")))
    assert not await reserve(second.lease, of_user("0.41", second))
    assert await reserve(second.lease, of_user("0.4", second))
    assert not await reserve(first.lease, of_user("0.11", first)), "what the second reserved is taken"
    assert not await reserve(second.lease, replace(of_user("0.2", second), organization_budget_usd=Decimal("1.5")))
    assert await reserve(second.lease, of_user("0.9", second, day=TODAY + timedelta(days=1)))


@pytest.mark.requirement("P2", "P7")
async def test_runs_that_a_user_starts_acting_as_others_are_within_the_same_budget(run_stores: Stores) -> None:
    ann = ApiKeyId("usr_ann")
    starters = (
        ann,
        f"{as_others(ann)}usr_bob",
        f"{as_others(ann)}usr_cleo",
        f"{as_others(ApiKeyId('usr-ann'))}usr_bob",
    )
    claimed = []
    for number, starter in enumerate(starters):
        thread_id = a_thread_id(10 + number)
        await run_stores.threads.add(a_thread(thread_id))
        run = replace(run_number(number, thread_id=thread_id), requested_by=ApiKeyId(starter))
        claimed.append(await start_and_claim(run_stores, run))
    own, as_bob, as_cleo, of_another = claimed

    def of_user(amount: str, user: ApiKeyId = ann) -> Reservation:
        return replace(wants(amount, organization=None), user_id=UserId(user), user_budget_usd=Decimal(1))

    reserve = run_stores.reservations.reserve
    assert await reserve(of_another.lease, of_user("1", ApiKeyId("usr-ann")))
    assert await reserve(as_bob.lease, of_user("0.6"))
    usage = replace(SPENT, cost_usd=Decimal("0.5"))
    spent = ModelSpending(model="m:m", usage=usage, at=START, still_reserved_usd=Decimal("0.1"))
    await spend(run_stores, as_bob, spent)
    assert not await reserve(as_cleo.lease, of_user("0.41"))
    assert await reserve(as_cleo.lease, of_user("0.3"))
    assert not await reserve(own.lease, of_user("0.11"))
    assert await reserve(own.lease, of_user("0.1"))


@pytest.mark.requirement("P2")
async def test_runs_with_keys_of_a_user_are_within_the_users_budget_where_keys_count(run_stores: Stores) -> None:
    ann, key = UserId("usr_ann"), ApiKeyId("key_of_ann")
    await run_stores.identity.add_key(replace(a_key(key, token="dgm_of_ann"), person_id=ann), an_audit_event(90))
    others = replace(a_key(ApiKeyId("key_of_bob"), token="dgm_of_bob"), person_id=UserId("usr_bob"))
    await run_stores.identity.add_key(others, an_audit_event(91))
    claimed = []
    for number, starter in enumerate((key, others.id, ApiKeyId(ann))):
        thread_id = a_thread_id(10 + number)
        await run_stores.threads.add(a_thread(thread_id))
        run = replace(run_number(number, thread_id=thread_id), requested_by=starter)
        claimed.append(await start_and_claim(run_stores, run))
    with_key, of_another, own = claimed

    def of_user(amount: str, *, with_keys: bool = True, user: UserId = ann) -> Reservation:
        of_nobody = wants(amount, organization=None)
        return replace(of_nobody, user_id=user, with_keys=with_keys, user_budget_usd=Decimal(1))

    reserve = run_stores.reservations.reserve
    assert await reserve(of_another.lease, of_user("1", user=UserId("usr_bob")))
    assert await reserve(with_key.lease, of_user("0.6"))
    usage = replace(SPENT, cost_usd=Decimal("0.5"))
    spent = ModelSpending(model="m:m", usage=usage, at=START, still_reserved_usd=Decimal("0.1"))
    await spend(run_stores, with_key, spent)
    assert not await reserve(own.lease, of_user("0.41"))
    assert await reserve(own.lease, of_user("0.4"))
    assert await reserve(own.lease, of_user("1", with_keys=False))
