"""Agents in the console: lists and pages for everybody, changes for admins, and two of them at
once."""

import html
import re
from typing import cast

import httpx
import pytest

from domain.identity.role import Role
from tests.composition import MODEL
from tests.integration.http.service import OTHER_ADMIN, Service, token_of
from tests.integration.http.test_console import browse, signed_in

RULE = {"decision": "require_approval", "max_calls": 2, "arguments_schema": {"type": "object"}}
GUIDE = {
    "name": "guide",
    "model": MODEL,
    "instructions": "\nBe brief.\nNever guess.",
    "tools": ["send_email", "create_calendar_event"],
    "tool_policies": {"send_*": RULE},
    "limits": {"max_turns": 5, "max_cost_usd": None},
    "canary_tokens": [{"id": "trap", "token": "a-very-secret-canary"}],
}


async def guide_of(service: Service, **settings: object) -> str:
    created = await service.call("POST", "/v1/agents", json={**GUIDE, **settings})
    assert created.status_code == 201, created.text
    agent_id: str = created.json()["id"]
    return agent_id


def fields_of(page: httpx.Response, after: str = 'id="agent-form"') -> dict[str, str]:
    """What a browser would send of the form as it stands; it begins behind some text of the
    page."""
    form = re.sub(r"<template.*?</template>", "", page.text.partition(after)[2], flags=re.DOTALL)
    values: dict[str, str] = {}
    for tag in re.findall(r"<input [^>]*>", form):
        name = re.search(r'name="([^"]*)"', tag)
        value = re.search(r'value="([^"]*)"', tag)
        is_box = 'type="checkbox"' in tag or 'type="radio"' in tag
        if name is not None and (not is_box or " checked" in tag):
            values[name[1]] = html.unescape(value[1]) if value else ""
    for name_, text in re.findall(r'<textarea [^>]*name="([^"]*)"[^>]*>\n(.*?)</textarea>', form, flags=re.DOTALL):
        values[name_] = html.unescape(text)
    for name_, options in re.findall(r'<select [^>]*name="([^"]*)"[^>]*>(.*?)</select>', form, flags=re.DOTALL):
        chosen = re.search(r'value="([^"]*)" selected', options) or re.search(r'value="([^"]*)"', options)
        values[name_] = chosen[1] if chosen else ""
    return values


async def form_of(service: Service, browser: dict[str, str], agent_id: str) -> dict[str, str]:
    page = await browse(service, "GET", f"/console/agents/{agent_id}/edit", headers={"cookie": browser["cookie"]})
    assert page.status_code == 200
    return fields_of(page)


async def saved(service: Service, agent_id: str) -> dict[str, object]:
    document: dict[str, object] = (await service.call("GET", f"/v1/agents/{agent_id}")).json()
    return document


async def test_saving_a_form_that_nobody_touched_makes_no_version(service: Service) -> None:
    agent_id = await guide_of(service)
    before = await saved(service, agent_id)
    browser = await signed_in(service)
    fields = await form_of(service, browser, agent_id)
    answer = await browse(service, "POST", f"/console/agents/{agent_id}", headers=browser, data=fields)
    assert answer.headers["hx-redirect"] == f"/console/agents/{agent_id}"
    assert await saved(service, agent_id) == before


