"""Pages by which servers and runs are operated: a tool tried out, the calls of a server, two runs
compared."""

import csv
import html
from datetime import timedelta
from decimal import Decimal
from io import StringIO

import httpx
import pytest

from domain.identity.role import Role
from tests.builders import START
from tests.composition import MODEL
from tests.integration.http.gateway_caller import ECHO, an_agent
from tests.integration.http.service import OTHER_ADMIN, Service, token_of
from tests.integration.http.test_console import browse, signed_in, waiting_run
from tests.integration.http.test_usage import book

pytestmark = pytest.mark.requirement("U6")
TRY = "/servers/files/try"


async def page(service: Service, path: str, token: str | None = None, *, status: int = 200) -> str:
    answer = await browse(service, "GET", f"/console{path}", headers=await signed_in(service, token))
    assert answer.status_code == status, answer.text
    return html.unescape(answer.text)


async def send(service: Service, path: str, token: str | None = None, **data: str) -> httpx.Response:
    return await browse(service, "POST", f"/console{path}", headers=await signed_in(service, token), data=data)


async def an_agent_with_a_listed_server(service: Service, **settings: object) -> None:
    await an_agent(service, **settings)  # type: ignore[arg-type]
    assert (await service.call("POST", "/v1/mcp-servers/files/refresh")).status_code == 200


async def tried(service: Service, token: str | None = None, **data: str) -> httpx.Response:
    agents = (await service.call("GET", "/v1/agents")).json()["data"]
    return await send(service, TRY, token, agent=agents[0]["id"], tool="echo", **data)


async def test_a_tool_is_tried_under_the_policy_of_an_agent_and_is_audited_as_a_call_of_who_tried_it(
    service: Service,
) -> None:
    await an_agent_with_a_listed_server(service)
    form = await page(service, f"{TRY}?tool=echo")
    assert "toolbox: allowed" in form
    answer = await tried(service)
    assert (answer.status_code, ">succeeded<" in answer.text) == (200, True)
    assert '"method": "tools/call"' in html.unescape(answer.text)
    [entry] = (await service.call("GET", "/v1/audit-events?action=tool.executed")).json()["data"]
    assert (entry["tool"], entry["run_id"]) == (ECHO, None)
    calls = await page(service, "/servers/files/calls")
    assert ECHO in calls
    assert "No agent lists this server" not in calls


async def test_a_denied_tool_is_not_called_and_one_that_requires_approval_leads_to_it(service: Service) -> None:
    await an_agent_with_a_listed_server(
        service, tool_policies={ECHO: {"decision": "require_approval", "allow_self_approval": True}}
    )
    assert "toolbox: requires approval" in await page(service, f"{TRY}?tool=echo")
    asked = await tried(service)
    [approval] = (await service.call("GET", "/v1/approvals?state=pending")).json()["data"]
    assert f"/console/inbox?item=approval:{approval['id']}" in asked.text
    await service.call("POST", f"/v1/approvals/{approval['id']}", json={"decision": "approve"})
    assert ">succeeded<" in (await tried(service)).text
    agents = (await service.call("GET", "/v1/agents")).json()["data"]
    changed = {"tool_policies": {ECHO: {"decision": "deny"}}}
    await service.call("PATCH", f"/v1/agents/{agents[0]['id']}", json=changed)
    refusal = html.unescape((await tried(service)).text)
    assert ">blocked<" in refusal
    assert "the call was not sent" in refusal


async def test_what_cannot_be_called_is_refused(service: Service) -> None:
    await an_agent_with_a_listed_server(service)
    assert (await tried(service, token_of(Role.VIEWER))).status_code == 403
    assert "requires the role runner" in await page(service, f"{TRY}?tool=echo", token_of(Role.VIEWER))
    assert (await send(service, TRY, agent="guide", tool="other")).status_code == 404
    assert (await tried(service, json="[1]")).status_code == 422
    assert (await tried(service, json="{")).status_code == 422
    await page(service, f"{TRY}?tool=other", status=404)
    await page(service, f"{TRY}?tool=echo", OTHER_ADMIN, status=404)
    await page(service, "/servers/files/calls", OTHER_ADMIN, status=404)


