"""What every store promises of webhooks: announced with the event, sent by one at a time, gone with
the run."""

import asyncio
import json
from dataclasses import replace
from datetime import datetime

import pytest

from application.audit.ports import AuditFilter
from application.runs.ports import EndedAtClaim
from application.system.pages import PageRequest
from application.webhooks.ports import WEBHOOKS_TOPIC, ClaimedDelivery, Lane
from domain.audit.event import AuditAction
from domain.ids import AuditEventId, OrganizationId, RunId, WebhookDeliveryId
from domain.runs.events import RunEventType
from domain.runs.run import MAX_LEASE_EXPIRATIONS, MultitaskStrategy, Run, RunStatus
from domain.runs.run_json import run_to_json
from domain.webhooks.delivery import Attempt, DeliveryState, SendFailure
from tests.builders import (
    KEY,
    ORG,
    OTHER_ORG,
    RUN,
    START,
    WORKER,
    a_deletion,
    a_displayable_call,
    a_run,
    a_run_id,
    a_thread,
    a_thread_id,
    after,
    an_audit_event,
)
from tests.contract.paging import all_of, pages_of
from tests.contract.run_changes import cancel
from tests.contract.run_steps import (
    LEASE_S,
    claim,
    finish_step,
    reply_step,
    run_number,
    start,
    start_and_claim,
    start_and_suspend,
    stored,
    suspend_step,
)
from tests.contract.stores import Stores
from tests.webhook_builders import RECEIVER, URL, a_webhook, a_webhook_key, announcing

MANY = 100
LANE = Lane(organization_id=ORG, receiver=RECEIVER)


async def deliveries_of(stores: Stores, run_id: RunId = RUN, organization_id: OrganizationId = ORG) -> list[str]:
    """The events announced, oldest first."""
    page = await stores.webhooks.of_run(organization_id, run_id, PageRequest())
    return [delivery.event.value for delivery in reversed(page.items)]


async def taken(
    stores: Stores,
    *,
    at: datetime = START,
    limit: int = MANY,
    per_lane: int = MANY,
    busy: dict[Lane, int] | None = None,
) -> tuple[ClaimedDelivery, ...]:
    """What is to be had at that moment, for a minute."""
    until = at + (after(60) - START)
    return await stores.webhooks.claim(at=at, until=until, limit=limit, per_lane=per_lane, busy=busy or {})


async def a_finished_run(stores: Stores, run: Run | None = None, *, url: str = URL) -> Run:
    """A completed run that announces its end."""
    claimed = await start_and_claim(stores, announcing(run, a_webhook(url)))
    await stores.journal.commit(claimed.lease, finish_step(claimed.run, at=claimed.run.created_at))
    return await stored(stores, claimed.run.id)


async def one(stores: Stores, run: Run | None = None) -> ClaimedDelivery:
    """The delivery of a finished run, taken."""
    await a_finished_run(stores, run)
    (claimed,) = await taken(stores)
    return claimed


@pytest.mark.requirement("E7")
async def test_the_end_of_a_run_is_announced_with_its_event(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores, announcing())
    await run_stores.journal.commit(claimed.lease, reply_step(claimed.run))
    assert await deliveries_of(run_stores) == []
    assert await run_stores.webhooks.next_due(but=frozenset()) is None
    async with run_stores.wakeups.subscribe(WEBHOOKS_TOPIC) as rung:
        await run_stores.journal.commit(claimed.lease, finish_step(claimed.run, at=after(3)))
        assert await rung.wait(60)
    assert await run_stores.webhooks.next_due(but=frozenset()) == after(3)
    (delivery,) = await taken(run_stores, at=after(3))
    assert delivery.webhook == a_webhook()
    body = json.loads(delivery.body)
    assert body == {
        "type": "run.completed",
        "timestamp": "2026-01-01T12:00:03.000000Z",
        "data": run_to_json(await stored(run_stores, RUN)),
    }


@pytest.mark.requirement("E7")
async def test_a_run_without_a_webhook_announces_nothing(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores)
    async with run_stores.wakeups.subscribe(WEBHOOKS_TOPIC) as rung:
        await run_stores.journal.commit(claimed.lease, finish_step(claimed.run))
        assert not await rung.wait(0)
    assert await deliveries_of(run_stores) == []
    assert await taken(run_stores) == ()