async def test_what_is_entered_is_what_the_api_reads_back(service: Service) -> None:
    browser = await signed_in(service)
    page = await browse(service, "GET", "/console/agents/new", headers={"cookie": browser["cookie"]})
    fields = fields_of(page) | {
        "name": "clerk",
        "model": MODEL,
        "fallback_models": f"{MODEL}\n\n",
        "instructions": "Write.\r\nThen stop.",
        "tools.send_email": "on",
        "allowlist": "listed",
        "allowlist_entries": "send_*\ncreate_calendar_event",
        "limits.max_turns": "7",
        "limits.timeout_s": "1.5",
        "output_schema": '{"type": "object", "properties": {"b": {}, "a": {}}}',
        "model_settings.effort": "low",
        "model_settings.temperature": "0.5",
        "model_settings.max_output_tokens": "900",
        "model_settings.parallel_tool_calls": "no",
        "model_settings.stop": "END\n\nSTOP",
        "model_settings.extra_body": '{"top_k": 3}',
        "rule.n1.pattern": "send_email",
        "rule.n1.decision": "deny",
        "rule.n1.on_block": "halt",
        "rule.n1.allowed": "none",
        "rule.n1.denied_params": "to, cc",
        "rule.n1.idempotent": "no",
        "rule.n1.timeout_s": "2.5",
        "rule.n1.approver_groups": "Support leads, Finance",
        "rule.n1.approver_people": "usr_ann",
        "rule.n1.when_groups": "Support leads, Finance",
        "rule.n1.when_people": "usr_ann",
        "rule.n1.when_hours": "08:00-18:00",
        "rule.n1.when_days": "mon, fri",
        "rule.n1.when_time_zone": "Europe/Berlin",
        "rule.n1.arguments_schema": '{"maxProperties": 1}',
        "rule.n2.pattern": "",
        "rule.n2.decision": "",
        "canary.n3.id": "trap",
        "canary.n3.token": "a-very-secret-canary",
    }
    answer = await browse(service, "POST", "/console/agents", headers=browser, data=fields)
    agent = await saved(service, answer.headers["hx-redirect"].rpartition("/")[2])
    assert agent["fallback_models"] == [MODEL]
    assert agent["instructions"] == "Write.\nThen stop."
    assert (agent["tools"], agent["tool_allowlist"]) == (["send_email"], ["send_*", "create_calendar_event"])
    assert agent["tool_policies"] == {
        "send_email": {
            "decision": "deny",
            "on_block": "halt",
            "allowed_params": [],
            "denied_params": ["to", "cc"],
            "idempotent": False,
            "timeout_s": 2.5,
            "approvers": {"people": ["usr_ann"], "groups": ["Support leads", "Finance"]},
            "when": {
                "people": ["usr_ann"],
                "groups": ["Support leads", "Finance"],
                "days": ["mon", "fri"],
                "hours": "08:00-18:00",
                "time_zone": "Europe/Berlin",
            },
            "arguments_schema": {"maxProperties": 1},
        }
    }
    assert agent["canary_tokens"] == [{"id": "trap", "per_run": False}]
    assert agent["enabled"] is True
    assert agent["output_schema"] == {"type": "object", "properties": {"b": {}, "a": {}}}
    settings = cast("dict[str, object]", agent["model_settings"])
    assert {name: value for name, value in settings.items() if value is not None} == {
        "effort": "low",
        "temperature": 0.5,
        "max_output_tokens": 900,
        "parallel_tool_calls": False,
        "stop": ["END", "STOP"],
        "extra_body": {"top_k": 3},
    }
    agent_id = str(agent["id"])
    again = await form_of(service, browser, agent_id)
    await browse(service, "POST", f"/console/agents/{agent_id}", headers=browser, data=again)
    assert (await saved(service, agent_id))["version"] == 1


