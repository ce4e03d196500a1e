"""The contract of `RunStore.start` for retries: what continues a failed run, and with what."""

from dataclasses import replace

import pytest

from application.runs.new_run import NewRun
from domain.runs.run import MultitaskStrategy, RunStatus
from tests.builders import ORG, RUN, a_new_run, a_run_id, after
from tests.contract.run_changes import messages_of
from tests.contract.run_steps import claim, finish_step, run_number, start_and_claim, stored
from tests.contract.stores import Stores
from tests.refusals import refused
from tests.webhook_builders import URL, a_webhook, announcing

pytestmark = pytest.mark.requirement("A11")


async def a_failed_run(stores: Stores, number: int = 1) -> None:
    claimed = await start_and_claim(stores, announcing(run_number(number), a_webhook()))
    await stores.journal.commit(claimed.lease, finish_step(claimed.run, RunStatus.FAILED))


def a_retry(number: int, *, of: int) -> NewRun:
    run = replace(announcing(run_number(number), a_webhook()), retry_of=a_run_id(of))
    return replace(a_new_run(run, strategy=MultitaskStrategy.REJECT), webhook_url=None)


async def test_a_retry_adds_no_message_when_it_is_claimed(run_stores: Stores) -> None:
    await a_failed_run(run_stores)
    started = await run_stores.runs.start(a_retry(2, of=1))
    assert await stored(run_stores, a_run_id(2)) == started.run
    claimed = await claim(run_stores, a_run_id(2))
    assert claimed.run.retry_of == RUN
    assert claimed.transcript == await messages_of(run_stores.runs, ORG, RUN)
    events = await run_stores.runs.events(ORG, a_run_id(2), after_seq=0, limit=100)
    assert [event.type.value for event in events] == ["run.queued", "run.started", "turn.started"]


async def test_a_retry_continues_the_newest_run_of_its_thread_only(run_stores: Stores) -> None:
    await a_failed_run(run_stores, 1)
    await a_failed_run(run_stores, 2)
    with refused("run_not_newest"):
        await run_stores.runs.start(a_retry(3, of=1))
    assert (await run_stores.runs.start(a_retry(3, of=2))).created


async def test_a_retry_is_announced_where_the_failed_run_was(run_stores: Stores) -> None:
    await a_failed_run(run_stores)
    await run_stores.runs.start(a_retry(2, of=1))
    claimed = await claim(run_stores, a_run_id(2))
    await run_stores.journal.commit(claimed.lease, finish_step(claimed.run))
    deliveries = await run_stores.webhooks.claim(at=after(9), until=after(60), limit=9, per_lane=9, busy={})
    assert {(delivery.delivery.run_id, delivery.webhook and delivery.webhook.url) for delivery in deliveries} == {
        (RUN, URL),
        (a_run_id(2), URL),
    }
