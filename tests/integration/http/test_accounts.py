"""A person's own accounts at MCP servers over HTTP: the API, the pages of the console, and the way
back from the authorization server."""

import html
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from application.mcp.authorization import PersonSignIn
from domain.identity.role import Role
from domain.ids import ApiKeyId, McpServerId, UserId, WorkerId, WorkflowRunId
from domain.mcp.elicitation import ACCOUNT_QUESTION, Elicitation, InputRound
from domain.workflows.account_wait import AccountWait
from domain.workflows.execution import NodeRun
from interfaces.http.oauth.routes import account_cookie
from tests.builders import START, a_key
from tests.composition import MODEL
from tests.doubles.authorizer import InMemoryAuthorizer
from tests.integration.http.service import Act, Harness, Service, paths_of, problem_of, token_of
from tests.integration.http.test_console import browse, signed_in, waiting_run
from tests.people_builders import PROVIDER

pytestmark = pytest.mark.requirement("P3")

ANN, BEN = "dgm_ann", "dgm_ben"
SIGN_IN = PersonSignIn(
    provider_id=PROVIDER, issuer="https://login.example.com", id_token="token", id_token_expires_at=START
)
TICKETS = {
    "slug": "tickets",
    "kind": "http",
    "url": "https://mcp.example.org/mcp",
    "auth": {"type": "oauth_authorization_code"},
    "credentials": "person",
}


async def people(service: Service) -> None:
    """Ann and Ben, and a server that is used with their own accounts. Their tokens have users' ids,
    as those of an identity provider do."""
    for token in (ANN, BEN):
        key = a_key(ApiKeyId(token.replace("dgm", "usr")), token=token, role=Role.VIEWER)
        service.state.keys[key.id] = key
    made = await service.call("POST", "/v1/mcp-servers", json=TICKETS)
    assert (made.status_code, made.json()["credentials"]) == (201, "person")


async def account(service: Service, token: str) -> dict[str, object]:
    [listed] = (await service.call("GET", "/v1/me/accounts", token=token)).json()["data"]
    return dict(listed)


async def begun(service: Service, token: str) -> tuple[str, dict[str, str]]:
    """The person presses Connect: the way back that the authorization server will take, and the
    browser's cookie."""
    answer = await browse(service, "POST", "/console/accounts/tickets/connect", headers=await signed_in(service, token))
    assert answer.status_code == 200, answer.text
    state = parse_qs(urlsplit(answer.headers["hx-redirect"]).query)["state"][0]
    service.client.cookies.clear()
    name = account_cookie(state)
    return f"/oauth/callback?state={state}&code=c0de", {"cookie": f"{name}={answer.cookies[name]}"}


async def connect(service: Service, token: str) -> httpx.Response:
    back, cookie = await begun(service, token)
    return await browse(service, "GET", back, headers=cookie)


async def test_a_person_connects_sees_and_disconnects_their_own_account(service: Service) -> None:
    await people(service)
    before = await account(service, ANN)
    assert (before["server"], before["connected"]) == ("tickets", False)
    assert str(before["link"]).endswith("agents.example.com/console/accounts?server=tickets")
    answer = await connect(service, ANN)
    assert (answer.status_code, "with your account, for you" in answer.text) == (200, True)
    after = await account(service, ANN)
    assert (after["connected"], after["issuer"]) == (True, "https://auth.example.org")
    assert (await account(service, BEN))["connected"] is False
    assert (await service.call("DELETE", "/v1/me/accounts/tickets", token=BEN)).status_code == 404
    assert (await service.call("DELETE", "/v1/me/accounts/tickets", token=ANN)).status_code == 204
    assert (await account(service, ANN))["connected"] is False
    entries = (await service.call("GET", "/v1/audit-events")).json()["data"]
    assert [(entry["action"], entry["actor"]) for entry in entries if entry["action"].startswith("account.")] == [
        ("account.disconnected", "usr_ann"),
        ("account.connected", "usr_ann"),
    ]


