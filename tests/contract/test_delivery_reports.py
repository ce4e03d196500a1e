"""Deliveries to all webhooks of an organization, and their receivers."""

from dataclasses import replace

import pytest

from application.system.pages import PageRequest
from application.webhooks.ports import DeliveryFilter, WebhookReceiver
from domain.teams import Teams
from domain.webhooks.delivery import Attempt, DeliveryState, WebhookDelivery
from tests.builders import ORG, OTHER_ORG, START, a_thread, a_thread_id, after
from tests.contract.run_steps import finish_step, run_number, start_and_claim
from tests.contract.stores import Stores
from tests.contract.test_giving_to_groups import grouped
from tests.webhook_builders import RECEIVER, a_webhook, announcing

OTHER = "other.example.com:443"
pytestmark = pytest.mark.requirement("E7", "U6")


async def send(
    stores: Stores, number: int, receiver: str = RECEIVER, *, status: int | None = None, team: str | None = None
) -> None:
    """A run of that number ends, and its webhook is announced that it has; `status` is what the
    receiver answers."""
    thread_id = a_thread_id(10 + number)
    if team is not None:
        await grouped(stores)
    await stores.threads.add(replace(a_thread(thread_id), team=team))
    webhook = a_webhook(f"https://{receiver}/T0K3N")
    run = announcing(replace(run_number(number, thread_id=thread_id), team=team), webhook)
    claimed = await start_and_claim(stores, run)
    await stores.journal.commit(claimed.lease, finish_step(claimed.run, at=after(number)))
    if status is not None:
        [taken] = await stores.webhooks.claim(at=after(900), until=after(960), limit=9, per_lane=9, busy={})
        settled = taken.delivery.attempted(Attempt(status=status), at=after(901), fraction=0.5)
        assert await stores.webhooks.settle(taken.delivery, settled)


async def page(stores: Stores, wanted: DeliveryFilter) -> list[tuple[str, DeliveryState]]:
    found: list[WebhookDelivery] = []
    cursor: str | None = None
    while True:
        one = await stores.delivery_reports.page(ORG, wanted, PageRequest(limit=2, cursor=cursor))
        found += one.items
        if (cursor := one.next_cursor) is None:
            return [(each.receiver, each.state) for each in found]


async def test_deliveries_are_listed_by_state_receiver_and_time_newest_first(run_stores: Stores) -> None:
    await send(run_stores, 1, status=200)
    await send(run_stores, 2, OTHER, status=404)
    await send(run_stores, 3)
    delivered, failed, pending = DeliveryState.DELIVERED, DeliveryState.FAILED, DeliveryState.PENDING
    assert await page(run_stores, DeliveryFilter()) == [(RECEIVER, pending), (OTHER, failed), (RECEIVER, delivered)]
    assert await page(run_stores, DeliveryFilter(state=failed)) == [(OTHER, failed)]
    assert await page(run_stores, DeliveryFilter(receiver=RECEIVER, state=delivered)) == [(RECEIVER, delivered)]
    assert await page(run_stores, DeliveryFilter(since=after(2), until=after(3))) == [(OTHER, failed)]
    assert await page(run_stores, DeliveryFilter(has_notices=False, until=START)) == []
    theirs = await run_stores.delivery_reports.page(OTHER_ORG, DeliveryFilter(), PageRequest())
    assert theirs.items == ()


async def test_each_receiver_has_its_figures_and_its_newest_delivery(run_stores: Stores) -> None:
    await send(run_stores, 1, status=200)
    await send(run_stores, 2, OTHER, status=404)
    await send(run_stores, 3)
    first, other = await run_stores.delivery_reports.receivers(ORG, has_notices=True, limit=9)
    [newest, missed] = (await run_stores.delivery_reports.page(ORG, DeliveryFilter(), PageRequest(limit=2))).items
    assert first == WebhookReceiver(receiver=RECEIVER, of_inbox=False, deliveries=2, open=1, failed=0, last=newest)
    assert other == WebhookReceiver(receiver=OTHER, of_inbox=False, deliveries=1, open=0, failed=1, last=missed)
    assert await run_stores.delivery_reports.receivers(ORG, has_notices=False, limit=1) == (first,)
    assert await run_stores.delivery_reports.receivers(OTHER_ORG, has_notices=True, limit=9) == ()


@pytest.mark.requirement("P2")
async def test_deliveries_are_listed_for_who_sees_the_team_of_their_runs(run_stores: Stores) -> None:
    await send(run_stores, 1)
    await send(run_stores, 2, OTHER, team="finance")
    insiders, outsiders = frozenset({"finance"}), frozenset({"sales"})

    async def receivers(teams: Teams, receiver: str | None = None) -> list[str]:
        wanted = DeliveryFilter(receiver=receiver)
        found = await run_stores.delivery_reports.page(ORG, wanted, PageRequest(teams=teams))
        figures = await run_stores.delivery_reports.receivers(ORG, has_notices=True, limit=9, teams=teams)
        listed = sorted(each.receiver for each in found.items)
        assert receiver is not None or listed == sorted(each.receiver for each in figures)
        return listed

    assert await receivers(outsiders) == [RECEIVER]
    assert await receivers(outsiders, OTHER) == []
    assert await receivers(insiders, OTHER) == [OTHER]
    assert await receivers(insiders) == await receivers(None) == sorted([RECEIVER, OTHER])
