"""ListWebhookDeliveries: who sees which deliveries of a run, and nothing of the receiver but its
host."""

import pytest
from pytest_mock import MockerFixture, MockType

from application.system.pages import PageRequest
from application.system.wakeups import Wakeups
from application.webhooks.ports import RunLookup, WebhookDeliveryStore
from application.webhooks.queries import ListWebhookDeliveries
from domain.identity.role import Role
from tests.builders import ORG, RUN, a_run, a_run_id
from tests.doubles.webhooks import InMemoryWebhookDeliveryStore
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger
from tests.unit.application.webhooks.deliveries import a_delivery, a_state_with

FIRST, SECOND = a_delivery(1), a_delivery(2)
OF_ANOTHER_RUN = a_delivery(3, run_id=a_run_id(2))
EVERYTHING = PageRequest()


@pytest.fixture
def runs(mocker: MockerFixture) -> MockType:
    """ORG has the run RUN."""

    async def run_of(organization_id: str, run_id: str) -> object:
        return a_run() if (organization_id, run_id) == (ORG, RUN) else None

    runs: MockType = mocker.create_autospec(RunLookup, instance=True)
    runs.get.side_effect = run_of
    return runs


@pytest.fixture
def deliveries(mocker: MockerFixture) -> InMemoryWebhookDeliveryStore:
    state = a_state_with(FIRST, SECOND, OF_ANOTHER_RUN)
    return InMemoryWebhookDeliveryStore(state, mocker.create_autospec(Wakeups, instance=True))


@pytest.mark.requirement("E7")
@pytest.mark.parametrize("role", list(Role))
async def test_every_role_sees_the_deliveries_of_a_run_newest_first(
    runs: MockType, deliveries: InMemoryWebhookDeliveryStore, role: Role
) -> None:
    page = await ListWebhookDeliveries(runs=runs, deliveries=deliveries).execute(
        principal=a_principal(role), run_id=RUN, page=EVERYTHING
    )

    assert page.items == (SECOND, FIRST)


async def test_deliveries_are_listed_page_by_page(runs: MockType, deliveries: InMemoryWebhookDeliveryStore) -> None:
    list_deliveries = ListWebhookDeliveries(runs=runs, deliveries=deliveries)
    first = await list_deliveries.execute(principal=a_principal(Role.VIEWER), run_id=RUN, page=PageRequest(limit=1))

    last = await list_deliveries.execute(
        principal=a_principal(Role.VIEWER), run_id=RUN, page=PageRequest(limit=1, cursor=first.next_cursor)
    )

    assert (first.items, last.items, last.next_cursor) == ((SECOND,), (FIRST,), None)


async def test_a_run_without_deliveries_has_an_empty_page(runs: MockType, mocker: MockerFixture) -> None:
    empty = InMemoryWebhookDeliveryStore(a_state_with(), mocker.create_autospec(Wakeups, instance=True))

    assert (
        await ListWebhookDeliveries(runs=runs, deliveries=empty).execute(
            principal=a_principal(Role.VIEWER), run_id=RUN, page=EVERYTHING
        )
    ).items == ()


async def test_deliveries_of_an_unknown_run_are_not_found(
    runs: MockType, deliveries: InMemoryWebhookDeliveryStore
) -> None:

    with refused("run_not_found"):
        await ListWebhookDeliveries(runs=runs, deliveries=deliveries).execute(
            principal=a_principal(), run_id=a_run_id(99)
        )


@pytest.mark.requirement("C6")
async def test_deliveries_of_a_run_of_another_organization_are_not_found(
    runs: MockType, deliveries: InMemoryWebhookDeliveryStore
) -> None:

    with refused("run_not_found"):
        await ListWebhookDeliveries(runs=runs, deliveries=deliveries).execute(principal=a_stranger(), run_id=RUN)


async def test_a_storage_failure_is_not_an_empty_page(runs: MockType, mocker: MockerFixture) -> None:
    deliveries = mocker.create_autospec(WebhookDeliveryStore, instance=True)
    deliveries.of_run.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ListWebhookDeliveries(runs=runs, deliveries=deliveries).execute(
            principal=a_principal(Role.VIEWER), run_id=RUN, page=EVERYTHING
        )

    runs.get.assert_not_awaited()


async def test_a_run_that_cannot_be_looked_up_is_not_taken_for_a_missing_one(
    runs: MockType, mocker: MockerFixture
) -> None:
    runs.get.side_effect = storage_away()
    empty = InMemoryWebhookDeliveryStore(a_state_with(), mocker.create_autospec(Wakeups, instance=True))

    with refused("storage_unavailable"):
        await ListWebhookDeliveries(runs=runs, deliveries=empty).execute(
            principal=a_principal(Role.VIEWER), run_id=RUN, page=EVERYTHING
        )
