"""ListInboxDeliveries: admins see what was sent to the webhook of their organization's inbox."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.system.wakeups import Wakeups
from application.webhooks.ports import WebhookDeliveryStore
from application.webhooks.queries import ListInboxDeliveries
from domain.identity.role import Role
from domain.webhooks.delivery import WebhookEvent
from tests.doubles.webhooks import InMemoryWebhookDeliveryStore
from tests.refusals import refused
from tests.unit.application.actors import a_principal, a_stranger
from tests.unit.application.webhooks.deliveries import a_delivery, a_state_with

pytestmark = pytest.mark.requirement("U6")
OF_A_RUN = a_delivery(1)
NOTICES = [
    replace(a_delivery(number), event=event)
    for number, event in ((2, WebhookEvent.APPROVAL_REQUESTED), (3, WebhookEvent.TOOL_QUARANTINED))
]


async def test_the_notices_of_the_organization_are_listed_newest_first(mocker: MockerFixture) -> None:
    wakeups = mocker.create_autospec(Wakeups, instance=True)
    deliveries = InMemoryWebhookDeliveryStore(a_state_with(OF_A_RUN, *NOTICES), wakeups)
    listing = ListInboxDeliveries(deliveries=deliveries)
    assert list((await listing.execute(a_principal(Role.ADMIN))).items) == NOTICES[::-1]
    assert (await listing.execute(a_stranger())).items == ()


async def test_only_admins_see_them(mocker: MockerFixture) -> None:
    deliveries = mocker.create_autospec(WebhookDeliveryStore, instance=True)
    with refused("role_insufficient"):
        await ListInboxDeliveries(deliveries=deliveries).execute(a_principal(Role.OPERATOR))
    deliveries.of_inbox.assert_not_awaited()
