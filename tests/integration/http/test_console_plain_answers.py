"""Pages of the console that say what is so in plain words, in place of an id, a raw word or a
refusal."""

import html

import pytest

from domain.identity.role import Role
from tests.composition import MODEL
from tests.integration.http.service import Act, Service, token_of
from tests.integration.http.test_console import browse, signed_in
from tests.integration.http.test_console_workflows import saved, stocked

__all__ = ["stocked"]
pytestmark = pytest.mark.requirement("U6")


async def test_who_may_not_start_runs_is_offered_none(stocked: Service) -> None:
    for role, is_offered in ((Role.VIEWER, False), (Role.RUNNER, True)):
        browser = await signed_in(stocked, token_of(role))
        page = (await browse(stocked, "GET", "/console/playground", headers=browser)).text
        assert ('type="submit">Start a run' in page, "requires the role runner" in page) == (
            is_offered,
            not is_offered,
        )


async def test_nodes_have_the_titles_of_the_canvas(stocked: Service) -> None:
    path, admin = await saved(stocked), await signed_in(stocked)
    started = await browse(stocked, "POST", f"{path}/runs", headers=admin, data={"input": "{}"})
    for page in (path, started.headers["hx-redirect"]):
        shown = (await browse(stocked, "GET", page, headers=admin)).text
        assert "<td>Start</td>" in shown
        assert "<td>MCP server</td>" in shown
        assert "<td>entrypoint</td>" not in shown


async def test_the_address_of_a_trial_without_a_tool_leads_to_the_server(stocked: Service) -> None:
    admin = await signed_in(stocked)
    answer = await browse(stocked, "GET", "/console/servers/files/try", headers=admin)
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/servers/files")


@pytest.mark.parametrize("slug", ["none", "%D0%B6", "a%0D%0Ab"])
async def test_that_address_of_a_server_that_is_not_there_is_not_found(stocked: Service, slug: str) -> None:
    answer = await browse(stocked, "GET", f"/console/servers/{slug}/try", headers=await signed_in(stocked))
    assert answer.status_code == 404


async def test_a_registry_that_is_not_there_is_said_in_words(stocked: Service) -> None:
    answer = await browse(stocked, "GET", "/console/servers-registries/none/a/b", headers=await signed_in(stocked))
    assert answer.status_code == 404
    assert "There is no MCP registry 'none'." in html.unescape(answer.text)


async def test_the_list_of_sessions_is_renewed_by_one_that_is_opened(stocked: Service) -> None:
    admin = await signed_in(stocked)
    opened = await browse(stocked, "POST", "/console/gateway", headers=admin, data={"agent": "guide", "hours": "1"})
    assert opened.headers["hx-trigger"] == "gateway-changed"
    page = await browse(stocked, "GET", "/console/gateway", headers=admin)
    assert 'hx-trigger="every 10s, gateway-changed from:body"' in page.text


async def test_an_agent_that_is_not_there_stays_the_filter_of_the_list(stocked: Service) -> None:
    page = (await browse(stocked, "GET", "/console/runs?agent=none", headers=await signed_in(stocked))).text
    assert '<option value="none" selected>none (not there, or deleted)</option>' in page


async def test_a_conversation_is_titled_by_its_first_words(stocked: Service) -> None:
    stocked.worker.act = Act.REST
    body = {"agent": "guide", "input": "Count the apples", "model": MODEL}
    thread = (await stocked.call("POST", "/v1/runs", json=body)).json()["thread_id"]
    admin = await signed_in(stocked)
    for path, title in ((f"/console/chat/{thread}", "Count the apples"), ("/console/chat", "Chat")):
        page = (await browse(stocked, "GET", path, headers=admin)).text
        assert f"<title>{title} · Dragoman</title>" in page
