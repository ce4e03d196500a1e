"""ListDeliveries: what was sent to all webhooks, and who sees the inbox's."""

import pytest
from pytest_mock import MockerFixture

from application.system.pages import PageRequest
from application.webhooks.ports import DeliveryFilter, DeliveryReports
from application.webhooks.queries import ListDeliveries
from domain.identity.role import Role
from domain.webhooks.delivery import DeliveryState
from tests.builders import ORG, after
from tests.refusals import refused
from tests.unit.application.actors import a_principal

pytestmark = pytest.mark.requirement("E7")
FAILED = DeliveryFilter(state=DeliveryState.FAILED)


@pytest.mark.parametrize(("role", "sees"), [(Role.VIEWER, False), (Role.OPERATOR, False), (Role.ADMIN, True)])
async def test_only_who_manages_the_organization_sees_what_the_inbox_sent(
    mocker: MockerFixture, role: Role, *, sees: bool
) -> None:
    reports = mocker.create_autospec(DeliveryReports, instance=True)

    await ListDeliveries(delivery_reports=reports).execute(a_principal(role), FAILED, PageRequest(limit=7))

    wanted = DeliveryFilter(state=DeliveryState.FAILED, has_notices=sees)
    reports.page.assert_awaited_once_with(ORG, wanted, PageRequest(limit=7))


async def test_a_period_that_ends_before_it_begins_is_refused_and_nothing_is_read(mocker: MockerFixture) -> None:
    unread = mocker.create_autospec(DeliveryReports, instance=True)
    with refused("delivery_times_invalid"):
        await ListDeliveries(delivery_reports=unread).execute(
            a_principal(Role.VIEWER), DeliveryFilter(since=after(2), until=after(1))
        )
    unread.page.assert_not_awaited()