@pytest.mark.requirement("P4")
async def test_for_a_server_on_their_behalf_people_are_led_to_sign_in_again_and_back(service: Service) -> None:
    await people(service)
    auth = {"type": "oauth_token_exchange"}
    assert (await service.call("PATCH", "/v1/mcp-servers/tickets", json={"auth": auth})).status_code == 200
    headers = await signed_in(service, ANN)
    page = await browse(service, "GET", "/console/accounts?server=tickets", headers=headers)
    assert 'href="/console/sign-in?next=/console/accounts%3Fserver=tickets"' in page.text
    assert "/console/accounts/tickets/connect" not in page.text
    refused = await browse(service, "POST", "/console/accounts/tickets/connect", headers=headers)
    assert refused.status_code == 409
    sign_in = await browse(service, "GET", "/console/sign-in?next=/console/accounts%3Fserver=tickets", headers=headers)
    assert 'value="/console/accounts?server=tickets"' in sign_in.text


@pytest.mark.requirement("P4")
async def test_an_account_of_another_provider_than_the_server_names_is_not_connected() -> None:
    authorizer = InMemoryAuthorizer(expires_at=START)
    async with Harness(oauth=authorizer).service() as service:
        await people(service)
        await connect(service, ANN)
        auth = {"type": "oauth_token_exchange", "issuer": "https://idp.example", "audience": "x"}
        assert (await service.call("PATCH", "/v1/mcp-servers/tickets", json={"auth": auth})).status_code == 200
        [server] = service.state.servers.values()
        listed = await account(service, ANN)  # what was granted is for the former configuration
        assert (listed["connected"], listed["sign_in_with"]) == (False, None)
        await authorizer.signed_in(server.acting_for(UserId("usr_ann")), SIGN_IN)
        listed = await account(service, ANN)
        assert (listed["connected"], listed["sign_in_with"]) == (False, "https://idp.example")
        assert listed["issuer"] == SIGN_IN.issuer
        page = await browse(service, "GET", "/console/accounts", headers=await signed_in(service, ANN))
        assert "needs a sign-in with https://idp.example" in html.unescape(page.text)


async def test_the_consent_of_another_browser_is_refused_and_the_state_used_up(service: Service) -> None:
    await people(service)
    back, cookie = await begun(service, ANN)
    _, of_ben = await begun(service, BEN)
    for headers in (of_ben, {}, cookie):
        assert (await browse(service, "GET", back, headers=headers)).status_code == 422
    assert (await account(service, ANN))["connected"] is False


async def test_consents_in_two_tabs_of_one_browser_do_not_cancel_each_other(service: Service) -> None:
    await people(service)
    first, cookie = await begun(service, ANN)
    second, other = await begun(service, ANN)
    both = {"cookie": f"{cookie['cookie']}; {other['cookie']}"}
    answers = [(await browse(service, "GET", back, headers=both)).status_code for back in (first, second)]
    assert answers == [200, 200]


async def test_the_page_shows_what_waits_connects_and_disconnects(service: Service) -> None:
    await people(service)
    browser = await signed_in(service, ANN)
    page = (await browse(service, "GET", "/console/accounts?server=tickets", headers=browser)).text
    assert ("not connected" in page, "waits for you" in page, "Connect tickets" in page) == (True, True, True)
    await connect(service, ANN)
    page = html.unescape((await browse(service, "GET", "/console/accounts", headers=browser)).text)
    assert ("Renew tickets" in page, "https://auth.example.org" in page) == (True, True)
    gone = await browse(service, "POST", "/console/accounts/tickets/disconnect", headers=browser)
    assert gone.headers["hx-redirect"] == "/console/accounts"
    assert (await account(service, ANN))["connected"] is False


async def test_an_api_key_has_no_accounts(service: Service) -> None:
    await people(service)
    problem_of(await service.call("GET", "/v1/me/accounts"), 403, "person_required")
    browser = await signed_in(service, token_of(Role.ADMIN))
    page = await browse(service, "GET", "/console/accounts", headers=browser)
    assert (page.status_code, "which has no accounts" in page.text) == (200, True)
    refused = await browse(service, "POST", "/console/accounts/tickets/connect", headers=browser)
    assert refused.status_code == 403


