"""Rules for people and times over HTTP and in the console: saved, refused, warned about, and
explained."""

import html
from urllib.parse import quote

import pytest

from domain.identity.role import Role
from tests.integration.http.service import Service, paths_of, problem_of, token_of
from tests.integration.http.test_console import browse, signed_in
from tests.integration.http.test_tool_policies import GUIDE

pytestmark = pytest.mark.requirement("P6")
WHEN = {"people": ["key_runner"], "days": ["thu"], "hours": "08:00-18:00", "time_zone": "Europe/Berlin"}
POLICIES = {"send_*": {"decision": "deny"}, "send_email": {"decision": "allow", "when": WHEN}}
THURSDAY, FRIDAY = "2026-01-01T09:00:00+01:00", "2026-01-02T09:00:00+01:00"


async def explained(service: Service, person: str, at: str) -> tuple[object, list[str]]:
    path = f"/v1/tools/send_email/explain?agent=guide&person={person}&at={quote(at)}"
    answer = (await service.call("GET", path)).json()
    return answer["standing"], answer["reasons"]


async def test_a_condition_is_saved_and_an_explanation_is_for_a_person_at_a_time(service: Service) -> None:
    created = await service.call("POST", "/v1/agents", json={**GUIDE, "tool_policies": POLICIES})
    assert created.status_code == 201
    assert (await service.call("GET", "/v1/agents/guide")).json()["tool_policies"] == POLICIES

    standing, reasons = await explained(service, "key_runner", THURSDAY)
    assert (standing, reasons[1]) == ("allowed", "The agent's rule send_email: its condition holds.")
    standing, reasons = await explained(service, "key_runner", FRIDAY)
    assert (standing, reasons[1]) == (
        "blocked",
        "The agent's rule send_email does not apply: fri in Europe/Berlin is not one of its days.",
    )
    standing, reasons = await explained(service, "schedule:sch_1", THURSDAY)
    assert (standing, reasons[1]) == (
        "blocked",
        "The agent's rule send_email does not apply: it is not known who acts, or in which groups they are.",
    )
    problem_of(await service.call("GET", "/v1/tools/send_email/explain?agent=guide&at=noon"), 422, "parameters_invalid")


async def test_who_cannot_read_groups_is_not_told_about_others(service: Service) -> None:
    await service.call("POST", "/v1/agents", json={**GUIDE, "tool_policies": POLICIES})
    path, operator = "/v1/tools/send_email/explain?agent=guide&person=", token_of(Role.OPERATOR)
    problem_of(await service.call("GET", path + "key_runner", token=operator), 403, "role_insufficient")
    problem_of(await service.call("GET", path + "usr_nope", token=operator), 403, "role_insufficient")
    assert (await service.call("GET", path + "key_operator", token=operator)).status_code == 200


async def test_an_explanation_needs_a_person_who_exists(service: Service) -> None:
    await service.call("POST", "/v1/agents", json={**GUIDE, "tool_policies": POLICIES})
    path = "/v1/tools/send_email/explain?agent=guide&person="
    problem_of(await service.call("GET", path + "usr_nope"), 404, "user_not_found")
    problem_of(await service.call("GET", path + "nobody"), 404, "api_key_not_found")
    problem_of(await service.call("GET", path), 422, "parameters_invalid")


async def test_the_page_of_an_agent_asks_for_a_person_only_of_who_reads_groups(service: Service) -> None:
    agent = (await service.call("POST", "/v1/agents", json={**GUIDE, "tool_policies": POLICIES})).json()
    path = f"/console/agents/{agent['id']}"
    for role, shown in ((Role.ADMIN, True), (Role.OPERATOR, False)):
        browser = {"cookie": (await signed_in(service, token_of(role)))["cookie"]}
        page = (await browse(service, "GET", path, headers=browser)).text
        assert ('name="as"' in page, 'name="at"' in page) == (shown, True)
    operator = {"cookie": (await signed_in(service, token_of(Role.OPERATOR)))["cookie"]}
    assert (await browse(service, "GET", path + "?as=key_runner", headers=operator)).status_code == 403


@pytest.mark.parametrize(
    ("rule", "code", "path"),
    [
        ({"decision": "deny", "when": {}}, "tool_policy_invalid", "when"),
        ({"when": {"groups": ["Leads"]}}, "tool_policy_invalid", "when"),
        ({"decision": "deny", "when": {"hours": "8-18"}}, "tool_policy_invalid", "when.hours"),
        ({"decision": "deny", "when": {"days": ["mon"], "time_zone": "Mars"}}, "tool_policy_invalid", "when.time_zone"),
        ({"decision": "deny", "when": {"days": ["monday"]}}, "body_invalid", "when.days.0"),
        ({"decision": "deny", "when": {"teams": ["x"]}}, "body_invalid", "when.teams"),
    ],
)
async def test_a_condition_that_cannot_be_is_refused_with_its_place(
    service: Service, rule: dict[str, object], code: str, path: str
) -> None:
    answer = await service.call("POST", "/v1/agents", json={**GUIDE, "tool_policies": {"x": rule}})
    assert paths_of(problem_of(answer, 422, code)) == [f"tool_policies.x.{path}"]


async def test_groups_and_people_that_do_not_exist_are_warned_about_when_saved(service: Service) -> None:
    policies = {"send_email": {"decision": "deny", "when": {"groups": ["Leads"], "people": ["usr_gone"]}}}
    created = await service.call("POST", "/v1/agents", json={**GUIDE, "tool_policies": policies})
    assert created.json()["warnings"] == [
        "tool_policies.send_email: when: no group has the name 'Leads'",
        "tool_policies.send_email: when: no user or API key has the id usr_gone",
    ]


async def test_the_list_of_an_agents_tools_is_that_of_the_caller(service: Service) -> None:
    admin = {"send_*": {"decision": "deny"}, "send_email": {"decision": "allow", "when": {"people": ["key_admin"]}}}
    for policies, expected in ((admin, ["send_email"]), (POLICIES, [])):
        body = {**GUIDE, "name": f"guide{len(expected)}", "tool_policies": policies}
        await service.call("POST", "/v1/agents", json=body)
        listed = (await service.call("GET", f"/v1/tools?agent={body['name']}")).json()["data"]
        assert [tool["name"] for tool in listed] == expected


async def test_the_page_of_an_agent_explains_its_tools_for_a_person_at_a_time(service: Service) -> None:
    agent = (await service.call("POST", "/v1/agents", json={**GUIDE, "tool_policies": POLICIES})).json()
    browser = {"cookie": (await signed_in(service))["cookie"]}
    path = f"/console/agents/{agent['id']}?as=key_runner&at="
    thursday = html.unescape((await browse(service, "GET", path + quote(THURSDAY), headers=browser)).text)
    assert "The agent's rule send_email: its condition holds." in thursday
    friday = html.unescape((await browse(service, "GET", path + quote(FRIDAY), headers=browser)).text)
    assert "send_email does not apply: fri in Europe/Berlin is not one of its days." in friday
    assert (await browse(service, "GET", path + "noon", headers=browser)).status_code == 422


async def test_a_fault_of_a_condition_is_shown_at_its_field(service: Service) -> None:
    browser = await signed_in(service)
    fields = {
        "name": "clerk",
        "model": "scripted:demo.yaml",
        "rule.n1.pattern": "send_email",
        "rule.n1.decision": "deny",
        "rule.n1.when_hours": "8-18",
    }
    page = (await browse(service, "POST", "/console/agents", headers=browser, data=fields)).text
    assert "must be two times of a day, such as 08:00-18:00" in page.partition("rule.n1.when_hours")[2]
