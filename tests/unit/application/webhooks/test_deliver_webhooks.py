"""Delivering webhooks: what is due is sent and signed, failures are tried again, and no receiver
holds up another."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from pytest_mock import MockerFixture

from application.runs.ports import ClaimedRun
from application.system.pages import PageRequest
from application.webhooks.announcing import Announcement
from application.webhooks.deliver_webhooks import LEASE_S, DeliverWebhooks
from application.webhooks.ports import WEBHOOKS_TOPIC
from application.webhooks.signing_secrets import SigningSecrets
from domain.ids import RunId, WebhookDeliveryId
from domain.runs.ledger import ToolCall
from domain.runs.run import Run
from domain.runs.webhook import Webhook
from domain.secrets.secret import Secret
from domain.webhooks.delivery import Attempt, DeliveryState, SendFailure, WebhookDelivery, WebhookEvent
from domain.webhooks.signing import signed_headers
from infrastructure.events.wakeups import InProcessWakeups
from infrastructure.runtime.public_address import ListeningAddress
from tests.builders import (
    ORG,
    START,
    WORKER,
    a_new_run,
    a_run,
    a_run_id,
    a_thread,
    a_thread_id,
    a_tool_call,
    an_agent,
    an_audit_event,
)
from tests.contract.run_steps import finish_step, suspend_step
from tests.doubles.agents import InMemoryAgentStore
from tests.doubles.journal import InMemoryRunJournal
from tests.doubles.leases import InMemoryRunLeases
from tests.doubles.runs import InMemoryRunStore
from tests.doubles.secrets import InMemorySecretStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.doubles.threads import InMemoryThreadStore
from tests.doubles.webhooks import InMemoryWebhookDeliveryStore, InMemoryWebhookKeyStore
from tests.webhook_builders import a_signing_secret, a_webhook, announcing, key_bytes

WAIT_S = 5.0


@dataclass(frozen=True)
class Sent:
    """A request as a receiver gets it."""

    url: str
    headers: Mapping[str, str]
    body: bytes


class Receivers:
    """A `WebhookSender` that keeps what is sent. `answers` says what comes of it, in order, then
    always the last one; URLs that begin with `held` are not answered before `go`."""

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.answers: list[Attempt | Exception] = [Attempt(status=200)]
        self.held: str | None = None
        self.go = asyncio.Event()
        self.arrived = asyncio.Condition()

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Attempt:
        self.sent.append(Sent(url, headers, body))
        async with self.arrived:
            self.arrived.notify_all()
        if self.held is not None and url.startswith(self.held):
            await self.go.wait()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def close(self) -> None:
        """Nothing is open."""

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_S), self.arrived:
            await self.arrived.wait_for(holds)


class World:
    """Runs that end, and one process that delivers."""

    def __init__(self) -> None:
        self.state = InMemoryState()
        self.wakeups = InProcessWakeups()
        self.clock = FixedClock()
        self.receivers = Receivers()
        self.deliveries = InMemoryWebhookDeliveryStore(self.state, self.wakeups)
        self.keys = InMemoryWebhookKeyStore(self.state)
        self.secrets = InMemorySecretStore(self.state)
        self.deliver = self.another()
        self._count = 0

    def another(self) -> DeliverWebhooks:
        return DeliverWebhooks(
            deliveries=self.deliveries,
            secrets=SigningSecrets(secrets=self.secrets, keys=self.keys, clock=self.clock, ids=SequentialIds()),
            sender=self.receivers,
            address=ListeningAddress("https://agents.example.com"),
            wakeups=self.wakeups,
            clock=self.clock,
            concurrency=8,
            per_lane=2,
            stop_s=0.01,
            fraction=lambda: 0.5,
        )

    async def end_a_run(self, webhook: Webhook | None = None, *, waits_for: ToolCall | None = None) -> Run:
        """The run ends, or begins to wait for a call."""
        self._count += 1
        run_id, thread_id = a_run_id(self._count), a_thread_id(self._count)
        await InMemoryThreadStore(self.state).add(a_thread(thread_id))
        if self._count == 1:
            await InMemoryAgentStore(self.state).add(an_agent(), an_audit_event())
        runs = InMemoryRunStore(self.state, self.wakeups)
        run = announcing(a_run(run_id, thread_id=thread_id), webhook)
        await runs.start(a_new_run(run))
        claimed = await InMemoryRunLeases(self.state, self.wakeups).claim(run_id, WORKER, lease_s=9, at=START)
        assert isinstance(claimed, ClaimedRun)
        at = self.clock.now()
        step = finish_step(claimed.run, at=at) if waits_for is None else suspend_step(claimed.run, waits_for, at=at)
        await InMemoryRunJournal(self.state, self.wakeups).commit(claimed.lease, step)
        return step.run

    async def delivery(self, run_id: RunId) -> WebhookDelivery:
        (found,) = (await self.deliveries.of_run(ORG, run_id, PageRequest())).items
        return found

    @asynccontextmanager
    async def delivering(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.deliver.keep())
        try:
            yield
        finally:
            self.receivers.go.set()
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def until_stored(self, run: Run, state: DeliveryState) -> WebhookDelivery:
        await self.receivers.until(lambda: bool(self.receivers.sent))
        for _ in range(20):  # steps of the loop between the answer and its storing
            await asyncio.sleep(0)
        found = await self.delivery(run.id)
        assert found.state is state
        return found


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.requirement("E7")
async def test_an_event_is_delivered_as_soon_as_it_is_stored(world: World) -> None:
    async with world.delivering():
        run = await world.end_a_run()
        delivered = await world.until_stored(run, DeliveryState.DELIVERED)
    [sent] = world.receivers.sent
    assert (sent.url, sent.headers["webhook-id"]) == (a_webhook().url, delivered.id)
    assert json.loads(sent.body)["type"] == "run.completed"
    assert (delivered.attempts, delivered.last_status) == (1, 200)


def a_notice(world: World) -> WebhookDelivery:
    """A question of a workflow, for the webhook whose address the secret CHAT has."""
    notice = WebhookDelivery(
        id=WebhookDeliveryId("whk_notice"),
        organization_id=ORG,
        run_id=None,
        event=WebhookEvent.QUESTION_ASKED,
        receiver="CHAT",
        created_at=START,
        next_attempt_at=START,
    )
    waiting = [{"item": "node:wfr_1:ask", "name": "ask"}]
    body = json.dumps({"type": notice.event.value, "data": {}, "waiting": waiting})
    world.state.deliveries[notice.id] = Announcement(delivery=notice, body=body)
    return notice


@pytest.mark.requirement("U6")
async def test_what_waits_is_sent_to_the_address_in_the_secret_signed_and_with_links(world: World) -> None:
    notice = a_notice(world)
    secret = Secret(organization_id=ORG, name="CHAT", created_at=START, updated_at=START)
    await world.secrets.put(secret, "https://chat.example.com/T0K3N\n", an_audit_event(2))
    assert await world.deliver.execute() == 1
    [sent] = world.receivers.sent
    assert (sent.url, sent.headers["webhook-id"]) == ("https://chat.example.com/T0K3N", notice.id)
    link = "https://agents.example.com/console/inbox?item=node:wfr_1:ask"
    assert json.loads(sent.body)["links"] == [{"id": "node:wfr_1:ask", "name": "ask", "url": link}]
    [key] = await world.keys.in_force(ORG, at=world.clock.now())
    signed = signed_headers(notice.id, world.clock.now(), sent.body, [key_bytes(key.secret)])
    assert sent.headers["webhook-signature"] == signed["webhook-signature"]


@pytest.mark.requirement("U6")
@pytest.mark.parametrize("value", [None, "not an address"])
async def test_what_waits_is_tried_again_until_the_secret_has_an_address(world: World, value: str | None) -> None:
    notice = a_notice(world)
    if value is not None:
        secret = Secret(organization_id=ORG, name="CHAT", created_at=START, updated_at=START)
        await world.secrets.put(secret, value, an_audit_event(2))
    await world.deliver.execute()
    found = await world.deliveries.get(ORG, notice.id)
    assert found is not None
    assert (found.state, found.last_error) == (DeliveryState.PENDING, SendFailure.NO_ADDRESS.value)
    assert world.receivers.sent == []


@pytest.mark.requirement("E7")
async def test_a_failure_is_tried_again_with_the_same_id_and_body(world: World) -> None:
    run = await world.end_a_run()
    world.receivers.answers = [
        Attempt(status=500),
        Attempt(failure=SendFailure.TIMEOUT),
        Attempt(status=429, retry_after_s=600),
        Attempt(status=204),
    ]
    assert await world.deliver.execute() == 1
    assert await world.deliver.execute() == 0, "not before its time"
    for pause in (5, 15, 600):
        world.clock.advance(pause - 1)
        assert await world.deliver.execute() == 0
        world.clock.advance(1)
        assert await world.deliver.execute() == 1
    delivered = await world.delivery(run.id)
    assert (delivered.state, delivered.attempts) == (DeliveryState.DELIVERED, 4)
    assert len({(sent.headers["webhook-id"], sent.body) for sent in world.receivers.sent}) == 1
    assert len({sent.headers["webhook-timestamp"] for sent in world.receivers.sent}) == 4


@pytest.mark.requirement("E7", "U6")
async def test_what_waits_for_a_person_is_sent_with_a_signed_link_to_it(world: World) -> None:
    run = await world.end_a_run(waits_for=a_tool_call())
    assert await world.deliver.execute() == 1
    [sent] = world.receivers.sent
    document = json.loads(sent.body)
    assert document["type"] == "run.requires_action"
    assert [link["url"] for link in document["links"]] == [f"https://agents.example.com/console/runs/{run.id}"]
    [key] = await world.keys.in_force(ORG, at=world.clock.now())
    moment = datetime.fromtimestamp(int(sent.headers["webhook-timestamp"]), tz=UTC)
    delivery = await world.delivery(run.id)
    signed = signed_headers(delivery.id, moment, sent.body, (key_bytes(key.secret),))
    assert signed.items() <= sent.headers.items()


@pytest.mark.requirement("E7")
async def test_what_a_lost_process_had_taken_is_delivered_by_another(world: World) -> None:
    run = await world.end_a_run()
    now = world.clock.now()
    (lost,) = await world.deliveries.claim(at=now, until=now.replace(minute=1), limit=1, per_lane=1, busy={})
    assert await world.deliver.execute() == 0
    world.clock.advance(LEASE_S)
    assert await world.deliver.execute() == 1
    delivered = await world.delivery(run.id)
    assert (delivered.id, delivered.state, delivered.attempts) == (lost.delivery.id, DeliveryState.DELIVERED, 2)


@pytest.mark.requirement("E7")
async def test_a_receiver_that_does_not_answer_holds_up_nobody_else(world: World) -> None:
    world.receivers.held = "https://dead."
    async with world.delivering():
        for _ in range(20):
            await world.end_a_run(a_webhook("https://dead.example.com/"))
        for number in range(5):
            await world.end_a_run(a_webhook(f"https://alive{number}.example.com/"))
        await world.receivers.until(lambda: len([s for s in world.receivers.sent if "alive" in s.url]) == 5)
        assert len([sent for sent in world.receivers.sent if "dead" in sent.url]) == 2
        world.receivers.go.set()
        await world.receivers.until(lambda: len(world.receivers.sent) == 25)


@pytest.mark.requirement("E7")
async def test_attempts_under_way_at_a_stop_are_given_back(world: World) -> None:
    world.receivers.held = "https://"
    run = await world.end_a_run()
    task = asyncio.create_task(world.deliver.keep())
    await world.receivers.until(lambda: len(world.receivers.sent) == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await world.delivery(run.id)).state is DeliveryState.PENDING
    world.receivers.go.set()
    assert await world.another().execute() == 1
    assert (await world.delivery(run.id)).state is DeliveryState.DELIVERED


@pytest.mark.requirement("E7")
async def test_the_first_use_makes_the_organizations_key_and_it_stays(world: World) -> None:
    for _ in range(2):
        await world.end_a_run()
    assert await world.deliver.execute() == 2
    await world.end_a_run()
    assert await world.deliver.execute() == 1
    (key,) = await world.keys.in_force(ORG, at=world.clock.now())
    assert (key.expires_at, key.secret.startswith("whsec_")) == (None, True)
    assert all(sent.headers["webhook-signature"].count("v1,") == 1 for sent in world.receivers.sent)


@pytest.mark.requirement("E7")
async def test_a_signing_secret_that_is_missing_is_waited_for(world: World) -> None:
    run = await world.end_a_run(a_webhook(secret="SIGNING"))
    assert await world.deliver.execute() == 1
    waiting = await world.delivery(run.id)
    assert (waiting.state, waiting.last_error) == (DeliveryState.PENDING, SendFailure.UNSIGNED.value)
    assert world.receivers.sent == []
    secret = Secret(organization_id=ORG, name="SIGNING", created_at=START, updated_at=START)
    await world.secrets.put(secret, a_signing_secret(), an_audit_event(2))
    world.clock.advance(5)
    await world.deliver.execute()
    assert (await world.delivery(run.id)).state is DeliveryState.DELIVERED


async def test_a_fault_of_ours_is_tried_again_and_says_nothing_of_itself(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    run = await world.end_a_run()
    world.receivers.answers = [RuntimeError("https://hooks.example.com/T0K3N broke")]
    assert await world.deliver.execute() == 1
    failed = await world.delivery(run.id)
    assert (failed.state, failed.last_error) == (DeliveryState.PENDING, SendFailure.INTERNAL.value)
    assert "T0K3N" not in caplog.text
    assert "RuntimeError" in caplog.text


async def test_a_store_that_is_away_is_asked_again(world: World, mocker: MockerFixture) -> None:
    asked = mocker.spy(world.deliveries, "next_due")
    run = await world.end_a_run()
    real, failed = world.deliveries.claim, asyncio.Event()

    async def fails_once(**wanted: object) -> object:
        if not failed.is_set():
            failed.set()
            raise OSError("away")
        return await real(**wanted)  # type: ignore[arg-type]

    mocker.patch.object(world.deliveries, "claim", fails_once)
    async with world.delivering():
        async with asyncio.timeout(WAIT_S):
            await failed.wait()
        world.wakeups.wake(WEBHOOKS_TOPIC)
        await world.until_stored(run, DeliveryState.DELIVERED)
    assert asked.call_count > 1