async def test_such_a_server_gets_no_grant_of_the_organization(service: Service) -> None:
    await people(service)
    problem_of(await service.call("POST", "/v1/mcp-servers/tickets/authorize"), 409, "mcp_server_auth_mismatch")


@pytest.mark.parametrize(
    "changes", [{"auth": None}, {"auth": {"type": "bearer", "token": "t"}}, {"kind": "a2a"}], ids=str
)
async def test_credentials_of_each_person_need_a_consent_and_a_protocol_of_mcp(
    service: Service, changes: dict[str, object]
) -> None:
    refused = await service.call("POST", "/v1/mcp-servers", json={**TICKETS, **changes})
    assert paths_of(problem_of(refused, 422, "mcp_server_invalid")) == ["credentials"]


async def test_a_run_that_waits_is_in_the_inbox_with_its_link_and_ends_after_the_consent(service: Service) -> None:
    await people(service)
    for key_id, key in list(service.state.keys.items()):
        if key_id.startswith("usr_"):
            service.state.keys[key_id] = replace(key, role=Role.RUNNER)
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})
    question = Elicitation(
        request_id=ACCOUNT_QUESTION, message="Connect it.", url="https://x.y/console/accounts?server=tickets"
    )
    service.worker.act, service.worker.question = Act.ELICIT, InputRound(number=1, questions=(question,))
    service.worker.asking_server = McpServerId(str((await account(service, ANN))["server_id"]))
    started = [
        (await service.call("POST", "/v1/runs", json={"agent": "guide", "input": "Mine?"}, token=token)).json()["id"]
        for token in (ANN, BEN)
    ]
    service.worker.act = Act.FINISH
    waiting = (await service.call("GET", f"/v1/runs/{started[0]}", token=ANN)).json()
    assert waiting["status"] == "requires_action"
    page = (await browse(service, "GET", f"/console/runs/{started[0]}", headers=await signed_in(service, ANN))).text
    assert '<a href="/console/accounts?server=tickets">Connect your account</a>' in page
    await connect(service, ANN)
    states = [(await service.call("GET", f"/v1/runs/{run_id}", token=ANN)).json()["status"] for run_id in started]
    assert states == ["completed", "requires_action"]


FINDING: dict[str, object] = {
    "name": "finding",
    "nodes": [
        {"id": "start", "kind": "entrypoint"},
        {"id": "find", "kind": "mcp_server", "config": {"server": "tickets", "call": "search"}},
    ],
    "edges": [{"source": "start", "target": "find"}],
}


async def waiting_workflow_runs(service: Service, *tokens: str) -> list[str]:
    """A workflow run of each person, whose node `find` lacks the account of that person."""
    assert (await service.call("POST", "/v1/workflows", json=FINDING)).status_code == 201
    server_id = McpServerId(str((await account(service, ANN))["server_id"]))
    url = "https://agents.example.com/console/accounts?server=tickets"
    asked = AccountWait(server_id=server_id, since=START).question("Connect it.", url)
    ids = []
    for token in tokens:
        begun = await service.call("POST", "/v1/workflows/finding/runs", json={"input": {}}, token=token)
        ids.append(begun.json()["id"])
        journal = service.stores.workflow_journal
        claimed = await journal.claim(WorkflowRunId(ids[-1]), WorkerId("w"), lease_s=10, at=START)
        assert claimed is not None
        node = NodeRun(node_id="find").started(at=START).waiting(due_at=None, asked=asked)
        await journal.commit(
            claimed.lease, replace(claimed.run, nodes={"find": node}).suspended(wake_at=None), at=START
        )
    service.worker.workflow_runs.clear()
    return ids