@pytest.mark.parametrize(
    ("entered", "field"),
    [
        ({"name": " "}, "name"),
        ({"model": "nothing"}, "model"),
        ({"fallback_models": "nothing"}, "fallback_models"),
        ({"limits.max_turns": "many"}, "limits-max_turns"),
        ({"limits.max_turns": "0"}, "limits-max_turns"),
        ({"daily_budget_usd": "-1"}, "daily_budget_usd"),
        ({"model_settings.temperature": "3"}, "model_settings-temperature"),
        ({"model_settings.seed": "1"}, "model_settings-seed"),
        ({"model_settings.extra_body": "[]"}, "model_settings-extra_body"),
        ({"model_settings.extra_body": '{"tools": []}'}, "model_settings-extra_body"),
        ({"agents": "nobody"}, "agents"),
        ({"rule.n1.pattern": "a b"}, "rule-n1-pattern"),
        ({"rule.n1.decision": "deny"}, "rule-n1-pattern"),
        ({"rule.n1.pattern": "send_*"}, "rule-n1-pattern"),
        ({"rule.n1.pattern": "x", "rule.n1.max_calls": "0"}, "rule-n1-max_calls"),
        ({"rule.n1.pattern": "x", "rule.n1.max_calls": "1.5"}, "rule-n1-max_calls"),
        ({"rule.n1.pattern": "x", "rule.n1.arguments_schema": "[1"}, "rule-n1-arguments_schema"),
        ({"rule.n1.pattern": "x", "rule.n1.arguments_schema": '{"const": 1e999}'}, "rule-n1-arguments_schema"),
        ({"rule.n1.pattern": "x", "rule.n1.arguments_schema": '{"type": "objekt"}'}, "rule-n1-arguments_schema"),
        (
            {
                "rule.n1.pattern": "x",
                "rule.n1.allowed": "these",
                "rule.n1.allowed_names": "a",
                "rule.n1.denied_params": "a",
            },
            "rule-n1-denied_params",
        ),
        ({"canary.n1.id": "new", "canary.n1.token": "short"}, "canary-n1-token"),
        ({"canary.n1.id": "not there"}, "canary-n1-token"),
        ({"canary.n1.id": "a b", "canary.n1.token": "another-secret-canary"}, "canary-n1-id"),
    ],
)
async def test_what_is_wrong_is_said_at_its_field_and_what_was_entered_stays(
    service: Service, entered: dict[str, str], field: str
) -> None:
    agent_id = await guide_of(service)
    browser = await signed_in(service)
    fields = await form_of(service, browser, agent_id) | entered
    answer = await browse(service, "POST", f"/console/agents/{agent_id}", headers=browser, data=fields)
    assert answer.status_code == 422
    assert re.findall(r'<p class="fault" id="([^"]+)-fault">', answer.text) == [field]
    assert re.search(rf'id="{re.escape(field)}"[^>]*aria-invalid="true"', answer.text)
    again = fields_of(answer)
    for name, value in entered.items():
        assert again[name] == ("" if name.endswith(".token") else value)
    assert ("must be entered again" in answer.text) == ("canary.n1.token" in entered)
    assert (await saved(service, agent_id))["version"] == 1


async def test_two_who_edit_at_once_see_each_others_changes_and_lose_none(service: Service) -> None:
    agent_id = await guide_of(service)
    browser = await signed_in(service)
    fields = await form_of(service, browser, agent_id)
    theirs = {"instructions": "Be kind.", "limits": {"max_turns": 9}}
    await service.call("PATCH", f"/v1/agents/{agent_id}", json=theirs)
    mine = fields | {"description": "Answers.", "instructions": "Be quick."}
    refused = await browse(service, "POST", f"/console/agents/{agent_id}", headers=browser, data=mine)
    assert refused.status_code == 412
    assert "version 2 was saved meanwhile" in refused.text
    assert "by a key at" in refused.text
    assert "Be kind." in refused.text
    assert "<strong>instructions</strong>" in refused.text
    assert (await saved(service, agent_id))["version"] == 2
    again = fields_of(refused)
    assert (again["version"], again["limits.max_turns"]) == ("2", "9")
    assert (again["description"], again["instructions"]) == ("Answers.", "Be quick.")
    await browse(service, "POST", f"/console/agents/{agent_id}", headers=browser, data=again)
    agent = await saved(service, agent_id)
    assert (agent["version"], agent["description"], agent["instructions"]) == (3, "Answers.", "Be quick.")
    assert agent["tool_policies"] == {"send_*": RULE}