@pytest.mark.requirement("E7")
async def test_a_webhook_hears_of_the_events_it_names(run_stores: Stores) -> None:
    only_failures = a_webhook(events=(RunEventType.RUN_FAILED,))
    for number, status in ((1, RunStatus.COMPLETED), (2, RunStatus.FAILED)):
        claimed = await start_and_claim(run_stores, announcing(run_number(number), only_failures))
        await run_stores.journal.commit(claimed.lease, finish_step(claimed.run, status))
    assert await deliveries_of(run_stores, a_run_id(1)) == []
    assert await deliveries_of(run_stores, a_run_id(2)) == ["run.failed"]


@pytest.mark.requirement("E7")
async def test_every_wait_and_the_end_after_it_are_announced(run_stores: Stores) -> None:
    waiting, _ = await start_and_suspend(run_stores, announcing())
    assert await deliveries_of(run_stores) == ["run.requires_action"]
    (delivery,) = await taken(run_stores)
    assert json.loads(delivery.body)["data"] == run_to_json(waiting)
    assert waiting.pending
    # D5: the next message of the thread settles what was displayed, and ends the run that nobody
    # executes.
    await start(run_stores, run_number(9))
    assert await deliveries_of(run_stores) == ["run.requires_action", "run.completed"]


@pytest.mark.requirement("E7")
async def test_runs_that_nobody_executes_announce_that_they_were_cancelled(run_stores: Stores) -> None:
    await start(run_stores, announcing(run_number(1)))
    await cancel(run_stores.runs, ORG, a_run_id(1), actor=KEY, at=after(1))
    assert await deliveries_of(run_stores, a_run_id(1)) == ["run.cancelled"]
    await start(run_stores, announcing(run_number(2)))
    await start(run_stores, run_number(3), strategy=MultitaskStrategy.INTERRUPT)
    assert await deliveries_of(run_stores, a_run_id(2)) == ["run.cancelled"]


@pytest.mark.requirement("E7")
async def test_a_run_that_is_ended_where_it_would_wait_announces_that(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores, announcing())
    call = a_displayable_call()
    await run_stores.journal.commit(claimed.lease, reply_step(claimed.run, call))
    await cancel(run_stores.runs, ORG, RUN, actor=KEY, at=START)
    await run_stores.journal.commit(claimed.lease, suspend_step(claimed.run, call))
    assert sorted(await deliveries_of(run_stores)) == ["run.cancelled", "run.requires_action"]


@pytest.mark.requirement("E7")
async def test_a_run_that_workers_do_not_survive_announces_its_end(run_stores: Stores) -> None:
    await start(run_stores, announcing())
    moment = 0.0
    for _ in range(MAX_LEASE_EXPIRATIONS):
        await claim(run_stores, RUN, at=after(moment))
        moment += LEASE_S + 1
        assert await run_stores.leases.recoverable(at=after(moment), limit=1) == (RUN,)
    ended = await run_stores.leases.claim(RUN, WORKER, lease_s=LEASE_S, at=after(moment))
    assert isinstance(ended, EndedAtClaim)
    assert await deliveries_of(run_stores) == ["run.failed"]


@pytest.mark.requirement("E7")
async def test_a_delivery_is_one_takers_until_that_one_must_be_lost(run_stores: Stores) -> None:
    claimed = await one(run_stores)
    delivery = claimed.delivery
    assert (delivery.state, delivery.attempts, delivery.next_attempt_at) == (DeliveryState.DELIVERING, 1, after(60))
    assert await taken(run_stores, at=after(59)) == ()
    (second,) = await taken(run_stores, at=after(61))
    assert (second.delivery.id, second.delivery.attempts, second.body) == (delivery.id, 2, claimed.body)
    # The first was only slow: what it has to say no longer counts.
    done = delivery.attempted(Attempt(failure=SendFailure.TIMEOUT), at=after(62), fraction=0.5)
    assert not await run_stores.webhooks.settle(delivery, done)
    after_second = second.delivery.attempted(Attempt(status=204), at=after(63), fraction=0.5)
    assert await run_stores.webhooks.settle(second.delivery, after_second)
    assert await run_stores.webhooks.get(ORG, delivery.id) == after_second
    assert after_second.delivered_at == after(63)
    assert await run_stores.webhooks.next_due(but=frozenset()) is None
    assert await taken(run_stores, at=after(10_000)) == ()


