"""The page of a run: what has happened at once, what waits for people, and their word on it."""

import html
import json
import re
from dataclasses import replace

import pytest

from domain.identity.role import Role
from domain.ids import ApprovalId, RunId
from domain.json_value import JsonObject
from domain.mcp.server_pin import ServerPin
from domain.runs.limits import IncompleteReason
from domain.runs.provider_error import ProviderError
from domain.runs.run import RunError, RunStatus
from tests.builders import START
from tests.composition import MODEL
from tests.integration.http.service import Act, Service, token_of
from tests.integration.http.test_console import browse, signed_in, waiting_run


async def pending_run(service: Service, act: Act) -> tuple[str, dict[str, str]]:
    """A run that waits for somebody: its id, and the hidden fields of the form for it."""
    service.worker.act = act
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})
    run_id = (await service.call("POST", "/v1/runs", json={"agent": "guide", "input": "hello"})).json()["id"]
    page = await browse(service, "GET", f"/console/runs/{run_id}", headers=await signed_in(service))
    fields = re.findall(r'<input type="hidden" name="(call|question)" value="([^"]+)"', page.text)
    service.worker.act = Act.FINISH
    return run_id, {name: html.unescape(value) for name, value in fields}


async def ended_run(
    service: Service,
    status: RunStatus,
    *,
    error: RunError | None = None,
    incomplete_reason: IncompleteReason | None = None,
    output_json: JsonObject | None = None,
) -> RunId:
    """A run that has ended like this: its id."""
    service.worker.act = Act.REST
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})
    await service.call("POST", "/v1/runs", json={"agent": "guide", "input": "hello"})
    stored = service.state.runs[service.worker.submitted[-1]]
    stored.run = stored.run.claimed(at=START).ended(
        status, at=START, output="So far", output_json=output_json, error=error, incomplete_reason=incomplete_reason
    )
    return stored.run.id


async def messages_of(service: Service, run_id: str) -> str:
    return str((await service.call("GET", f"/v1/runs/{run_id}/wait")).json()["messages"])


@pytest.mark.requirement("D5")
async def test_a_call_that_is_shown_to_people_is_settled_on_the_page_of_its_run(service: Service) -> None:
    run_id, fields = await pending_run(service, Act.ASK)
    browser = await signed_in(service)
    page = await browse(service, "GET", f"/console/runs/{run_id}", headers=browser)
    assert "ada@example.org" in page.text
    assert "mailto:ada%40example.org?subject=Hi&amp;body=Hello." in page.text
    viewer = await signed_in(service, token_of(Role.VIEWER))
    path, form = f"/console/runs/{run_id}/settle", {**fields, "result": "Sent at noon.", "outcome": "done"}
    assert (await browse(service, "POST", path, headers=viewer, data=form)).status_code == 403
    settled = await browse(service, "POST", path, headers=browser, data=form)
    assert 'class="status completed"' in settled.text
    assert "Sent at noon." in await messages_of(service, run_id)
    assert (await browse(service, "POST", path, headers=browser, data=form)).status_code == 409


@pytest.mark.requirement("D5")
async def test_a_call_that_was_not_done_is_told_to_the_model_as_a_failure(service: Service) -> None:
    run_id, fields = await pending_run(service, Act.ASK)
    form = {**fields, "result": "The address is wrong.", "outcome": "failed"}
    await browse(service, "POST", f"/console/runs/{run_id}/settle", headers=await signed_in(service), data=form)
    assert "'is_error': True" in await messages_of(service, run_id)


@pytest.mark.requirement("B4")
async def test_a_question_of_a_server_is_answered_by_a_form_of_its_schema(service: Service) -> None:
    run_id, fields = await pending_run(service, Act.ELICIT)
    browser = await signed_in(service)
    page = (await browse(service, "GET", f"/console/runs/{run_id}", headers=browser)).text
    assert "Which colour?" in page
    service.worker.act = Act.REST
    path = f"/console/runs/{run_id}/answer"
    refused = await browse(service, "POST", path, headers=browser, data={**fields, "action": "shrug"})
    assert refused.status_code == 422
    other = {**fields, "question": "2.colour", "action": "decline"}
    assert (await browse(service, "POST", path, headers=browser, data=other)).status_code == 422
    empty = await browse(service, "POST", path, headers=browser, data={**fields, "action": "accept"})
    assert (empty.status_code, empty.headers["hx-retarget"]) == (422, "#flash")
    answered = await browse(service, "POST", path, headers=browser, data={**fields, "action": "accept", "f0": "red"})
    assert answered.status_code == 200
    assert "Which colour?" not in answered.text
    again = await browse(service, "POST", path, headers=browser, data={**fields, "action": "accept", "f0": "red"})
    assert again.status_code == 422


