"""The contract of `QueueReader`: the lines of the queue, and runs in progress without events."""

from dataclasses import replace
from datetime import timedelta

import pytest

from domain.audit.event import AuditAction
from domain.ids import AgentId, OrganizationId, RunId
from domain.runs.events import NewEvent, RunEventType
from domain.runs.lane import Lane
from tests.builders import (
    AGENT,
    ORG,
    OTHER_ORG,
    START,
    a_new_run,
    a_run,
    a_run_id,
    a_thread,
    a_thread_id,
    after,
    an_agent,
    an_audit_event,
    numbered,
)
from tests.contract.run_steps import claim
from tests.contract.stores import Stores

OTHERS = AgentId(numbered("agt", 2))


async def waiting(
    stores: Stores, number: int, lane: Lane = Lane.NORMAL, *, owner: OrganizationId = ORG, agent_id: AgentId = AGENT
) -> RunId:
    """A queued run on a new thread, created `number` seconds after the start."""
    thread = a_thread(a_thread_id(100 + number), organization_id=owner)
    run = a_run(
        a_run_id(number), organization_id=owner, thread_id=thread.id, agent_id=agent_id, created_at=after(number)
    )
    await stores.runs.start(a_new_run(replace(run, lane=lane), new_thread=thread))
    return run.id


@pytest.mark.requirement("K8")
async def test_each_line_has_its_queued_and_running_runs_and_the_oldest_that_waits(run_stores: Stores) -> None:
    await run_stores.agents.add(
        an_agent(OTHERS, organization_id=OTHER_ORG),
        an_audit_event(9, action=AuditAction.AGENT_CREATED, organization_id=OTHER_ORG),
    )
    for number in (1, 2, 3):
        await waiting(run_stores, number)
    await waiting(run_stores, 4, Lane.BATCH)
    await waiting(run_stores, 5, owner=OTHER_ORG, agent_id=OTHERS)
    for number in (1, 4):
        await claim(run_stores, a_run_id(number))
    own = await run_stores.queue_lines.lines(ORG)
    found = [(line.agent_id, line.lane, line.queued, line.running, line.oldest_queued_at) for line in own]
    assert found == [(AGENT, Lane.NORMAL, 2, 1, after(2)), (AGENT, Lane.BATCH, 0, 1, None)]
    every = await run_stores.queue_lines.lines(None)
    assert [line.organization_id for line in every if line.queued] == [ORG, OTHER_ORG]


@pytest.mark.requirement("E7", "K2")
async def test_a_long_line_hides_lost_signals_of_no_other_organization_or_agent(run_stores: Stores) -> None:
    own, others = AgentId(numbered("agt", 3)), OTHERS
    created = an_audit_event(8, action=AuditAction.AGENT_CREATED)
    await run_stores.agents.add(an_agent(own, name="own"), created)
    await run_stores.agents.add(
        an_agent(others, organization_id=OTHER_ORG),
        an_audit_event(9, action=AuditAction.AGENT_CREATED, organization_id=OTHER_ORG),
    )
    line = [await waiting(run_stores, number) for number in range(1, 6)]
    of_own = await waiting(run_stores, 7, agent_id=own)
    of_others = [await waiting(run_stores, number, owner=OTHER_ORG, agent_id=others) for number in (8, 9)]
    found = await run_stores.leases.recoverable(at=after(10), limit=4)
    assert found == (line[0], of_others[0], of_own, of_others[1])


@pytest.mark.requirement("K8")
async def test_runs_in_progress_without_a_new_event_are_found_longest_first(run_stores: Stores) -> None:
    first, second, third = [await waiting(run_stores, number) for number in (1, 2, 3)]
    await claim(run_stores, first, at=after(20))
    claimed = await claim(run_stores, second, at=after(10))
    await claim(run_stores, third, at=after(60))
    assert await run_stores.queue_lines.stuck(ORG, since=START, agent_id=None, limit=10) == ()
    stuck = await run_stores.queue_lines.stuck(ORG, since=after(20), agent_id=AGENT, limit=10)
    assert [run.lease.run_id for run in stuck] == [second, first]
    assert stuck[0].lease == claimed.lease
    assert len(await run_stores.queue_lines.stuck(ORG, since=after(60), agent_id=None, limit=2)) == 2
    assert await run_stores.queue_lines.stuck(ORG, since=after(60), agent_id=OTHERS, limit=10) == ()
    assert await run_stores.leases.take_back(stuck[0].lease, seen_seq=stuck[0].last_seq)
    found = await run_stores.queue_lines.stuck(ORG, since=after(60) + timedelta(days=1), agent_id=None, limit=10)
    assert second not in [run.lease.run_id for run in found]


@pytest.mark.requirement("K8")
async def test_a_run_is_taken_back_from_its_worker_unless_it_has_a_newer_event(run_stores: Stores) -> None:
    run_id = await waiting(run_stores, 1)
    claimed = await claim(run_stores, run_id, at=after(20))
    [before] = await run_stores.queue_lines.stuck(ORG, since=after(20), agent_id=None, limit=10)
    delta = NewEvent(type=RunEventType.MESSAGE_DELTA, at=after(90), data={"message_id": "msg_1", "text": "Once"})
    await run_stores.journal.append(claimed.lease, (delta,))
    assert not await run_stores.leases.take_back(before.lease, seen_seq=before.last_seq)
    [newest] = await run_stores.queue_lines.stuck(ORG, since=after(90), agent_id=None, limit=10)
    assert await run_stores.leases.take_back(newest.lease, seen_seq=newest.last_seq)
    assert not await run_stores.leases.take_back(newest.lease, seen_seq=newest.last_seq)