@pytest.mark.requirement("E7")
async def test_the_one_process_there_is_goes_on_at_once_with_what_was_taken(run_stores: Stores) -> None:
    lost = await one(run_stores)
    assert await run_stores.webhooks.release_all(at=after(2)) == 1
    (again,) = await taken(run_stores, at=after(2))
    assert (again.delivery.id, again.delivery.attempts) == (lost.delivery.id, 2)
    done = again.delivery.attempted(Attempt(status=200), at=after(3), fraction=0)
    assert await run_stores.webhooks.settle(again.delivery, done)
    assert await run_stores.webhooks.release_all(at=after(4)) == 0


@pytest.mark.requirement("E7")
async def test_one_receiver_gets_no_more_places_than_its_own(run_stores: Stores) -> None:
    for number in (1, 2, 3):
        await a_finished_run(run_stores, run_number(number), url="https://dead.example.com/")
    await a_finished_run(run_stores, run_number(4))
    dead = Lane(organization_id=ORG, receiver="dead.example.com:443")
    first = await taken(run_stores, at=after(9), per_lane=2)
    assert sorted(claimed.lane.receiver for claimed in first) == [dead.receiver, dead.receiver, RECEIVER]
    assert await taken(run_stores, at=after(9), per_lane=2, busy={dead: 2, LANE: 1}) == ()
    assert await run_stores.webhooks.next_due(but=frozenset()) == after(3)
    assert await run_stores.webhooks.next_due(but=frozenset({dead})) == after(69)
    (last,) = await taken(run_stores, at=after(9), per_lane=2, busy={dead: 1, LANE: 2})
    assert last.delivery.run_id == a_run_id(3)


@pytest.mark.requirement("E7")
async def test_deliveries_are_taken_in_the_order_they_are_due(run_stores: Stores) -> None:
    for number in (2, 1, 3):
        thread_id = a_thread_id(10 + number)
        await run_stores.threads.add(a_thread(thread_id))
        await a_finished_run(run_stores, run_number(number, thread_id=thread_id))
    first = await taken(run_stores, at=after(2), limit=1)
    rest = await taken(run_stores, at=after(2))
    assert [claimed.delivery.run_id for claimed in (*first, *rest)] == [a_run_id(1), a_run_id(2)]


@pytest.mark.requirement("E7")
async def test_a_delivery_that_failed_can_be_asked_for_again(run_stores: Stores) -> None:
    claimed = await one(run_stores)
    failed = claimed.delivery.attempted(Attempt(status=404), at=after(1), fraction=0.5)
    assert failed.state is DeliveryState.FAILED
    assert await run_stores.webhooks.settle(claimed.delivery, failed)
    audit = an_audit_event(77, action=AuditAction.WEBHOOK_DELIVERY_RETRIED, resource=failed.id)
    again = failed.retried(at=after(5))
    async with run_stores.wakeups.subscribe(WEBHOOKS_TOPIC) as rung:
        assert await run_stores.webhooks.retry(failed, again, audit)
        assert await rung.wait(60)
    assert await run_stores.webhooks.get(ORG, failed.id) == again
    (second,) = await taken(run_stores, at=after(5))
    assert (second.delivery.id, second.body, second.delivery.attempts) == (failed.id, claimed.body, 2)
    # Whoever saw it before that changes nothing, and leaves no trace.
    assert not await run_stores.webhooks.retry(failed, again, replace(audit, id=AuditEventId(audit.id + "x")))
    entries = await all_of(
        lambda request: run_stores.audit.page(ORG, AuditFilter(action="webhook_delivery.retried"), request)
    )
    assert [entry.resource for entry in entries] == [failed.id]


@pytest.mark.requirement("E7", "C6")
async def test_deliveries_of_another_organization_are_not_there(run_stores: Stores) -> None:
    claimed = await one(run_stores)
    delivery_id = claimed.delivery.id
    assert await run_stores.webhooks.get(ORG, delivery_id) is not None
    assert await run_stores.webhooks.get(OTHER_ORG, delivery_id) is None
    assert await run_stores.webhooks.get(ORG, WebhookDeliveryId("whk_x")) is None
    assert await deliveries_of(run_stores, organization_id=OTHER_ORG) == []


