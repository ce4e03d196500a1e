"""Areas of the console over the same use cases as the API: schedules, threads, files, gateway
sessions, budgets, stops."""

import re

import httpx
import pytest

from domain.identity.role import Role
from tests.composition import MODEL
from tests.integration.http.service import OTHER_ADMIN, Service, token_of
from tests.integration.http.test_canaries import a_halted_run
from tests.integration.http.test_console import browse, signed_in, waiting_run
from tests.integration.http.test_webhooks import URL, started

pytestmark = pytest.mark.requirement("U6")


async def page(service: Service, path: str, token: str | None = None) -> str:
    answer = await browse(service, "GET", f"/console{path}", headers=await signed_in(service, token))
    assert answer.status_code == 200, answer.text
    return answer.text


async def send(service: Service, path: str, token: str | None = None, **data: str) -> httpx.Response:
    return await browse(service, "POST", f"/console{path}", headers=await signed_in(service, token), data=data)


async def an_agent(service: Service, **settings: object) -> str:
    body = {"name": "guide", "model": MODEL, **settings}
    return str((await service.call("POST", "/v1/agents", json=body)).json()["id"])


async def test_a_schedule_is_made_shown_with_its_next_five_times_paused_and_deleted(service: Service) -> None:
    agent = await an_agent(service)
    form = {"name": "daily", "cron": "0 8 * * *", "timezone": "Europe/Vienna", "agent": agent, "input": "Good morning"}
    assert (await send(service, "/schedules", **form)).headers["hx-redirect"] == "/console/schedules"
    shown = await page(service, "/schedules")
    assert len(re.findall(r"<li><time", shown)) == 5
    wrong = await send(service, "/schedules", **{**form, "cron": "every day"})
    assert (wrong.status_code, wrong.headers["hx-retarget"]) == (422, "#faults")
    [schedule] = (await service.call("GET", "/v1/schedules")).json()["data"]
    viewer = token_of(Role.VIEWER)
    assert (await send(service, f"/schedules/{schedule['id']}/enabled", viewer, enabled="no")).status_code == 403
    assert "New schedule" not in await page(service, "/schedules", viewer)
    await send(service, f"/schedules/{schedule['id']}/enabled", enabled="no")
    paused = await page(service, "/schedules")
    assert "paused" in paused
    assert "<li><time" not in paused
    edit = f"/schedules/{schedule['id']}"
    assert "Good morning" in await page(service, edit)
    changed = {**form, "version": str(schedule["version"] + 1), "cron": "30 9 * * *", "input": "Good day"}
    assert (await send(service, edit, viewer, **changed)).status_code == 403
    assert (await send(service, edit, **{**changed, "version": "1"})).status_code == 412
    refused = await send(service, edit, **{**changed, "cron": "late"})
    assert 'data-field="cron"' in refused.text
    assert (await send(service, edit, **changed)).headers["hx-redirect"] == "/console/schedules"
    now = (await service.call("GET", f"/v1/schedules/{schedule['id']}")).json()
    assert (now["cron"], now["enabled"], now["input"][0]["text"]) == ("30 9 * * *", False, "Good day")
    await send(service, f"/schedules/{schedule['id']}/delete")
    assert "No schedules yet" in await page(service, "/schedules")


async def test_a_thread_is_found_released_from_quarantine_and_deleted(service: Service) -> None:
    thread = (await a_halted_run(service))["thread_id"]
    assert "quarantined" in await page(service, "/threads")
    assert "In quarantine since" in await page(service, f"/threads/{thread}")
    assert (await send(service, f"/threads/{thread}/release", token_of(Role.RUNNER))).status_code == 403
    await send(service, f"/threads/{thread}/release")
    assert "quarantined" not in await page(service, "/threads")
    assert (await send(service, f"/threads/{thread}/release")).status_code == 409
    stranger = await signed_in(service, OTHER_ADMIN)
    assert (await browse(service, "GET", f"/console/threads/{thread}", headers=stranger)).status_code == 404
    await send(service, f"/threads/{thread}/delete")
    assert (await service.call("GET", f"/v1/threads/{thread}")).status_code == 404


async def test_only_who_may_delete_a_thread_and_its_files_is_offered_it(service: Service) -> None:
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})
    runner, operator = token_of(Role.RUNNER), token_of(Role.OPERATOR)
    own, others = [
        (await service.call("POST", "/v1/runs", json={"agent": "guide", "input": "hello"}, token=token)).json()[
            "thread_id"
        ]
        for token in (runner, operator)
    ]
    for thread in (own, others):
        adder = await signed_in(service)
        await service.client.post(
            f"/console/threads/{thread}/sources", headers=adder, files={"file": ("notes.txt", b"apples: 42")}
        )
    for thread, token, is_offered in (
        (own, runner, True),
        (others, runner, False),
        (own, operator, True),
        (own, token_of(Role.VIEWER), False),
    ):
        shown = await page(service, f"/threads/{thread}", token)
        assert ("Delete the thread" in shown, "/delete" in shown.partition("<h2>Files")[2]) == (is_offered, is_offered)
    assert (await send(service, f"/threads/{others}/delete", runner)).status_code == 403
    assert "hx-redirect" in (await send(service, f"/threads/{own}/delete", runner)).headers


