"""Limits of users: set over HTTP and in the console, and what a user beyond them is told."""

import html
import re
from dataclasses import replace

import pytest

from domain.identity.role import Role
from domain.ids import ApiKeyId, UserId
from interfaces.console.routes.people import PAGE
from tests.builders import a_key, an_audit_event, numbered
from tests.composition import MODEL
from tests.integration.http.service import Act, Service, problem_of, token_of
from tests.integration.http.test_console import browse, signed_in
from tests.integration.http.test_permissions import key_with
from tests.people_builders import USER, a_user

pytestmark = pytest.mark.requirement("P2")
RATE = {"calls": 120, "per_s": 60.0}
LIMITS = {
    "user_limits": {"rate_limit": RATE, "max_active_runs": 5},
    "limits_of_users": {USER: {"rate_limit": None, "max_active_runs": 1}},
}
NONE = {"user_limits": {"rate_limit": None, "max_active_runs": None}, "limits_of_users": {}}
ANN = "dgm_ann"


async def limits(service: Service) -> dict[str, object]:
    found = (await service.call("GET", "/v1/organization")).json()
    return {name: found[name] for name in LIMITS}


async def test_an_admin_sets_limits_for_each_user_and_others_by_id(service: Service) -> None:
    assert await limits(service) == NONE
    assert (await service.call("PATCH", "/v1/organization", json=LIMITS)).status_code == 200
    assert await limits(service) == LIMITS
    refused = await service.call("PATCH", "/v1/organization", json=LIMITS, token=token_of(Role.OPERATOR))
    assert refused.status_code == 403
    assert (await service.call("PATCH", "/v1/organization", json={"user_limits": {}})).status_code == 200
    assert await limits(service) == {**LIMITS, "user_limits": NONE["user_limits"]}
    [entry, *_] = (await service.call("GET", "/v1/audit-events")).json()["data"]
    assert (entry["action"], entry["details"]["changed"]) == ("organization.updated", ["user_limits"])


@pytest.mark.parametrize(
    "wrong",
    [
        {"user_limits": {"max_active_runs": 0}},
        {"user_limits": {"rate_limit": {"calls": 0, "per_s": 60}}},
        {"user_limits": {"rate_limit": {"calls": 5}}},
        {"user_limits": {"max_runs": 5}},
        {"user_limits": None},
        {"limits_of_users": {"key_1": {"max_active_runs": 5}}},
    ],
    ids=["no run", "no call", "no time", "unknown", "null", "no user"],
)
async def test_what_is_no_limit_of_a_user_is_refused(service: Service, wrong: dict[str, object]) -> None:
    answer = await service.call("PATCH", "/v1/organization", json=wrong)
    assert (answer.status_code, await limits(service)) == (422, NONE)


async def test_a_user_starts_no_more_runs_than_may_be_active(service: Service) -> None:
    service.state.keys[ApiKeyId(USER)] = a_key(ApiKeyId(USER), token=ANN, role=Role.RUNNER)
    await service.call("POST", "/v1/agents", json={"name": "helper", "model": MODEL})
    await service.call("PATCH", "/v1/organization", json=LIMITS)
    service.worker.act = Act.REST
    run = {"agent": "helper", "input": "hi"}
    assert (await service.call("POST", "/v1/runs", json=run, token=ANN)).status_code == 202
    refused = await service.call("POST", "/v1/runs", json=run, token=ANN)
    problem = problem_of(refused, 429, "user_runs_full")
    assert (problem["limited"], problem["retry_after_s"], refused.headers["retry-after"]) == ("user", 5, "5")
    assert (await service.call("POST", "/v1/runs", json=run)).status_code == 202
    await service.call("PATCH", "/v1/organization", json={"limits_of_users": {}})
    assert (await service.call("POST", "/v1/runs", json=run, token=ANN)).status_code == 202


async def test_the_page_of_settings_sets_limits_of_each_user(service: Service) -> None:
    browser = await signed_in(service)
    organization = (await service.call("GET", "/v1/organization")).json()
    form = {
        "version": str(organization["version"]),
        "name": organization["name"],
        "first_use": organization["first_use"],
        "mcp_enabled": "on",
        "user_limits.calls": "120",
        "user_limits.max_active_runs": "5",
    }
    saved = await browse(service, "POST", "/console/settings", headers=browser, data=form)
    assert (saved.status_code, (await limits(service))["user_limits"]) == (200, LIMITS["user_limits"]), saved.text
    page = (await browse(service, "GET", "/console/settings", headers=browser)).text
    assert 'name="user_limits.calls" type="text" value="120"' in page
    form["version"] = str(organization["version"] + 1)
    for name, entered in (("calls", "many"), ("calls", "0"), ("per_s", "5"), ("max_active_runs", "0")):
        wrong = {**form, "user_limits.calls": "", f"user_limits.{name}": entered}
        refused = await browse(service, "POST", "/console/settings", headers=browser, data=wrong)
        assert (refused.status_code, 'aria-invalid="true"' in refused.text) == (422, True)