async def test_deliveries_are_listed_newest_first_in_pages(run_stores: Stores) -> None:
    await start_and_suspend(run_stores, announcing())
    await cancel(run_stores.runs, ORG, RUN, actor=KEY, at=after(7))
    pages = await pages_of(lambda request: run_stores.webhooks.of_run(ORG, RUN, request), limit=1)
    assert [[delivery.event.value for delivery in page] for page in pages] == [
        ["run.cancelled"],
        ["run.requires_action"],
    ]


@pytest.mark.requirement("E7")
async def test_deliveries_go_with_their_thread(run_stores: Stores) -> None:
    claimed = await one(run_stores)
    assert await run_stores.threads.delete(ORG, a_thread().id, a_deletion())
    assert await run_stores.webhooks.get(ORG, claimed.delivery.id) is None
    assert await run_stores.webhooks.next_due(but=frozenset()) is None
    assert not await run_stores.webhooks.settle(
        claimed.delivery, claimed.delivery.attempted(Attempt(status=200), at=START, fraction=0)
    )


@pytest.mark.requirement("E7")
async def test_deliveries_go_with_what_retention_removes(run_stores: Stores) -> None:
    claimed = await one(run_stores)
    more = True
    while more:
        more = (await run_stores.retention.remove(ORG, a_thread().id, after(1_000))).more
    assert await run_stores.threads.get(ORG, a_thread().id) is None
    assert await run_stores.webhooks.get(ORG, claimed.delivery.id) is None


@pytest.mark.requirement("E7")
async def test_an_organization_has_one_first_key(stores: Stores) -> None:
    assert await stores.webhook_keys.in_force(ORG, at=START) == ()
    await stores.webhook_keys.add_first(a_webhook_key(1))
    await stores.webhook_keys.add_first(a_webhook_key(2))
    assert await stores.webhook_keys.in_force(ORG, at=after(5)) == (a_webhook_key(1),)
    assert await stores.webhook_keys.in_force(OTHER_ORG, at=after(5)) == ()


@pytest.mark.requirement("E7")
async def test_a_first_key_and_one_that_an_admin_makes_at_once_do_not_collide(stores: Stores) -> None:
    audit = an_audit_event(77, action=AuditAction.WEBHOOK_KEY_CREATED)
    await asyncio.gather(
        *(stores.webhook_keys.add_first(a_webhook_key(number)) for number in range(2, 8)),
        stores.webhook_keys.replace(a_webhook_key(1), former_until=after(100), audit=audit),
    )
    in_force = await stores.webhook_keys.in_force(ORG, at=after(5))
    assert [key.id for key in in_force if key.expires_at is None] == [a_webhook_key(1).id]


@pytest.mark.requirement("E7")
async def test_a_new_key_signs_beside_the_one_before_for_a_while(stores: Stores) -> None:
    audit = an_audit_event(77, action=AuditAction.WEBHOOK_KEY_CREATED)
    assert not await stores.webhook_keys.replace(a_webhook_key(1), former_until=after(101), audit=audit)
    second = replace(audit, id=AuditEventId(audit.id + "b"))
    assert await stores.webhook_keys.replace(a_webhook_key(2), former_until=after(102), audit=second)
    ending = replace(a_webhook_key(1), expires_at=after(102))
    assert await stores.webhook_keys.in_force(ORG, at=after(101)) == (a_webhook_key(2), ending)
    assert await stores.webhook_keys.in_force(ORG, at=after(102)) == (a_webhook_key(2),)
    # Of two made in a row only the second's predecessor goes on.
    third = replace(audit, id=AuditEventId(audit.id + "c"))
    assert await stores.webhook_keys.replace(a_webhook_key(3), former_until=after(103), audit=third)
    in_force = await stores.webhook_keys.in_force(ORG, at=after(50))
    assert [key.id for key in in_force] == [a_webhook_key(3).id, a_webhook_key(2).id]
    entries = await all_of(lambda request: stores.audit.page(ORG, AuditFilter(action="webhook_key.created"), request))
    assert len(entries) == 3


async def test_a_webhook_is_stored_with_its_run(run_stores: Stores) -> None:
    webhook = a_webhook("http://hooks.example.com:8080/x?y=z", secret="SIGNING", events=(RunEventType.RUN_HALTED,))
    await start(run_stores, announcing(a_run(), webhook))
    assert (await stored(run_stores, RUN)).webhook == webhook.note
    assert (await claim(run_stores, RUN)).run.webhook == webhook.note
