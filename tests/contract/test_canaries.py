"""What every store does about canary tokens: agents keep them, and a halted run closes its thread
until it is released."""

from dataclasses import replace

import pytest

from application.runs.ports import ClaimedRun
from domain.audit.event import AuditAction
from domain.errors import ServiceError
from domain.policy.canary import CanaryToken
from domain.runs.run import RunStatus
from domain.threads.thread import Quarantine
from tests.builders import (
    AGENT,
    ORG,
    OTHER_ORG,
    RUN,
    THREAD,
    WORKER,
    a_deletion,
    a_message,
    a_new_run,
    a_run,
    a_run_id,
    after,
    an_agent,
    an_audit_event,
)
from tests.contract.run_changes import cancel
from tests.contract.run_steps import LEASE_S, claim, finish_step, run_number, start, start_and_claim
from tests.contract.stores import Stores

RELEASED = an_audit_event(90, action=AuditAction.THREAD_RELEASED, resource=THREAD)
QUARANTINE = Quarantine(run_id=RUN, canary_id="vault", at=after(5))


async def halt(stores: Stores, claimed: ClaimedRun) -> None:
    step = replace(finish_step(claimed.run, RunStatus.HALTED), quarantine=QUARANTINE)
    assert (await stores.journal.commit(claimed.lease, step)).promoted is None


@pytest.mark.requirement("C4")
async def test_an_agents_canary_tokens_are_read_back_version_by_version(stores: Stores) -> None:
    tokens = (CanaryToken(id="a", secret="Nachtigall-ß7"), CanaryToken(id="b", secret="key", per_run=True))
    agent = an_agent(canary_tokens=tokens)
    await stores.agents.add(agent, an_audit_event(1, action=AuditAction.AGENT_CREATED, resource=AGENT))
    changed = replace(agent, version=2, config=replace(agent.config, canary_tokens=tokens[:1]))
    await stores.agents.save(
        changed, expected_version=1, audit=an_audit_event(2, action=AuditAction.AGENT_UPDATED, resource=AGENT)
    )
    read = await stores.agents.get(ORG, AGENT)
    assert read is not None
    assert read.config.canary_tokens == tokens[:1]
    assert "Nachtigall" not in repr(read)


@pytest.mark.requirement("C4")
async def test_a_claim_brings_the_tokens_of_the_agent(run_stores: Stores) -> None:
    agent = await run_stores.agents.get(ORG, AGENT)
    assert agent is not None
    token = CanaryToken(id="a", secret="Nightingale-4471")
    changed = replace(agent, version=2, config=replace(agent.config, canary_tokens=(token,)))
    await run_stores.agents.save(
        changed, expected_version=1, audit=an_audit_event(2, action=AuditAction.AGENT_UPDATED, resource=AGENT)
    )
    claimed = await start_and_claim(run_stores)
    assert claimed.agent.config.canary_tokens == (token,)


@pytest.mark.requirement("C4")
async def test_the_step_that_halts_a_run_puts_its_thread_in_quarantine(run_stores: Stores) -> None:
    await halt(run_stores, await start_and_claim(run_stores))
    thread = await run_stores.threads.get(ORG, THREAD)
    assert thread is not None
    assert thread.quarantine == QUARANTINE


@pytest.mark.requirement("C4", "C6", "U6")
async def test_threads_in_quarantine_are_listed_until_their_release(run_stores: Stores) -> None:
    assert await run_stores.threads.quarantined(ORG, 10) == ()
    await halt(run_stores, await start_and_claim(run_stores))
    thread = await run_stores.threads.get(ORG, THREAD)
    assert await run_stores.threads.quarantined(ORG, 10) == (thread,)
    assert await run_stores.threads.quarantined(ORG, 0) == ()
    assert await run_stores.threads.quarantined(OTHER_ORG, 10) == ()
    await run_stores.threads.release(ORG, THREAD, RELEASED)
    assert await run_stores.threads.quarantined(ORG, 10) == ()


@pytest.mark.requirement("C4")
async def test_a_thread_in_quarantine_takes_no_run_no_message_and_no_deletion(run_stores: Stores) -> None:
    await halt(run_stores, await start_and_claim(run_stores))
    for refused in (
        run_stores.runs.start(a_new_run(a_run(a_run_id(2), created_at=after(2)))),
        run_stores.threads.append(ORG, a_message(run_id=None)),
        run_stores.threads.delete(ORG, THREAD, a_deletion()),
    ):
        with pytest.raises(ServiceError) as raised:
            await refused
        assert raised.value.code == "thread_quarantined"
        assert raised.value.extra == {"run_id": RUN}


@pytest.mark.requirement("C4")
async def test_a_run_queued_behind_a_quarantine_is_claimable_only_after_the_release(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores)
    waiting = run_number(2)
    await start(run_stores, waiting)
    await halt(run_stores, claimed)
    assert await run_stores.leases.claim(waiting.id, WORKER, lease_s=LEASE_S, at=after(6)) is None
    assert await run_stores.leases.recoverable(at=after(100), limit=10) == ()

    released = await run_stores.threads.release(ORG, THREAD, RELEASED)
    assert released is not None
    assert (released.thread.quarantine, released.promoted) == (None, waiting.id)
    assert await run_stores.leases.recoverable(at=after(100), limit=10) == (waiting.id,)
    assert (await claim(run_stores, waiting.id)).run.status is RunStatus.IN_PROGRESS


@pytest.mark.requirement("C4")
async def test_a_queued_run_behind_a_quarantine_can_be_cancelled(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores)
    waiting = run_number(2)
    await start(run_stores, waiting)
    await halt(run_stores, claimed)
    outcome = await cancel(run_stores.runs, ORG, waiting.id, actor="key_1", at=after(7))
    assert outcome is not None
    assert (outcome.run.status, outcome.promoted) == (RunStatus.CANCELLED, None)


@pytest.mark.requirement("C4", "C6")
async def test_only_a_thread_in_quarantine_can_be_released_and_by_its_own_organization(run_stores: Stores) -> None:
    with pytest.raises(ServiceError) as raised:
        await run_stores.threads.release(ORG, THREAD, RELEASED)
    assert raised.value.code == "thread_not_quarantined"
    await halt(run_stores, await start_and_claim(run_stores))
    assert await run_stores.threads.release(OTHER_ORG, THREAD, RELEASED) is None
    thread = await run_stores.threads.get(ORG, THREAD)
    assert thread is not None
    assert thread.quarantine == QUARANTINE