@pytest.mark.requirement("E2")
async def test_the_events_of_a_run_come_at_once_in_order_and_from_any_point(service: Service) -> None:
    run_id, _ = await waiting_run(service)
    browser = await signed_in(service)
    page = (await browse(service, "GET", f"/console/runs/{run_id}/events", headers=browser)).json()
    stored = (await service.call("GET", f"/v1/runs/{run_id}/events?limit=100")).json()["data"]
    assert page["data"] == stored
    assert (page["last_seq"], page["more"], page["status"], page["is_over"]) == (
        stored[-1]["seq"],
        False,
        "requires_action",
        False,
    )
    rest = (await browse(service, "GET", f"/console/runs/{run_id}/events?after=2", headers=browser)).json()
    assert rest["data"] == stored[2:]
    stranger = await browse(service, "GET", "/console/runs/run_0/events", headers=browser)
    assert stranger.status_code == 404
    for nowhere in ("-1", f"{2**64}", "x"):
        wrong = await browse(service, "GET", f"/console/runs/{run_id}/events?after={nowhere}", headers=browser)
        assert wrong.status_code == 422


@pytest.mark.requirement("C3")
async def test_who_decided_stands_on_the_page_for_the_call(service: Service) -> None:
    run_id, approval_id = await waiting_run(service)
    browser = await signed_in(service)
    form = {"decision": "deny", "reason": "Not <b>today</b>."}
    await browse(service, "POST", f"/console/approvals/{approval_id}", headers=browser, data=form)
    state = (await browse(service, "GET", f"/console/runs/{run_id}/state", headers=browser)).text
    said = re.search(r'data-state="denied" data-by="([^"]+)" data-by-id="(key_[^"]+)" data-at="2', state)
    assert said is not None
    assert said[1] != said[2]
    assert 'data-reason="Not &lt;b&gt;today&lt;/b&gt;."' in state


@pytest.mark.requirement("C3", "B13", "S5")
async def test_hidden_characters_of_a_pending_call_are_shown_as_escapes(service: Service) -> None:
    run_id, approval_id = await waiting_run(service)
    stored = service.state.approvals[ApprovalId(approval_id)]
    hidden = {"file": "invoice\u202efdp.exe", "note": "ok\U000e0041"}
    service.state.approvals[stored.id] = replace(stored, arguments={**hidden})
    browser = await signed_in(service)
    for path in ("/console/approvals", f"/console/runs/{run_id}/state"):
        page = (await browse(service, "GET", path, headers=browser)).text
        assert "\u202e" not in page
        assert "\U000e0041" not in page
        assert "invoice\\u202efdp.exe" in page
        asked = re.search(r'name="arguments"[^>]*>([^<]*)<', page)
        assert asked is not None
        assert json.loads(html.unescape(asked[1])) == hidden  # what is approved unchanged is what was asked


@pytest.mark.requirement("C3", "S5")
async def test_the_server_behind_a_pending_call_is_shown(service: Service) -> None:
    _, approval_id = await waiting_run(service)
    stored = service.state.approvals[ApprovalId(approval_id)]
    pin = ServerPin(slug="mail", version=3, runs="custom mail-server --to\u202e all")
    service.state.approvals[stored.id] = replace(stored, server=pin)
    page = (await browse(service, "GET", "/console/approvals", headers=await signed_in(service))).text
    assert 'href="/console/servers/mail"' in page
    assert "version 3" in page
    assert "custom mail-server --to\\u202e all" in page


@pytest.mark.requirement("G1")
async def test_the_page_leads_to_the_trace_of_the_run(service: Service) -> None:
    run_id, _ = await waiting_run(service)
    page = (await browse(service, "GET", f"/console/runs/{run_id}", headers=await signed_in(service))).text
    assert re.search(r'href="https://traces\.example\.com/trace/[0-9a-f]{32}"', page)