async def test_two_runs_are_compared_and_one_is_offered_the_others_of_its_agent(service: Service) -> None:
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})
    started = [
        (await service.call("POST", "/v1/runs", json={"agent": "guide", "input": f"Say it {often}."})).json()["id"]
        for often in ("once", "twice")
    ]
    one, other = started
    compared = await page(service, f"/compare?run={one}&run={other}", token_of(Role.VIEWER))
    assert "Say it <mark>once</mark>." in compared
    assert "Say it <mark>twice</mark>." in compared
    offered = await page(service, f"/compare?run={one}")
    assert f"/console/compare?run={one}&run={other}" in offered
    assert f"/console/compare?run={one}" in await page(service, f"/runs/{one}")
    assert "Compare two" in await page(service, "/runs", token_of(Role.VIEWER))


async def test_runs_that_cannot_be_compared_are_refused(service: Service) -> None:
    await page(service, "/compare", status=422)
    await page(service, "/compare?run=run_unknown", status=404)


async def test_the_overview_draws_runs_by_hour_and_says_what_waits_and_for_whom(service: Service) -> None:
    await waiting_run(service)
    overview = await page(service, "/parts/overview")
    assert "for operators" in overview
    assert "No budget is set" in overview
    await service.call("PATCH", "/v1/organization", json={"daily_budget_usd": 5})
    assert 'aria-label="Budget of' in await page(service, "/parts/overview")
    charts = await page(service, "/parts/charts", token_of(Role.VIEWER))
    assert 'aria-label="Runs by hour: at most 1, at' in charts
    theirs = await page(service, "/parts/charts", OTHER_ADMIN)
    assert "Nothing in this time." in theirs


async def test_the_usage_is_a_table_for_spreadsheets(service: Service) -> None:
    book(service)
    browser = await signed_in(service, token_of(Role.VIEWER))
    today, yesterday = START.date(), START.date() - timedelta(days=1)
    answer = await browse(service, "GET", f"/console/usage.csv?since={yesterday}&until={today}", headers=browser)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/csv; charset=utf-8")
    rows = list(csv.DictReader(StringIO(answer.text)))
    assert {row["day"] for row in rows} == {str(today), str(yesterday)}
    assert sum(Decimal(row["cost_usd"]) for row in rows) == Decimal("0.0045")
    wrong = await browse(service, "GET", "/console/usage.csv?since=never", headers=browser)
    assert wrong.status_code == 422


async def test_the_cost_of_a_day_is_made_of_models_or_of_agents(service: Service) -> None:
    book(service)
    today = START.date()
    by_model = await page(service, f"/usage?since={today}&until={today}")
    assert "<strong>model</strong>" in by_model
    assert "<strong>agent</strong>" in await page(service, f"/usage?since={today}&until={today}&split=agent")


async def test_runs_without_an_event_are_requeued_from_the_page_of_the_queue(service: Service) -> None:
    assert "Let other workers continue them" in await page(service, "/queue")
    assert "Let other workers continue them" not in await page(service, "/queue", token_of(Role.RUNNER))
    assert "0 requeued" in (await send(service, "/queue/requeue", minutes="15")).text
    for wrong in ("", "0", "1441", "soon"):
        assert (await send(service, "/queue/requeue", minutes=wrong)).status_code == 422
    assert (await send(service, "/queue/requeue", token_of(Role.RUNNER), minutes="15")).status_code == 403


async def test_a_new_signing_key_of_webhooks_is_shown_once(service: Service) -> None:
    created = await send(service, "/settings/webhook-key")
    assert created.status_code == 200
    assert 'value="whsec_' in created.text
    assert "whsec_" not in await page(service, "/settings")
    assert (await send(service, "/settings/webhook-key", token_of(Role.OPERATOR))).status_code == 403
