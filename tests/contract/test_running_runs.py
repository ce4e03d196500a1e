"""The contract of `RunLeases.claim` with a bound of the runs in progress: exact, whoever claims at
the same time."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from application.runs.ports import ClaimedRun
from domain.audit.event import AuditAction
from domain.ids import AgentId, OrganizationId, RunId, ToolCallId, WorkerId
from domain.runs.called_by import CalledBy
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.engine.postgres.database import PostgresDatabase
from infrastructure.persistence.identity.store import add_organization
from tests.builders import (
    AGENT,
    ORG,
    OTHER_ORG,
    START,
    WORKER,
    a_new_run,
    a_run,
    a_run_id,
    a_thread,
    a_thread_id,
    an_agent,
    an_audit_event,
    an_organization,
    numbered,
)
from tests.contract.run_steps import LEASE_S, claim
from tests.contract.sql_legs import sql_stores
from tests.contract.stores import Stores

OTHER_AGENT = AgentId(numbered("agt", 2))


async def bound_agent(stores: Stores, max_running: int | None) -> None:
    stored = await stores.agents.get(ORG, AGENT)
    assert stored is not None
    changed = replace(stored, version=stored.version + 1, config=replace(stored.config, max_running=max_running))
    entry = an_audit_event(100 + changed.version, action=AuditAction.AGENT_UPDATED)
    await stores.agents.save(changed, expected_version=stored.version, audit=entry)


async def bound_organization(stores: Stores, max_running: int) -> None:
    stored = await stores.organizations.get(ORG)
    assert stored is not None
    changed = replace(stored, version=stored.version + 1, max_running=max_running)
    await stores.organizations.save(changed, expected_version=stored.version, audit=())


async def queued(
    stores: Stores, *numbers: int, organization_id: OrganizationId = ORG, agent_id: AgentId = AGENT
) -> list[RunId]:
    """Runs of these numbers, each on a new thread."""
    for number in numbers:
        thread = a_thread(a_thread_id(100 + number), organization_id=organization_id)
        run = a_run(a_run_id(number), organization_id=organization_id, thread_id=thread.id, agent_id=agent_id)
        await stores.runs.start(a_new_run(run, new_thread=thread))
    return [a_run_id(number) for number in numbers]


async def claimed_of(stores: Stores, run_ids: Sequence[RunId], worker_id: WorkerId = WORKER) -> list[RunId]:
    """Which of the runs could be claimed, all at the same moment."""
    found = await asyncio.gather(
        *(stores.leases.claim(run_id, worker_id, lease_s=LEASE_S, at=START) for run_id in run_ids)
    )
    return [claim.run.id for claim in found if isinstance(claim, ClaimedRun)]


@pytest.mark.requirement("K2")
@pytest.mark.parametrize("whose", ["agent", "organization"])
async def test_no_more_runs_are_claimed_than_may_be_in_progress_and_none_is_lost(
    run_stores: Stores, whose: str
) -> None:
    await (bound_agent if whose == "agent" else bound_organization)(run_stores, 2)
    run_ids = await queued(run_stores, 1, 2, 3, 4, 5)
    first = await claimed_of(run_stores, run_ids)
    assert len(first) == 2
    assert await claimed_of(run_stores, run_ids) == []
    later = START + timedelta(seconds=LEASE_S)
    # The places of a lost worker are free when its leases have expired.
    assert set(await run_stores.leases.recoverable(at=later, limit=10)) == set(run_ids)
    assert len(await claimed_of(run_stores, run_ids)) == 2


@pytest.mark.requirement("K2")
async def test_a_bound_concerns_runs_of_its_organization_and_agent_only(run_stores: Stores) -> None:
    await run_stores.agents.add(
        an_agent(OTHER_AGENT, name="other"), an_audit_event(7, action=AuditAction.AGENT_CREATED)
    )
    third = AgentId(numbered("agt", 3))
    await run_stores.agents.add(
        an_agent(third, organization_id=OTHER_ORG),
        an_audit_event(8, action=AuditAction.AGENT_CREATED, organization_id=OTHER_ORG),
    )
    await bound_agent(run_stores, 1)
    await queued(run_stores, 1, 2)
    await queued(run_stores, 3, 4, agent_id=OTHER_AGENT)
    await queued(run_stores, 5, 6, organization_id=OTHER_ORG, agent_id=third)
    await claim(run_stores, a_run_id(1))
    assert await claimed_of(run_stores, [a_run_id(2)]) == []
    assert len(await claimed_of(run_stores, [a_run_id(3), a_run_id(5)])) == 2
    await bound_organization(run_stores, 2)
    assert await claimed_of(run_stores, [a_run_id(4)]) == []
    assert await claimed_of(run_stores, [a_run_id(6)]) == [a_run_id(6)]
    await bound_agent(run_stores, None)
    assert await claimed_of(run_stores, [a_run_id(2)]) == [], "the organization has its two"


@pytest.mark.requirement("K2")
async def test_a_run_that_another_run_called_has_the_place_of_that_one_and_its_retry_has_none(
    run_stores: Stores,
) -> None:
    await bound_agent(run_stores, 1)
    await queued(run_stores, 1, 2)
    await claim(run_stores, a_run_id(1))
    called = CalledBy(tool_call_id=ToolCallId("call_1"), depth=1, run_id=a_run_id(1)).metadata()
    for number, retry_of in ((3, None), (4, a_run_id(2))):
        thread = a_thread(a_thread_id(100 + number))
        run = replace(a_run(a_run_id(number), thread_id=thread.id, metadata=called), retry_of=retry_of)
        await run_stores.runs.start(a_new_run(run, new_thread=thread))
    assert await claimed_of(run_stores, [a_run_id(2), a_run_id(3), a_run_id(4)]) == [a_run_id(3)]


@pytest.mark.requirement("K2")
async def test_workers_that_claim_at_the_same_moment_do_not_exceed_the_bound_together(
    postgres: tuple[str, Database],
) -> None:
    url, database = postgres
    second = PostgresDatabase(url, connections=2)
    await second.start()
    try:
        one, other = sql_stores(database), sql_stores(second)
        await database.write(lambda connection: add_organization(connection, an_organization()), scope=SYSTEM)
        await one.agents.add(an_agent(), an_audit_event(action=AuditAction.AGENT_CREATED))
        await bound_agent(one, 4)
        run_ids = await queued(one, *range(1, 13))
        found = await asyncio.gather(
            claimed_of(one, run_ids[::2]), claimed_of(other, run_ids[1::2], WorkerId("worker-2"))
        )
    finally:
        await second.stop()
    assert sum(map(len, found)) == 4
