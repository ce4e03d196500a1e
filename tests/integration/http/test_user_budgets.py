"""Daily budgets of users: over HTTP, and in the console."""

import html

import pytest

from domain.identity.role import Role
from tests.integration.http.service import Service, token_of
from tests.integration.http.test_console import browse, signed_in
from tests.people_builders import USER

pytestmark = pytest.mark.requirement("P2")
BUDGETS = {"user_daily_budget_usd": 5, "user_daily_budgets_usd": {USER: 20.5}}


async def settings(service: Service) -> dict[str, object]:
    found = (await service.call("GET", "/v1/organization")).json()
    return {name: found[name] for name in BUDGETS}


async def test_an_admin_sets_a_budget_for_each_user_and_others_by_id(service: Service) -> None:
    assert await settings(service) == {"user_daily_budget_usd": None, "user_daily_budgets_usd": {}}
    saved = await service.call("PATCH", "/v1/organization", json=BUDGETS)
    assert saved.json()["warnings"] == [f"user_daily_budgets_usd: no user has the id {USER}"]
    assert await settings(service) == BUDGETS
    refused = await service.call("PATCH", "/v1/organization", json=BUDGETS, token=token_of(Role.OPERATOR))
    assert refused.status_code == 403
    removed: dict[str, object] = {"user_daily_budget_usd": None, "user_daily_budgets_usd": {}}
    assert (await service.call("PATCH", "/v1/organization", json=removed)).status_code == 200
    assert await settings(service) == removed


@pytest.mark.parametrize(
    "wrong",
    [
        {"user_daily_budget_usd": -1},
        {"user_daily_budgets_usd": {USER: -1}},
        {"user_daily_budgets_usd": {"key_1": 1}},
        {"user_daily_budgets_usd": {USER: "much"}},
    ],
    ids=["negative", "negative by id", "no user", "no number"],
)
async def test_what_is_no_budget_of_a_user_is_refused(service: Service, wrong: dict[str, object]) -> None:
    answer = await service.call("PATCH", "/v1/organization", json=wrong)
    assert (answer.status_code, await settings(service)) == (
        422,
        {"user_daily_budget_usd": None, "user_daily_budgets_usd": {}},
    )


async def test_the_console_sets_budgets_of_users_and_shows_them(service: Service) -> None:
    browser = await signed_in(service)
    organization = (await service.call("GET", "/v1/organization")).json()
    form = {
        "version": str(organization["version"]),
        "name": organization["name"],
        "first_use": organization["first_use"],
        "mcp_enabled": "on",
        "user_daily_budget_usd": "5",
        "user_daily_budgets_usd": f"{USER} = 20.5\n\n",
    }
    saved = await browse(service, "POST", "/console/settings", headers=browser, data=form)
    assert (saved.status_code, await settings(service)) == (200, BUDGETS), saved.text
    page = html.unescape((await browse(service, "GET", "/console/settings", headers=browser)).text)
    assert f"{USER}=20.5" in page
    gauges = (await browse(service, "GET", "/console/budgets", headers=browser)).text
    assert (USER in gauges, "Users" in gauges) == (True, True)
    form |= {"version": str(organization["version"] + 1), "user_daily_budgets_usd": f"{USER}=much"}
    wrong = await browse(service, "POST", "/console/settings", headers=browser, data=form)
    assert wrong.status_code == 422
