"""The contract of `UnfinishedRuns`."""

from dataclasses import replace

import pytest

from application.runs.unfinished_runs import UnfinishedFilter
from domain.audit.event import AuditAction
from domain.identity.impersonation import as_others
from domain.ids import AgentId, ApiKeyId, RunId, ThreadId
from tests.builders import (
    AGENT,
    KEY,
    ORG,
    OTHER_ORG,
    RUN,
    SERVER,
    a_run_id,
    a_settled_call,
    a_thread,
    a_thread_id,
    a_tool_call,
    an_agent,
    an_audit_event,
    numbered,
)
from tests.contract.run_steps import claim, finish_step, reply_step, run_number, settle_step, start
from tests.contract.stores import Stores

ALL = UnfinishedFilter()
OTHER_AGENT = AgentId(numbered("agt", 2))


async def on_its_own_thread(
    stores: Stores, number: int, *, agent_id: AgentId = AGENT, requested_by: ApiKeyId | None = None
) -> RunId:
    """A queued run of ORG on a thread of its own."""
    thread_id = ThreadId(a_thread_id(100 + number))
    await stores.threads.add(a_thread(thread_id))
    run = replace(run_number(number), thread_id=thread_id, agent_id=agent_id, requested_by=requested_by)
    await start(stores, run)
    return run.id


async def found(stores: Stores, wanted: UnfinishedFilter) -> list[RunId]:
    return list(await stores.unfinished_runs.batch(ORG, wanted, before=None, limit=100))


@pytest.mark.requirement("C7")
async def test_runs_that_have_not_ended_come_newest_first_a_batch_at_a_time(run_stores: Stores) -> None:
    ids = [await on_its_own_thread(run_stores, number) for number in (1, 2, 3, 4)]
    ended = await claim(run_stores, ids[1])
    reply = reply_step(ended.run, text="Done.")
    await run_stores.journal.commit(ended.lease, reply)
    await run_stores.journal.commit(ended.lease, finish_step(reply.run))
    await claim(run_stores, ids[0])

    first = await run_stores.unfinished_runs.batch(ORG, ALL, before=None, limit=2)
    rest = await run_stores.unfinished_runs.batch(ORG, ALL, before=first[-1], limit=2)
    assert (first, rest) == ((ids[3], ids[2]), (ids[0],))
    assert await run_stores.unfinished_runs.batch(ORG, ALL, before=ids[0], limit=2) == ()


@pytest.mark.requirement("C6", "C7")
async def test_nothing_of_another_organization_is_found(run_stores: Stores) -> None:
    await on_its_own_thread(run_stores, 1)
    for wanted in (ALL, UnfinishedFilter(agent_ids=frozenset({AGENT})), UnfinishedFilter(server_id=SERVER)):
        assert await run_stores.unfinished_runs.batch(OTHER_ORG, wanted, before=None, limit=10) == ()


async def test_runs_of_some_agents_are_found_and_of_no_agents_none(run_stores: Stores) -> None:
    created = an_audit_event(5, action=AuditAction.AGENT_CREATED)
    await run_stores.agents.add(an_agent(OTHER_AGENT, name="other"), created)
    mine = await on_its_own_thread(run_stores, 1)
    other = await on_its_own_thread(run_stores, 2, agent_id=OTHER_AGENT)
    assert await found(run_stores, UnfinishedFilter(agent_ids=frozenset({AGENT}))) == [mine]
    assert await found(run_stores, UnfinishedFilter(agent_ids=frozenset({AGENT, OTHER_AGENT}))) == [other, mine]
    assert await found(run_stores, UnfinishedFilter(agent_ids=frozenset())) == []


@pytest.mark.requirement("C6")
async def test_runs_that_a_key_started_are_found(run_stores: Stores) -> None:
    mine = await on_its_own_thread(run_stores, 1, requested_by=KEY)
    await on_its_own_thread(run_stores, 2, requested_by=ApiKeyId("key_other"))
    await on_its_own_thread(run_stores, 3, requested_by=None)
    assert await found(run_stores, UnfinishedFilter(requested_by=KEY)) == [mine]


@pytest.mark.requirement("C6", "P7")
async def test_runs_that_a_key_started_acting_as_others_are_found_with_its_own(run_stores: Stores) -> None:
    mine = await on_its_own_thread(run_stores, 1, requested_by=KEY)
    as_bob = await on_its_own_thread(run_stores, 2, requested_by=ApiKeyId(f"{as_others(KEY)}usr_bob"))
    await on_its_own_thread(run_stores, 3, requested_by=ApiKeyId(f"{as_others(ApiKeyId(f'{KEY}2'))}usr_bob"))
    assert await found(run_stores, UnfinishedFilter(requested_by=KEY)) == [as_bob, mine]


@pytest.mark.requirement("C7")
async def test_a_run_that_calls_a_server_is_found_until_the_call_is_settled(run_stores: Stores) -> None:
    await start(run_stores)
    await on_its_own_thread(run_stores, 7)
    claimed = await claim(run_stores, RUN)
    call = a_tool_call(server_id=SERVER)
    wanted = UnfinishedFilter(agent_ids=frozenset(), server_id=SERVER)
    assert await found(run_stores, wanted) == []
    reply = reply_step(claimed.run, call)
    await run_stores.journal.commit(claimed.lease, reply)
    assert await found(run_stores, wanted) == [RUN]
    await run_stores.journal.commit(claimed.lease, settle_step(reply.run, a_settled_call(call)))
    assert await found(run_stores, wanted) == []
    assert a_run_id(7) in await found(run_stores, ALL)
