"""Gauges of budgets: whose spending counts in which."""

from dataclasses import replace
from decimal import Decimal

import pytest
from pytest_mock import MockerFixture

from application.agents.queries import ListAgents
from application.identity.queries import GetOrganization, ListApiKeys
from application.system.pages import Page, PageRequest
from application.usage.ports import UsageFilter
from application.usage.queries import GetUsage
from domain.identity.api_key import ApiKey, Principal
from domain.identity.impersonation import as_others
from domain.identity.role import Role
from domain.ids import ApiKeyId
from domain.usage.daily_usage import UsageSum
from interfaces.console.routes.budgets import Budgets, Gauge
from tests.builders import a_key, an_organization
from tests.doubles.surroundings import FixedClock
from tests.people_builders import USER
from tests.unit.application.actors import a_principal


def a_sum(started_by: str, cost: str) -> UsageSum:
    return UsageSum(
        day=None,
        agent_id=None,
        model=None,
        model_calls=1,
        input_tokens=0,
        output_tokens=0,
        cached_tokens=0,
        reasoning_tokens=0,
        cost_usd=Decimal(cost),
        unpriced_calls=0,
        estimated_calls=0,
        started_by=started_by,
    )


async def user_gauges(
    mocker: MockerFixture, usage: GetUsage, *, role: Role = Role.ADMIN, keys: tuple[ApiKey, ...] | None = None
) -> list[Gauge]:
    """Where each user has 4 USD a day. With `keys`, keys count for users."""
    organization = mocker.create_autospec(GetOrganization, instance=True)
    organization.execute.return_value = replace(
        an_organization(), user_daily_budget_usd=Decimal(4), keys_count_for_users=keys is not None
    )
    agents = mocker.create_autospec(ListAgents, instance=True)
    agents.execute.return_value = Page(items=())
    listed = mocker.create_autospec(ListApiKeys, instance=True)
    listed.execute.return_value = Page(items=keys or ())
    budgets = Budgets(
        get_organization=organization, list_agents=agents, list_api_keys=listed, get_usage=usage, clock=FixedClock()
    )
    users = (await budgets.of(a_principal(role)))["users"]
    assert isinstance(users, list)
    return users


@pytest.mark.requirement("P2", "P7")
async def test_what_a_user_spends_acting_as_others_is_in_their_own_gauge(mocker: MockerFixture) -> None:
    usage = mocker.create_autospec(GetUsage, instance=True)
    as_another = as_others(ApiKeyId(USER))
    usage.execute.return_value = Page(
        items=(a_sum(USER, "1"), a_sum(f"{as_another}usr_bob", "0.5"), a_sum(f"{as_another}usr_cleo", "0.5"))
    )
    assert [(each.name, each.spent, each.percent) for each in await user_gauges(mocker, usage)] == [
        (USER, Decimal(2), 50)
    ]


@pytest.mark.requirement("P7")
async def test_all_pages_of_the_sums_are_read(mocker: MockerFixture) -> None:
    def pages(_: Principal, wanted: UsageFilter, page: PageRequest) -> Page[UsageSum]:
        if page.cursor is None:
            return Page(items=(a_sum(USER, "2"),), next_cursor="more")
        return Page(items=(a_sum("usr_bob", "1"),))

    usage = mocker.create_autospec(GetUsage, instance=True)
    usage.execute.side_effect = pages
    assert [each.name for each in await user_gauges(mocker, usage)] == [USER, "usr_bob"]


@pytest.mark.requirement("P2")
async def test_what_keys_cost_is_in_the_gauge_of_who_made_them_where_keys_count(mocker: MockerFixture) -> None:
    usage = mocker.create_autospec(GetUsage, instance=True)
    usage.execute.return_value = Page(items=(a_sum(USER, "1"), a_sum("key_1", "2"), a_sum("key_2", "4")))
    keys = (replace(a_key(ApiKeyId("key_1")), person_id=USER), a_key(ApiKeyId("key_2")))
    for counted, role, spent in ((None, Role.ADMIN, "1"), (keys, Role.ADMIN, "3"), (keys, Role.VIEWER, "1")):
        gauges = await user_gauges(mocker, usage, role=role, keys=counted)
        assert [(each.name, each.spent) for each in gauges] == [(USER, Decimal(spent))]