async def test_the_page_says_who_changed_what_version_by_version(service: Service) -> None:
    agent_id = await guide_of(service)
    changes = {"instructions": "Be brief.\nAlways guess.", "tool_policies": {"send_*": {"decision": "deny"}}}
    await service.call("PATCH", f"/v1/agents/{agent_id}", json=changes)
    viewer = await signed_in(service, token_of(Role.VIEWER))
    page = (await browse(service, "GET", f"/console/agents/{agent_id}", headers={"cookie": viewer["cookie"]})).text
    assert re.search(r"Version 2</strong>.*?a key", page, flags=re.DOTALL)
    assert re.search(r'<li class="added"><ins><span class="sign">\+</span> Always guess.</ins>', page)
    assert re.search(r'<li class="removed"><del><span class="sign">−</span> Never guess.</del>', page)
    assert "tool_policies · send_*" in page
    assert "a-very-secret-canary" not in page


async def test_the_history_goes_on_where_a_page_of_it_ends(service: Service) -> None:
    agent_id = await guide_of(service)
    for turns in range(10, 22):
        await service.call("PATCH", f"/v1/agents/{agent_id}", json={"limits": {"max_turns": turns}})
    browser = {"cookie": (await signed_in(service))["cookie"]}
    page = (await browse(service, "GET", f"/console/agents/{agent_id}", headers=browser)).text
    assert re.findall(r"Version (\d+)<", page) == [str(number) for number in range(13, 3, -1)]
    more = re.search(r'hx-get="(/console/agents/[^"]+cursor=[^"]+)"', page)
    assert more is not None
    older = (await browse(service, "GET", html.unescape(more[1]), headers=browser)).text
    assert re.findall(r"Version (\d+)<", older) == ["3", "2", "1"]
    assert "The first version." in older


async def test_a_draft_is_explained_with_the_rule_that_decides_and_nothing_is_saved(service: Service) -> None:
    await service.call("PATCH", "/v1/organization", json={"tool_policies": {"create_*": {"decision": "deny"}}})
    agent_id = await guide_of(service)
    browser = await signed_in(service)
    draft = await form_of(service, browser, agent_id) | {
        "rule.n1.pattern": "create_calendar_event",
        "rule.n1.decision": "allow",
        "rule.n2.pattern": "send_mail",
        "rule.n2.decision": "deny",
        "allowlist": "listed",
        "allowlist_entries": "send_*\ncreate_*\nnothing_*",
    }
    said = html.unescape((await browse(service, "POST", "/console/agents/explain", headers=browser, data=draft)).text)
    assert "Requires approval: a person decides about each call, by the agent's rule send_*." in said
    assert "At most 2 calls in a run, by the agent's rule send_*." in said
    assert "Blocked: the model is not shown it, and its calls are refused, by the organization's rule create_*." in said
    assert "Has no effect in decision: that is decided by the organization's rule create_*" in said
    assert "Fits no tool of this agent; did you mean 'send_email'?" in said
    assert "The entry nothing_* of the allowlist fits no tool of this agent" in said
    hidden = await browse(
        service, "POST", "/console/agents/explain", headers=browser, data=draft | {"allowlist": "nothing"}
    )
    assert hidden.text.count("tool_allowlist does not have it") == 2
    unreadable = await browse(
        service, "POST", "/console/agents/explain", headers=browser, data=draft | {"rule.n1.max_calls": "x"}
    )
    assert "rule create_calendar_event, max calls: must be a whole number" in html.unescape(unreadable.text)
    assert (await saved(service, agent_id))["version"] == 1


@pytest.mark.requirement("C2")
async def test_tools_of_servers_are_explained_once_they_are_known_and_others_named_as_unknown(
    service: Service,
) -> None:
    for slug in ("files", "later"):
        body = {"slug": slug, "kind": "custom", "command": f"{slug}-server"}
        await service.call("POST", "/v1/mcp-servers", json=body)
    await service.call("POST", "/v1/mcp-servers/files/refresh")
    settings = {"mcp_servers": ["later", "files"], "tools": []}
    agent_id = await guide_of(service, **settings, tool_policies={"mcp__*": RULE, "mcp__later__*": RULE})
    browser = await signed_in(service)
    fields = await form_of(service, browser, agent_id)
    assert [name for name in fields if name.startswith("servers.")] == ["servers.later", "servers.files"]
    said = html.unescape((await browse(service, "POST", "/console/agents/explain", headers=browser, data=fields)).text)
    assert "mcp__files__echo" in said
    assert "by the agent's rule mcp__*." in said
    assert re.search(r"The tools of <span class=\"mono\">later</span> are not known: .+\.", said)
    assert "Without effect" not in said, "a rule for tools that may come is not idle"


