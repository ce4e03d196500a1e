"""What every store promises of push configs: states are stored with the step that makes them, and
gone with the config."""

import json
from dataclasses import replace

import pytest

from domain.a2a.push import MAX_CONFIGS, PushConfig, PushTarget
from domain.audit.event import AuditAction
from domain.ids import RunId
from domain.webhooks.delivery import Attempt
from tests.builders import ORG, OTHER_ORG, RUN, START, a_run, after, an_audit_event
from tests.contract.run_steps import finish_step, start, start_and_claim, start_and_suspend
from tests.contract.stores import Stores
from tests.refusals import refused
from tests.webhook_builders import RECEIVER, URL, announcing

pytestmark = pytest.mark.requirement("X5", "E7")

TARGET = PushTarget(url=URL, token="t0ken", scheme="Bearer", credentials="s3cret")
CONFIG = PushConfig(id="mine", organization_id=ORG, run_id=RUN, target=TARGET, created_at=START)


async def put(stores: Stores, config: PushConfig = CONFIG, *, number: int = 81) -> bool:
    return await stores.push_configs.put(config, an_audit_event(number, action=AuditAction.PUSH_CONFIG_CREATED))


async def sent(stores: Stores) -> list[tuple[str, str, dict[str, str]]]:
    """The state, the address and the headers of each delivery that is due."""
    claimed = await stores.webhooks.claim(at=after(60), until=after(120), limit=9, per_lane=9, busy={})
    return [
        (json.loads(each.body)["task"]["status"]["state"], each.webhook.url if each.webhook else "", dict(each.headers))
        for each in claimed
    ]


async def test_the_end_of_a_task_is_delivered_with_what_its_receiver_wants(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores, a_run())
    await put(run_stores)
    outcome = await run_stores.journal.commit(claimed.lease, finish_step(claimed.run, at=START))

    assert outcome.has_announced
    headers = {"X-A2A-Notification-Token": "t0ken", "Authorization": "Bearer s3cret"}
    assert await sent(run_stores) == [("TASK_STATE_COMPLETED", URL, headers)]


async def test_a_webhook_of_the_run_is_delivered_beside(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores, announcing(a_run()))
    await put(run_stores, replace(CONFIG, target=replace(TARGET, url=f"https://{RECEIVER}/pushes")))
    await run_stores.journal.commit(claimed.lease, finish_step(claimed.run, at=START))

    taken = await run_stores.webhooks.claim(at=after(60), until=after(120), limit=9, per_lane=9, busy={})
    assert {(each.webhook and each.webhook.url, bool(each.headers)) for each in taken} == {
        (URL, False),
        (f"https://{RECEIVER}/pushes", True),
    }


async def test_a_config_of_a_task_that_waits_is_sent_its_state_at_once_and_once(run_stores: Stores) -> None:
    await start_and_suspend(run_stores, a_run())

    assert [await put(run_stores), await put(run_stores, replace(CONFIG, created_at=after(9)))] == [True, False]

    assert [state for state, *_ in await sent(run_stores)] == ["TASK_STATE_INPUT_REQUIRED"]


async def test_a_config_that_is_replaced_or_removed_has_no_deliveries(run_stores: Stores) -> None:
    await start_and_suspend(run_stores, a_run())
    other = replace(CONFIG, target=replace(TARGET, url=f"https://{RECEIVER}/new"))
    await put(run_stores)
    await put(run_stores, other, number=82)
    assert [url for _, url, _ in await sent(run_stores)] == [other.target.url]

    entry = an_audit_event(83, action=AuditAction.PUSH_CONFIG_DELETED)
    assert not await run_stores.push_configs.remove(OTHER_ORG, RUN, CONFIG.id, entry)
    assert await run_stores.push_configs.remove(ORG, RUN, CONFIG.id, entry)
    assert not await run_stores.push_configs.remove(ORG, RUN, CONFIG.id, replace(entry, id=an_audit_event(84).id))

    assert await run_stores.push_configs.of_run(ORG, RUN) == ()
    assert await run_stores.webhooks.next_due(but=frozenset()) is None


async def test_an_attempt_for_a_replaced_config_settles_nothing_of_the_new_one(run_stores: Stores) -> None:
    await start_and_suspend(run_stores, a_run())
    await put(run_stores)
    [old] = await run_stores.webhooks.claim(at=after(60), until=after(120), limit=9, per_lane=9, busy={})
    new_target = replace(TARGET, url=f"https://{RECEIVER}/new")
    await put(run_stores, replace(CONFIG, target=new_target, created_at=after(61)), number=82)
    [new] = await run_stores.webhooks.claim(at=after(62), until=after(120), limit=9, per_lane=9, busy={})

    for each, settles in ((old.delivery, False), (new.delivery, True)):
        delivered = each.attempted(Attempt(status=200), at=after(63), fraction=0.5)
        assert await run_stores.webhooks.settle(each, delivered) is settles


async def test_a_task_has_a_bounded_number_of_configs_and_others_see_none(run_stores: Stores) -> None:
    await start(run_stores, a_run())
    for number in range(MAX_CONFIGS):
        await put(run_stores, replace(CONFIG, id=f"c{number}"), number=80 + number)

    with refused("push_configs_limit"):
        await put(run_stores, replace(CONFIG, id="more"), number=99)
    with refused("run_not_found"):
        await put(run_stores, replace(CONFIG, run_id=RunId("run_none")), number=99)

    assert len(await run_stores.push_configs.of_run(ORG, RUN)) == MAX_CONFIGS
    assert await run_stores.push_configs.of_run(OTHER_ORG, RUN) == ()
