"""The inbox: what waits for people in one list, each with its form, decided one by one and many at
a time."""

import html
import json
import re
from urllib.parse import quote

import httpx
import pytest
from pytest_mock import MockerFixture

from application.tools.explain_tool import ExplainTool
from domain.identity.role import Role
from domain.json_value import JsonObject, canonical_digest
from interfaces.console.inbox import MOST
from tests.integration.http.service import OTHER_ADMIN, Service, token_of
from tests.integration.http.test_canaries import a_halted_run
from tests.integration.http.test_console import browse, signed_in, waiting_run
from tests.integration.http.test_quarantine import FILES, listed

pytestmark = pytest.mark.requirement("U6")
HERE = {"hx-current-url": "http://agents.example.com/console/inbox"}


async def page(service: Service, path: str, token: str | None = None) -> str:
    answer = await browse(service, "GET", f"/console{path}", headers=await signed_in(service, token))
    assert answer.status_code == 200, answer.text
    return html.unescape(answer.text)


async def send(service: Service, path: str, token: str | None = None, **data: str) -> httpx.Response:
    headers = await signed_in(service, token) | HERE
    return await browse(service, "POST", f"/console{path}", headers=headers, data=data)


async def test_an_approval_waits_with_what_was_asked_and_a_form_of_its_arguments(service: Service) -> None:
    run, approval = await waiting_run(service)
    inbox = await page(service, "/inbox")
    assert f'data-item="approval:{approval}"' in inbox
    assert f'<a href="/console/runs/{run}">hello</a>' in inbox
    viewed = await page(service, "/inbox", token_of(Role.VIEWER))
    assert "Deciding requires the role operator" in viewed
    assert "Approve chosen" not in viewed
    assert approval not in await page(service, "/inbox", OTHER_ADMIN)
    assert "Nothing waits for a person" in await page(service, "/inbox", OTHER_ADMIN)
    badge = await page(service, "/parts/frame")
    assert re.search(r'id="badge-inbox"[^>]*>1<', badge)


async def test_open_pages_share_a_recent_count_that_a_page_that_opens_renews(service: Service) -> None:
    headers = await signed_in(service)

    async def count(query: str = "") -> str:
        answer = await browse(service, "GET", f"/console/parts/frame{query}", headers=headers)
        found = re.search(r'id="badge-inbox"[^>]*>(\d*)<', answer.text)
        assert found is not None
        return found[1]

    assert await count("?recent=true") == ""
    await waiting_run(service)
    assert await count("?recent=true") == ""  # counted a moment ago
    assert await count() == "1"
    assert await count("?recent=true") == "1"


async def test_a_decision_in_the_inbox_is_said_and_its_item_leaves(service: Service) -> None:
    _, approval = await waiting_run(service)
    path = f"/inbox/approvals/{approval}"
    assert (await send(service, path, decision="later")).status_code == 422
    assert (await send(service, path, token_of(Role.RUNNER), decision="deny")).status_code == 403
    denied = await send(service, path, decision="deny", reason="Not on a Sunday.")
    assert (denied.status_code, denied.headers["hx-trigger"]) == (200, "item-settled")
    assert "denied" in denied.text
    stored = (await service.call("GET", f"/v1/approvals/{approval}")).json()
    assert (stored["state"], stored["reason"]) == ("denied", "Not on a Sunday.")
    assert "Nothing waits for a person" in await page(service, "/parts/inbox")
    assert "is shown here" in await page(service, f"/inbox/detail?item=approval:{approval}")


async def test_a_link_to_an_approval_asks_to_sign_in_and_decides_nothing(service: Service) -> None:
    _, approval = await waiting_run(service)
    link = f"/console/inbox?item=approval:{approval}"
    away = await browse(service, "GET", link)
    assert away.status_code == 303
    assert away.headers["location"] == f"/console/sign-in?next={quote(link, safe='')}"
    assert f'data-item="approval:{approval}"' in await page(service, link.removeprefix("/console"))
    assert (await service.call("GET", f"/v1/approvals/{approval}")).json()["state"] == "pending"


async def test_a_link_to_what_was_settled_leads_to_no_decision_about_another(service: Service) -> None:
    _, first = await waiting_run(service)
    await service.call("POST", "/v1/runs", json={"agent": "guide", "input": "more"})
    await send(service, f"/inbox/approvals/{first}", decision="deny")
    shown = await page(service, f"/inbox?item=approval:{first}")
    assert "This does not wait any more" in shown
    assert "data-item=" not in shown
    assert 'data-item="approval:' in await page(service, "/inbox")


async def test_a_link_to_an_approval_older_than_the_list_leads_to_it_while_it_is_pending(service: Service) -> None:
    _, oldest = await waiting_run(service)
    for _ in range(MOST):
        await service.call("POST", "/v1/runs", json={"agent": "guide", "input": "more"})
    assert oldest not in await page(service, "/inbox")
    for path in ("/inbox", "/inbox/detail"):
        shown = await page(service, f"{path}?item=approval:{oldest}")
        assert f"/console/inbox/approvals/{oldest}" in shown
        assert "does not wait any more" not in shown
    assert "This does not wait any more" in await page(service, f"/inbox?item=approval:{oldest}", OTHER_ADMIN)
    await send(service, f"/inbox/approvals/{oldest}", decision="deny")
    assert "This does not wait any more" in await page(service, f"/inbox?item=approval:{oldest}")