async def test_a_file_is_added_to_a_thread_downloaded_and_deleted(service: Service) -> None:
    thread = (await service.call("POST", "/v1/threads", json={})).json()["id"]
    browser = await signed_in(service)
    path = f"/console/threads/{thread}/sources"
    assert (await service.client.post(path, headers=browser, files={"other": b""})).status_code == 422
    added = await service.client.post(path, headers=browser, files={"file": ("notes.txt", b"apples: 42")})
    assert added.headers["hx-redirect"] == f"/console/threads/{thread}"
    shown = await page(service, f"/threads/{thread}")
    found = re.search(r'href="/console/sources/(src_\w+)" download>notes.txt', shown)
    assert found is not None
    download = await browse(service, "GET", f"/console/sources/{found[1]}", headers=browser)
    assert (download.content, download.headers["content-disposition"].split(";")[0]) == (b"apples: 42", "attachment")
    await send(service, f"/threads/{thread}/sources/{found[1]}/delete")
    assert "No files." in await page(service, f"/threads/{thread}")


async def test_a_gateway_session_is_opened_with_configurations_of_clients_and_revoked(service: Service) -> None:
    agent = await an_agent(service)
    opened = (await send(service, "/gateway", agent=agent, hours="24")).text
    token = re.search(r'value="(dgs_\w+)"', opened)
    assert token is not None
    assert opened.count(token[1]) > 10
    assert "claude_desktop_config.json" in opened
    [session] = (await service.call("GET", "/v1/gateway-sessions")).json()["data"]
    shown = await page(service, "/gateway")
    assert token[1] not in shown
    assert session["id"] in shown
    await send(service, f"/gateway/{session['id']}/revoke")
    assert "revoked" in await page(service, "/gateway")
    viewer = await signed_in(service, token_of(Role.VIEWER))
    assert (await browse(service, "GET", "/console/gateway", headers=viewer)).status_code == 403
    assert 'href="/console/gateway"' not in await page(service, "", token_of(Role.VIEWER))
    # Runners see the sessions that they opened, and open none here.
    own = await page(service, "/gateway", token_of(Role.RUNNER))
    assert session["id"] not in own
    assert "Open session" not in own


async def test_budgets_are_gauges_of_what_was_spent_today(service: Service) -> None:
    await an_agent(service, daily_budget_usd=2)
    shown = await page(service, "/budgets")
    assert 'value="0" aria-label="Budget of guide"' in shown
    assert "of $2.00" in shown


async def test_rates_are_gauges_of_the_calls_that_are_used_now(service: Service) -> None:
    key = {"name": "ci", "role": "viewer", "rate_limit": {"calls": 10, "per_s": 3600}}
    token = (await service.call("POST", "/v1/api-keys", json=key)).json()["token"]
    assert 'value="0" aria-label="Rate of ci, an hour"' in await page(service, "/budgets")
    await service.call("GET", "/v1/agents", token=token)
    shown = await page(service, "/budgets")
    assert 'value="10" aria-label="Rate of ci, an hour"' in shown
    assert "<strong>1</strong> of 10 an hour" in shown


async def test_all_runs_are_stopped_at_once_by_operators(service: Service) -> None:
    run_id, _ = await waiting_run(service)
    assert (await send(service, "/runs/stop", token_of(Role.RUNNER), all="yes")).status_code == 403
    for unclear in ({}, {"server": ""}, {"all": "no"}, {"all": "yes", "server": "nowhere"}):
        assert (await send(service, "/runs/stop", **unclear)).status_code == 422
    assert "1 cancelled" in (await send(service, "/runs/stop", all="yes")).text
    assert (await service.call("GET", f"/v1/runs/{run_id}")).json()["status"] == "cancelled"
    assert (await send(service, "/runs/stop", server="nowhere")).status_code == 404


async def test_deliveries_of_a_run_are_shown_and_sent_again(service: Service) -> None:
    run_id = (await started(service, URL)).json()["id"]
    assert f'hx-get="/console/runs/{run_id}/deliveries"' in await page(service, f"/runs/{run_id}")
    shown = await page(service, f"/runs/{run_id}/deliveries")
    assert "hooks.example.com" in shown
    found = re.search(r"/console/deliveries/(\w+)/retry", shown)
    assert found is not None
    assert (await send(service, f"/deliveries/{found[1]}/retry", token_of(Role.VIEWER))).status_code == 403
    again = await send(service, f"/deliveries/{found[1]}/retry")
    assert again.headers["hx-trigger"] == "deliveries-changed"