async def test_an_agent_is_stopped_let_go_on_and_deleted(service: Service) -> None:
    agent_id = await guide_of(service)
    browser = await signed_in(service)
    path = f"/console/agents/{agent_id}"
    await browse(service, "POST", f"{path}/enabled", headers=browser, data={"enabled": "no"})
    assert (await saved(service, agent_id))["enabled"] is False
    await browse(service, "POST", f"{path}/enabled", headers=browser, data={"enabled": "yes"})
    assert (await saved(service, agent_id))["enabled"] is True
    await service.call("POST", "/v1/agents", json={"name": "グ", "model": MODEL})
    by_name = await browse(service, "POST", "/console/agents/グ/enabled", headers=browser, data={"enabled": "no"})
    assert by_name.headers["hx-redirect"].startswith("/console/agents/agt_")
    stopped = await browse(service, "POST", f"{path}/cancel-runs", headers=browser)
    assert "0 cancelled, 0 stopping" in stopped.text
    deleted = await browse(service, "POST", f"{path}/delete", headers=browser)
    assert deleted.headers["hx-redirect"] == "/console/agents"
    assert (await service.call("GET", f"/v1/agents/{agent_id}")).status_code == 404


@pytest.mark.requirement("C6")
async def test_agents_are_read_by_viewers_changed_by_admins_and_unknown_to_other_organizations(
    service: Service,
) -> None:
    agent_id = await guide_of(service)
    viewer, stranger = await signed_in(service, token_of(Role.VIEWER)), await signed_in(service, OTHER_ADMIN)
    page = await browse(service, "GET", f"/console/agents/{agent_id}", headers={"cookie": viewer["cookie"]})
    assert page.status_code == 200
    assert "hx-post" not in page.text.partition("<main")[2]
    admin = await signed_in(service)
    fields = await form_of(service, admin, agent_id) | {"name": "other"}
    at = f"/console/agents/{agent_id}"
    for method, path, data in (
        ("GET", "/console/agents/new", {}),
        ("GET", f"{at}/edit", {}),
        ("POST", "/console/agents", fields),
        ("POST", at, fields),
        ("POST", f"{at}/enabled", {"enabled": "no"}),
        ("POST", f"{at}/cancel-runs", {}),
        ("POST", f"{at}/delete", {}),
    ):
        refused = await browse(service, method, path, headers=viewer, data=data)
        assert refused.status_code == 403, path
        if path.startswith(at):
            missing = await browse(service, method, path, headers=stranger, data=data)
            assert missing.status_code == 404, path
        if method == "POST":
            forged = await browse(service, method, path, headers={"cookie": admin["cookie"]}, data=data)
            assert forged.status_code == 403, path
    for path in (at, f"{at}/history"):
        assert (await browse(service, "GET", path, headers=stranger)).status_code == 404
    theirs = (await browse(service, "GET", "/console/agents", headers=stranger)).text
    assert "guide" not in theirs.partition("<main")[2].partition("</main>")[0]
    assert (await saved(service, agent_id))["version"] == 1


async def test_the_list_names_model_state_version_and_last_run(service: Service) -> None:
    agent_id = await guide_of(service)
    run = (await service.call("POST", "/v1/runs", json={"agent": "guide", "input": "hello"})).json()["id"]
    await guide_of(service, name="<b>idle</b>", enabled=False)
    browser = {"cookie": (await signed_in(service))["cookie"]}
    page = (await browse(service, "GET", "/console/agents", headers=browser)).text
    assert f"/console/runs/{run}" in page
    assert f"/console/agents/{agent_id}" in page
    assert "&lt;b&gt;idle&lt;/b&gt;" in page
    assert 'class="status disabled"' in page