async def test_a_call_that_is_approved_as_it_is_needs_no_schema_of_its_tool(
    service: Service, mocker: MockerFixture
) -> None:
    _, approval = await waiting_run(service)
    explained = mocker.spy(ExplainTool, "execute")
    approved = await send(service, f"/inbox/approvals/{approval}", decision="approve")
    assert approved.status_code == 200, approved.text
    explained.assert_not_called()


async def test_an_argument_that_cannot_be_read_is_told_at_its_field(service: Service, mocker: MockerFixture) -> None:
    _, approval = await waiting_run(service)
    schema: JsonObject = {"type": "object", "properties": {"days": {"type": "array", "items": {}}}}
    explained = mocker.patch.object(ExplainTool, "execute", autospec=True)
    explained.return_value.tool.parameters = schema
    entered = {"schema": canonical_digest(schema), "f0": "[1"}
    refused = await send(service, f"/inbox/approvals/{approval}", decision="approve", **entered)
    assert refused.status_code == 422
    assert 'data-field="item-f0"' in refused.text
    assert "days" in refused.text


async def test_a_form_of_another_schema_is_refused_and_a_tool_that_is_gone_is_decided_by_its_json(
    service: Service,
) -> None:
    _, approval = await waiting_run(service)
    path = f"/inbox/approvals/{approval}"
    assert (await send(service, path, decision="approve", schema="sha256:other")).status_code == 409
    assert 'name="arguments"' in await page(service, "/inbox")  # the agent does not have the tool of the worker
    refused = await send(service, path, decision="approve", arguments="[1]")
    assert (refused.status_code, refused.headers["hx-retarget"]) == (422, "#faults")
    assert 'data-field="arguments"' in refused.text
    arguments = (await service.call("GET", f"/v1/approvals/{approval}")).json()["arguments"]
    approved = await send(service, path, decision="approve", arguments=json.dumps(arguments, indent=2))
    assert approved.status_code == 200, approved.text
    stored = (await service.call("GET", f"/v1/approvals/{approval}")).json()
    assert (stored["state"], stored["edited_arguments"]) == ("approved", None)


async def test_many_approvals_are_decided_at_once_and_what_fails_is_said(service: Service) -> None:
    _, approval = await waiting_run(service)
    headers = await signed_in(service)
    form = {"decision": "approve", "item": [f"approval:{approval}", "approval:apr_unknown", "tool:files:echo"]}
    answer = await service.client.post("/console/inbox/bulk", headers=headers, data=form)
    assert (answer.status_code, answer.headers["hx-trigger"]) == (200, "item-settled")
    assert "1 approved" in answer.text
    assert "apr_unknown" in answer.text
    viewer = await signed_in(service, token_of(Role.VIEWER))
    refused = await service.client.post("/console/inbox/bulk", headers=viewer, data=form)
    assert "0 approved" in refused.text


async def test_a_thread_in_quarantine_waits_until_it_is_released(service: Service) -> None:
    thread = (await a_halted_run(service))["thread_id"]
    shown = await page(service, f"/inbox?item=thread:{thread}")
    assert f"/console/threads/{thread}/release" in shown
    released = await send(service, f"/threads/{thread}/release")
    assert (released.status_code, released.headers["hx-trigger"]) == (200, "item-settled")
    assert thread not in await page(service, "/inbox")


async def changed_tools(service: Service, *names: str) -> dict[str, str]:
    """A server `files` whose tools are in quarantine: their digests."""
    await service.call("POST", "/v1/mcp-servers", json=FILES)
    await listed(service, **dict.fromkeys(names, "As it was."))
    return {name: str(tool["digest"]) for name, tool in (await listed(service, **dict.fromkeys(names, "New."))).items()}


async def test_a_rejected_tool_leaves_the_inbox_and_stays_on_the_page_of_its_server(service: Service) -> None:
    digest = (await changed_tools(service, "echo"))["echo"]
    assert "/console/servers/files/reject" in await page(service, "/inbox?item=tool:files:echo")
    answer = await send(service, "/servers/files/reject", tool="echo", digest=digest, reason="It tells all.")
    assert (answer.status_code, answer.headers["hx-trigger"]) == (200, "item-settled")
    assert "rejected" in answer.text
    assert "Nothing waits for a person" in await page(service, "/parts/inbox")
    server = await page(service, "/servers/files")
    assert "It tells all." in server
    assert "Rejected (1)" in server
    assert (await send(service, "/servers/files/reject", token_of(Role.OPERATOR), tool="echo")).status_code == 403
    await send(service, "/servers/files/approve", tool="echo", digest=digest)
    assert "Rejected (" not in await page(service, "/servers/files")
