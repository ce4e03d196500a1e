"""ListWebhookReceivers: who was sent what, and who sees the webhook of the inbox."""

import pytest
from pytest_mock import MockerFixture

from application.webhooks.ports import DeliveryReports
from application.webhooks.queries import MAX_RECEIVERS, ListWebhookReceivers
from domain.identity.role import Role
from tests.builders import ORG
from tests.unit.application.actors import a_principal

pytestmark = pytest.mark.requirement("E7")


@pytest.mark.parametrize(("role", "sees"), [(Role.VIEWER, False), (Role.OPERATOR, False), (Role.ADMIN, True)])
async def test_only_who_manages_the_organization_sees_the_webhook_of_the_inbox(
    mocker: MockerFixture, role: Role, *, sees: bool
) -> None:
    reports = mocker.create_autospec(DeliveryReports, instance=True)
    principal = a_principal(role)
    await ListWebhookReceivers(delivery_reports=reports).execute(principal)
    reports.receivers.assert_awaited_once_with(
        ORG, has_notices=sees, limit=MAX_RECEIVERS, teams=principal.visible_teams
    )
