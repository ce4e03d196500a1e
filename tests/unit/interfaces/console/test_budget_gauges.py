"""Gauges of budgets: whose spending counts in which."""

from dataclasses import replace
from decimal import Decimal

import pytest
from pytest_mock import MockerFixture

from application.agents.queries import ListAgents
from application.identity.queries import GetOrganization
from application.system.pages import Page
from application.usage.queries import GetUsage
from domain.identity.impersonation import as_others
from domain.ids import ApiKeyId
from domain.usage.daily_usage import UsageSum
from interfaces.console.routes.budgets import Budgets
from tests.builders import an_organization
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


@pytest.mark.requirement("P2", "P7")
async def test_what_a_user_spends_acting_as_others_is_in_their_own_gauge(mocker: MockerFixture) -> None:
    organization = mocker.create_autospec(GetOrganization, instance=True)
    organization.execute.return_value = replace(an_organization(), user_daily_budget_usd=Decimal(4))
    agents = mocker.create_autospec(ListAgents, instance=True)
    agents.execute.return_value = Page(items=())
    usage = mocker.create_autospec(GetUsage, instance=True)
    as_another = as_others(ApiKeyId(USER))
    usage.execute.return_value = Page(
        items=(a_sum(USER, "1"), a_sum(f"{as_another}usr_bob", "0.5"), a_sum(f"{as_another}usr_cleo", "0.5"))
    )
    budgets = Budgets(get_organization=organization, list_agents=agents, get_usage=usage, clock=FixedClock())
    users = (await budgets.of(a_principal()))["users"]
    assert isinstance(users, list)
    assert [(each.name, each.spent, each.percent) for each in users] == [(USER, Decimal(2), 50)]