@pytest.mark.requirement("E2")
async def test_pages_call_the_agent_of_a_run_by_its_name_also_once_it_is_deleted(service: Service) -> None:
    run_id, _ = await waiting_run(service)
    browser = await signed_in(service)
    agent_id = (await service.call("GET", "/v1/agents/guide")).json()["id"]
    link = f'<a href="/console/agents/{agent_id}" title="{agent_id}">guide</a>'
    pages = ("/console", "/console/runs", f"/console/runs/{run_id}")
    for path in (*pages, "/console/approvals", "/console/parts/approvals"):
        assert link in (await browse(service, "GET", path, headers=browser)).text, path
    await browse(service, "POST", f"/console/runs/{run_id}/cancel", headers=browser)
    assert (await service.call("DELETE", f"/v1/agents/{agent_id}")).status_code == 204
    for path in pages:
        page = (await browse(service, "GET", path, headers=browser)).text
        assert f'<span title="{agent_id}">guide</span> <small>(deleted)</small>' in page, path


@pytest.mark.requirement("E2")
async def test_people_read_what_has_happened_before_they_talk_on(service: Service) -> None:
    service.worker.act = Act.FINISH
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})
    run_id = (await service.call("POST", "/v1/runs", json={"agent": "guide", "input": "hello"})).json()["id"]
    browser = await signed_in(service)
    page = (await browse(service, "GET", f"/console/runs/{run_id}", headers=browser)).text
    assert page.index('id="timeline"') < page.index("Reply")
    renewed = (await browse(service, "GET", f"/console/runs/{run_id}/state", headers=browser)).text
    assert renewed.index('<div id="further" hx-swap-oob="innerMorph">') < renewed.index("Reply")


@pytest.mark.requirement("H2")
async def test_the_page_of_an_incomplete_run_says_why_in_words(service: Service) -> None:
    run_id = await ended_run(service, RunStatus.INCOMPLETE, incomplete_reason=IncompleteReason.CONTENT_FILTER)
    page = await browse(service, "GET", f"/console/runs/{run_id}", headers=await signed_in(service))
    assert (
        "Ended early: the model provider&#39;s content filter stopped the answer (<code>content_filter</code>)."
        in page.text
    )


@pytest.mark.requirement("H3")
async def test_the_page_of_a_run_shows_the_object_of_its_answer(service: Service) -> None:
    run_id = await ended_run(service, RunStatus.COMPLETED, output_json={"city": "<Lisbon>"})
    page = await browse(service, "GET", f"/console/runs/{run_id}", headers=await signed_in(service))
    assert "Output by its schema" in page.text
    assert "&lt;Lisbon&gt;" in page.text


@pytest.mark.requirement("H6", "C6")
async def test_operators_and_admins_read_what_the_provider_said_and_others_do_not(service: Service) -> None:
    said = ProviderError(status=400, code="invalid_request_error", message="tools.0: <b>too long</b>")
    error = RunError(code="model_rejected", detail="The model provider rejected the request.", provider_error=said)
    run_id = await ended_run(service, RunStatus.FAILED, error=error)
    seen = {}
    for role in Role:
        token = token_of(role)
        run = (await service.call("GET", f"/v1/runs/{run_id}", token=token)).json()
        waited = (await service.call("GET", f"/v1/runs/{run_id}/wait", token=token)).json()["run"]
        [listed] = (await service.call("GET", "/v1/runs", token=token)).json()["data"]
        assert run == waited == listed
        assert (run["error"]["code"], run["error"]["detail"]) == (error.code, error.detail)
        page = (await browse(service, "GET", f"/console/runs/{run_id}", headers=await signed_in(service, token))).text
        assert error.detail in page
        assert ("tools.0: &lt;b&gt;too long&lt;/b&gt;" in page) is ("provider_error" in run["error"])
        seen[role] = run["error"].get("provider_error")
    assert seen == {Role.VIEWER: None, Role.RUNNER: None, Role.OPERATOR: said.to_json(), Role.ADMIN: said.to_json()}


@pytest.mark.requirement("U6")
async def test_raw_events_are_all_or_the_first_ones(service: Service) -> None:
    run_id, _ = await pending_run(service, Act.ASK)
    browser = await signed_in(service)
    path = f"/console/runs/{run_id}/raw"
    whole = (await browse(service, "GET", path, headers=browser)).text.splitlines()
    assert len(whole) > 1
    assert (await browse(service, "GET", f"{path}?first=1", headers=browser)).text.splitlines() == whole[:1]
    assert (await browse(service, "GET", f"{path}?first=0", headers=browser)).status_code in (400, 422)