@pytest.mark.requirement("F4")
async def test_a_workflow_that_waits_is_in_the_inbox_with_its_link_and_continues_after_the_consent(
    service: Service,
) -> None:
    await people(service)
    for key_id, key in list(service.state.keys.items()):
        service.state.keys[key_id] = replace(key, role=Role.RUNNER if key_id.startswith("usr_") else key.role)
    of_ann, of_ben = await waiting_workflow_runs(service, ANN, BEN)
    [pending] = (await service.call("GET", f"/v1/workflow-runs/{of_ann}", token=ANN)).json()["pending"]
    assert (pending["node_id"], pending["asked"]["url"].endswith("/accounts?server=tickets")) == ("find", True)
    browser = await signed_in(service, ANN)
    for path in (f"/inbox?item=node:{of_ann}:find", f"/workflows/runs/{of_ann}"):
        page = (await browse(service, "GET", f"/console{path}", headers=browser)).text
        assert '<a href="/console/accounts?server=tickets">Connect your account</a>' in page
    answer = {"answers": [{"node_id": "find", "answer": {"text": "forged"}}]}
    refused = await service.call("POST", f"/v1/workflow-runs/{of_ann}/resume", json=answer, token=ANN)
    problem_of(refused, 422, "answers_invalid")
    await connect(service, ANN)
    states = [(await service.call("GET", f"/v1/workflow-runs/{each}")).json()["status"] for each in (of_ann, of_ben)]
    assert (states, service.worker.workflow_runs) == (["queued", "requires_action"], [of_ann])


async def test_the_arguments_of_a_call_with_another_persons_account_are_shown_without_a_form(service: Service) -> None:
    await people(service)
    run_id, approval_id = await waiting_run(service)
    [approval] = service.state.approvals.values()
    server_id = McpServerId(str((await account(service, ANN))["server_id"]))
    service.state.approvals[approval.id] = replace(approval, server_id=server_id, requested_by=ApiKeyId("usr_ann"))
    for path in (f"/inbox?item=approval:{approval_id}", "/approvals", f"/runs/{run_id}"):
        page = (await browse(service, "GET", f"/console{path}", headers=await signed_in(service))).text
        assert "uses the account of the person who started it" in page
        assert ('<textarea id="arguments' in page, "<legend>Arguments" in page, 'value="approve"' in page) == (
            False,
            False,
            True,
        )
    approved = await browse(
        service,
        "POST",
        f"/console/inbox/approvals/{approval_id}",
        headers=await signed_in(service),
        data={"decision": "approve"},
    )
    assert (approved.status_code, service.state.approvals[approval.id].state) == (200, "approved")


async def test_an_admin_lets_a_schedule_use_their_accounts_in_its_form_and_another_takes_them_out(
    service: Service,
) -> None:
    await people(service)
    for key_id, key in list(service.state.keys.items()):
        service.state.keys[key_id] = replace(key, role=Role.ADMIN)
    agent = (await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})).json()["id"]
    form = {"name": "daily", "cron": "0 8 * * *", "timezone": "UTC", "agent": agent, "input": "Mine?"}

    async def sent(path: str, token: str, **more: str) -> str | None:
        headers = await signed_in(service, token)
        answer = await browse(service, "POST", f"/console{path}", headers=headers, data={**form, **more})
        assert answer.status_code == 200, answer.text
        [schedule] = service.state.schedules.values()
        return schedule.person_id

    async def shown(path: str, token: str | None) -> str:
        page = await browse(service, "GET", f"/console{path}", headers=await signed_in(service, token))
        return html.unescape(page.text)

    assert await sent("/schedules", ANN, own_account="on") == "usr_ann"
    [schedule] = service.state.schedules.values()
    edit = f"/schedules/{schedule.id}"
    assert 'id="own_account" name="own_account" type="checkbox" value="on" checked' in await shown(edit, ANN)
    assert "Saving takes them out" in await shown(edit, BEN)
    assert "with the accounts of" in await shown("/schedules", BEN)
    assert await sent(edit, ANN, own_account="on", version="1", cron="0 9 * * *") == "usr_ann"
    assert await sent(edit, BEN, version="2", cron="0 9 * * *") is None
    assert "Saving takes them out" not in await shown(edit, ANN)
    by_key = await shown(edit, None)
    assert ('id="own_account"' in by_key, "signed in as a person" in by_key) == (False, True)