async def test_the_page_of_people_shows_and_sets_limits_of_one_user(service: Service) -> None:
    await service.stores.user_access.add(a_user(), an_audit_event(1))
    await service.call("PATCH", "/v1/organization", json={"user_limits": LIMITS["user_limits"]})
    browser = await signed_in(service)

    async def save(**entered: str) -> tuple[int, str]:
        form = {f"user_limits.{name}": value for name, value in entered.items()}
        answer = await browse(service, "POST", f"/console/people/{USER}/limits", headers=browser, data=form)
        return answer.status_code, html.unescape(answer.text)

    page = (await browse(service, "GET", "/console/people", headers=browser)).text
    assert "120 requests in 60 s, 5 active runs" in page
    status, table = await save(max_active_runs="1")
    assert (status, "120 requests in 60 s, 1 active runs" in table) == (200, True)
    assert await limits(service) == LIMITS
    assert (await save(calls="3", per_s="1"))[0] == 200
    own = {"rate_limit": {"calls": 3, "per_s": 1.0}, "max_active_runs": None}
    assert (await limits(service))["limits_of_users"] == {USER: own}
    for wrong in ({"calls": "many"}, {"max_active_runs": "0"}, {"per_s": "2"}):
        assert (await save(**wrong))[0] == 422
    assert (await save())[0] == 200
    assert (await limits(service))["limits_of_users"] == {}
    viewer = await signed_in(service, token_of(Role.OPERATOR))
    answer = await browse(service, "POST", f"/console/people/{USER}/limits", headers=viewer, data={})
    assert answer.status_code == 403


async def test_limits_are_not_stored_for_who_may_not_see_the_list_that_answers(service: Service) -> None:
    await service.stores.user_access.add(a_user(), an_audit_event(1))
    token = await key_with(service, "settings-only", ["organization.manage"])
    browser = await signed_in(service, token)
    form = {"user_limits.max_active_runs": "1"}
    answer = await browse(service, "POST", f"/console/people/{USER}/limits", headers=browser, data=form)
    assert (answer.status_code, await limits(service)) == (403, NONE)


async def test_the_page_of_people_stays_where_it_is_when_a_user_is_changed(service: Service) -> None:
    for number in range(PAGE + 1):
        await service.stores.user_access.add(
            a_user(UserId(numbered("usr", number)), subject=f"user {number}"), an_audit_event(number)
        )
    browser = await signed_in(service)
    first = (await browse(service, "GET", "/console/people", headers=browser)).text
    [link] = re.findall(r'href="(/console/people\?cursor=[^"]+)"', first)
    older = (await browse(service, "GET", link, headers=browser)).text
    [path] = re.findall(r'hx-post="(\S+/limits[^"]*)"', older)
    for action, form in (
        (path, {"user_limits.max_active_runs": "1"}),
        (path.replace("/limits", ""), {"role": "admin"}),
    ):
        answer = (await browse(service, "POST", action, headers=browser, data=form)).text
        assert re.findall(r'hx-post="(\S+/limits[^"]*)"', answer) == [path]


async def test_what_keys_do_counts_for_who_made_them_where_the_organization_says_so(service: Service) -> None:
    key = ApiKeyId("key_of_ann")
    service.state.keys[key] = replace(a_key(key, token=ANN, role=Role.RUNNER), person_id=USER)
    await service.call("POST", "/v1/agents", json={"name": "helper", "model": MODEL})
    once = {"max_active_runs": 1, "rate_limit": None}
    await service.call("PATCH", "/v1/organization", json={"user_limits": once})
    service.worker.act = Act.REST
    run = {"agent": "helper", "input": "hi"}
    for _ in range(2):
        assert (await service.call("POST", "/v1/runs", json=run, token=ANN)).status_code == 202
    changed = await service.call("PATCH", "/v1/organization", json={"keys_count_for_users": True})
    assert changed.json()["keys_count_for_users"] is True
    problem_of(await service.call("POST", "/v1/runs", json=run, token=ANN), 429, "user_runs_full")
    limited = {"rate_limit": {"calls": 1, "per_s": 60}}
    await service.call("PATCH", "/v1/organization", json={"user_limits": limited})
    assert (await service.call("GET", "/v1/agents", token=ANN)).status_code == 200
    refused = await service.call("GET", "/v1/agents", token=ANN)
    problem_of(refused, 429, "rate_limited")
    assert 0 < int(refused.headers["retry-after"]) <= 60
    settings = (await browse(service, "GET", "/console/settings", headers=await signed_in(service))).text
    assert 'name="keys_count_for_users" value="on" checked' in settings
