"""RetryWebhookDelivery: who may ask for a delivery again, which ones, and what is audited."""

import pytest
from pytest_mock import MockerFixture, MockType

from application.system.wakeups import Wakeups
from application.webhooks.ports import WEBHOOKS_TOPIC, WebhookDeliveryStore
from application.webhooks.retry_webhook_delivery import RetryWebhookDelivery, RetryWebhookDeliveryCommand
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.webhooks.delivery import DeliveryState, WebhookDelivery
from tests.builders import RUN, after
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.doubles.webhooks import InMemoryWebhookDeliveryStore
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger
from tests.unit.application.webhooks.deliveries import BODY, a_delivery, a_state_with

NOW = after(60)
FAILED = a_delivery()
DELIVERED = a_delivery(state=DeliveryState.DELIVERED, delivered_at_s=5)
UNDER_WAY = a_delivery(state=DeliveryState.DELIVERING, next_attempt_at_s=90)
LOST = a_delivery(state=DeliveryState.DELIVERING, next_attempt_at_s=30)


@pytest.fixture
def wakeups(mocker: MockerFixture) -> MockType:
    return mocker.create_autospec(Wakeups, instance=True)


async def retry(deliveries: WebhookDeliveryStore, principal: Principal | None = None) -> WebhookDelivery:
    """Ask for delivery 1 a minute after the start, as an operator unless said otherwise."""
    retrying = RetryWebhookDelivery(deliveries=deliveries, clock=FixedClock(NOW), ids=SequentialIds())
    principal = principal or a_principal(Role.OPERATOR)
    return await retrying.execute(RetryWebhookDeliveryCommand(principal=principal, delivery_id=FAILED.id))


def only(state: InMemoryState) -> WebhookDelivery:
    """The one stored delivery."""
    [stored] = state.deliveries.values()
    return stored.delivery


@pytest.mark.requirement("E7")
@pytest.mark.parametrize("seen", [FAILED, DELIVERED, LOST], ids=["failed", "delivered", "its sender is lost"])
async def test_an_operator_has_a_delivery_sent_again_at_once_with_a_fresh_round_of_attempts(
    wakeups: MockType, seen: WebhookDelivery
) -> None:
    state = a_state_with(seen)

    after_retry = await retry(InMemoryWebhookDeliveryStore(state, wakeups))

    assert after_retry == only(state)
    assert (after_retry.state, after_retry.next_attempt_at) == (DeliveryState.PENDING, NOW)
    assert (after_retry.attempts, after_retry.retried_after, after_retry.delivered_at) == (3, 3, None)
    wakeups.wake.assert_called_once_with(WEBHOOKS_TOPIC)


@pytest.mark.requirement("E7")
async def test_the_id_and_the_body_stay_the_same(wakeups: MockType) -> None:
    state = a_state_with(FAILED)

    await retry(InMemoryWebhookDeliveryStore(state, wakeups))

    assert [(id, stored.delivery.id, stored.body) for id, stored in state.deliveries.items()] == [
        (FAILED.id, FAILED.id, BODY)
    ]


@pytest.mark.requirement("C5", "E7")
async def test_a_retry_is_audited(wakeups: MockType) -> None:
    state = a_state_with(FAILED)

    await retry(InMemoryWebhookDeliveryStore(state, wakeups))

    [entry] = state.audit.values()
    assert (entry.action, entry.actor) == (AuditAction.WEBHOOK_DELIVERY_RETRIED, "key_operator")
    assert (entry.resource, entry.at) == (FAILED.id, NOW)
    assert entry.run_id == RUN
    assert entry.details == {"run_id": RUN, "event": "run.completed", "attempts": 3}


@pytest.mark.requirement("E7")
async def test_a_delivery_that_is_being_attempted_is_not_retried(wakeups: MockType) -> None:
    state = a_state_with(UNDER_WAY)

    with pytest.raises(ServiceError) as caught:
        await retry(InMemoryWebhookDeliveryStore(state, wakeups))

    assert (caught.value.code, caught.value.kind) == ("webhook_delivery_in_progress", ErrorKind.CONFLICT)
    assert only(state) == UNDER_WAY
    assert not state.audit
    wakeups.wake.assert_not_called()


@pytest.mark.requirement("E7")
async def test_a_delivery_whose_attempt_begins_meanwhile_is_not_retried(mocker: MockerFixture) -> None:
    deliveries = mocker.create_autospec(WebhookDeliveryStore, instance=True)
    deliveries.get.return_value, deliveries.retry.return_value = FAILED, False

    with refused("webhook_delivery_in_progress"):
        await retry(deliveries)


async def test_an_unknown_delivery_is_not_found(wakeups: MockType) -> None:
    with refused("webhook_delivery_not_found"):
        await retry(InMemoryWebhookDeliveryStore(a_state_with(), wakeups))


@pytest.mark.requirement("C6")
async def test_a_delivery_of_another_organization_is_not_found(wakeups: MockType) -> None:
    state = a_state_with(FAILED)

    with refused("webhook_delivery_not_found"):
        await retry(InMemoryWebhookDeliveryStore(state, wakeups), a_stranger())

    assert only(state) == FAILED
    wakeups.wake.assert_not_called()


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", [Role.VIEWER, Role.RUNNER])
async def test_viewers_and_runners_retry_no_delivery(mocker: MockerFixture, role: Role) -> None:
    deliveries = mocker.create_autospec(WebhookDeliveryStore, instance=True)

    with refused("role_insufficient"):
        await retry(deliveries, a_principal(role))

    deliveries.get.assert_not_awaited()
    deliveries.retry.assert_not_awaited()


@pytest.mark.parametrize("failing", ["get", "retry"])
async def test_a_storage_failure_is_raised(mocker: MockerFixture, failing: str) -> None:
    deliveries = mocker.create_autospec(WebhookDeliveryStore, instance=True)
    deliveries.get.return_value = FAILED
    getattr(deliveries, failing).side_effect = storage_away()

    with refused("storage_unavailable"):
        await retry(deliveries)
