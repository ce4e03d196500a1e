"""Secrets that people give for themselves over HTTP: the API, the page of the console, and what
waits for them."""

import html

import pytest

from domain.identity.role import Role
from domain.ids import ApiKeyId, McpServerId, UserId
from domain.mcp.elicitation import ACCOUNT_QUESTION, Elicitation, InputRound
from tests.builders import a_key
from tests.composition import MODEL
from tests.integration.http.service import Act, Service, paths_of, problem_of, token_of
from tests.integration.http.test_accounts import ANN, BEN, account
from tests.integration.http.test_console import browse, signed_in
from tests.people_builders import a_user

pytestmark = pytest.mark.requirement("P3")

PLANTED = "s3cret-of-ann"
TICKETS = {
    "slug": "tickets",
    "kind": "http",
    "url": "https://mcp.example.org/mcp",
    "auth": {"type": "bearer", "token": {"secret": "person:token"}},
    "credentials": "person",
}
ADDRESS = "https://mcp.example.org/mcp"


async def people(service: Service, role: Role = Role.VIEWER) -> None:
    """Ann and Ben, and a server that takes a token of each."""
    for token in (ANN, BEN):
        user_id = token.replace("dgm", "usr")
        service.state.keys[ApiKeyId(user_id)] = a_key(ApiKeyId(user_id), token=token, role=role)
        service.state.users[UserId(user_id)] = a_user(UserId(user_id), subject=user_id)
    made = await service.call("POST", "/v1/mcp-servers", json=TICKETS)
    assert (made.status_code, made.json()["auth"]["token"]) == (201, {"secret": "person:token"})


async def give(service: Service, token: str, value: str = PLANTED, **more: object) -> dict[str, object]:
    body = {"secrets": {"token": value}, **more}
    answer = await service.call("PATCH", "/v1/me/accounts/tickets", token=token, json=body)
    assert answer.status_code == 200, answer.text
    assert value not in answer.text
    return dict(answer.json())


async def test_a_person_gives_replaces_and_deletes_their_own_and_nobody_reads_it(service: Service) -> None:
    await people(service)
    before = await account(service, ANN)
    assert (before["connected"], before["secrets"], before["address"]) == (False, ["token"], ADDRESS)
    after = await give(service, ANN, address=ADDRESS)
    assert (after["connected"], after["issuer"]) == (True, None)
    assert (await account(service, BEN))["connected"] is False
    await give(service, ANN, "another")
    assert (await service.call("DELETE", "/v1/me/accounts/tickets", token=BEN)).status_code == 404
    assert (await service.call("DELETE", "/v1/me/accounts/tickets", token=ANN)).status_code == 204
    assert (await account(service, ANN))["connected"] is False
    entries = (await service.call("GET", "/v1/audit-events")).json()["data"]
    assert [(each["action"], each["actor"]) for each in entries if each["action"].startswith("account.")] == [
        ("account.disconnected", "usr_ann"),
        ("account.connected", "usr_ann"),
        ("account.connected", "usr_ann"),
    ]
    assert PLANTED not in str(entries)


async def test_what_is_wrong_is_said_without_the_value(service: Service) -> None:
    await people(service)
    path = "/v1/me/accounts/tickets"
    for secrets, wrong in (
        ({"other": PLANTED}, ["secrets.other", "secrets.token"]),
        ({}, ["secrets.token"]),
        ({"token": f"{PLANTED}\nX: 1"}, ["secrets.token"]),
        ({"token": [PLANTED]}, ["secrets.token"]),
    ):
        refused = await service.call("PATCH", path, token=ANN, json={"secrets": secrets})
        assert refused.status_code == 422
        assert paths_of(refused.json()) == wrong
        assert PLANTED not in refused.text
    body = {"secrets": {"token": PLANTED}, "address": "https://elsewhere.example"}
    problem_of(await service.call("PATCH", path, token=ANN, json=body), 409, "mcp_server_changed")
    problem_of(await service.call("PATCH", path, json={"secrets": {"token": "t"}}), 403, "person_required")
    assert (await account(service, ANN))["connected"] is False


async def test_a_server_that_moved_needs_the_secret_again(service: Service) -> None:
    await people(service)
    await give(service, ANN)
    moved = {"url": "https://elsewhere.example/mcp"}
    assert (await service.call("PATCH", "/v1/mcp-servers/tickets", json=moved)).status_code == 200
    assert (await account(service, ANN))["connected"] is False


@pytest.mark.parametrize(
    ("changed", "address"),
    [({"credentials": "organization", "auth": None}, ADDRESS), ({"team": "support"}, "")],
    ids=["of the organization", "of a group without the person"],
)
async def test_what_is_left_at_a_server_that_is_not_used_any_more_is_listed_until_it_is_deleted(
    changed: dict[str, object], address: str, service: Service
) -> None:
    await people(service)
    await give(service, ANN)
    assert (await service.call("POST", "/v1/groups", json={"name": "support"})).status_code == 201
    assert (await service.call("PATCH", "/v1/mcp-servers/tickets", json=changed)).status_code == 200
    left = await account(service, ANN)
    assert (left["used"], left["stored"], left["connected"], left["address"]) == (False, True, False, address)
    assert (await service.call("GET", "/v1/me/accounts", token=BEN)).json()["data"] == []
    browser = await signed_in(service, ANN)
    page = (await browse(service, "GET", "/console/accounts", headers=browser)).text
    assert ("not used any more" in page, "/console/accounts/tickets/connect" in page) == (True, False)
    assert "Your secrets for" not in page
    path = "/console/accounts/tickets/disconnect"
    assert path in page
    assert (await browse(service, "POST", path, headers=browser)).status_code == 200
    assert (await service.call("GET", "/v1/me/accounts", token=ANN)).json()["data"] == []


async def test_the_page_has_a_form_for_each_server_and_shows_no_value(service: Service) -> None:
    await people(service)
    browser = await signed_in(service, ANN)

    async def page() -> str:
        return html.unescape((await browse(service, "GET", "/console/accounts?server=tickets", headers=browser)).text)

    shown = await page()
    assert ("Your secrets for" in shown, "waits for you" in shown, ADDRESS in shown) == (True, True, True)
    assert "/console/accounts/tickets/connect" not in shown
    offer = str((await account(service, ANN))["offer"])
    path, form = "/console/accounts/tickets/secrets", {"secrets.token": PLANTED, "offer": offer}
    empty = await browse(service, "POST", path, headers=browser, data={**form, "secrets.token": ""})
    assert (empty.status_code, empty.headers["hx-retarget"]) == (422, "#faults")
    elsewhere = await browse(service, "POST", path, headers=browser, data={**form, "offer": "mcp_x:1"})
    assert elsewhere.status_code == 409
    given = await browse(service, "POST", path, headers=browser, data=form)
    assert given.headers["hx-redirect"] == "/console/accounts"
    shown = await page()
    assert ("Replace secrets" in shown, PLANTED in shown) == (True, False)
    refused = await browse(service, "POST", "/console/accounts/tickets/connect", headers=browser)
    assert refused.status_code == 409
    await browse(service, "POST", "/console/accounts/tickets/disconnect", headers=browser)
    assert (await account(service, ANN))["connected"] is False


async def test_the_form_of_a_server_offers_a_secret_of_each_person(service: Service) -> None:
    browser = await signed_in(service, token_of(Role.ADMIN))
    assert "person:token" in (await browse(service, "GET", "/console/servers-new?kind=http", headers=browser)).text
    assert "person:token" in (await browse(service, "GET", "/console/servers-new?kind=npm", headers=browser)).text
    assert "person:token" not in (await browse(service, "GET", "/console/servers-new?kind=a2a", headers=browser)).text
    another = await browse(service, "GET", "/console/parts/server-entry?group=env&at=3", headers=browser)
    assert "person:token" in another.text
    form = {"kind": "custom", "slug": "wiki", "command": "wiki-server", "credentials": "person"}
    form |= {"env-0-name": "TOKEN", "env-0-value.secret": "person:token", "enabled": "on"}
    made = await browse(service, "POST", "/console/servers-new", headers=browser, data=form)
    assert made.headers["hx-redirect"] == "/console/servers/wiki"
    wiki = (await service.call("GET", "/v1/mcp-servers/wiki")).json()
    assert (wiki["credentials"], wiki["env"]) == ("person", {"TOKEN": {"secret": "person:token"}})


async def test_the_program_of_a_started_server_is_named_and_another_one_gets_nothing(service: Service) -> None:
    await people(service)
    started = {"slug": "wiki", "kind": "npm", "package": "@acme/wiki", "args": ["--fast"], "credentials": "person"}
    refused = await service.call("POST", "/v1/mcp-servers", json=started)
    assert paths_of(refused.json()) == ["credentials"]
    made = await service.call("POST", "/v1/mcp-servers", json={**started, "env": {"T": {"secret": "person:token"}}})
    assert made.status_code == 201, made.text

    async def connected(token: str) -> bool:
        listed = (await service.call("GET", "/v1/me/accounts", token=token)).json()["data"]
        [wiki] = [each for each in listed if each["server"] == "wiki"]
        assert (wiki["secrets"], wiki["address"]) == (["token"], "npm @acme/wiki --fast")
        return bool(wiki["connected"])

    path, program = "/v1/me/accounts/wiki", "npm @acme/wiki --fast"
    body = {"secrets": {"token": PLANTED}}
    problem_of(
        await service.call("PATCH", path, token=ANN, json={**body, "address": "npm @acme/other"}),
        409,
        "mcp_server_changed",
    )
    given = await service.call("PATCH", path, token=ANN, json={**body, "address": program})
    assert (given.status_code, PLANTED in given.text) == (200, False)
    assert (await connected(ANN), await connected(BEN)) == (True, False)
    page = await browse(service, "GET", "/console/accounts?server=wiki", headers=await signed_in(service, ANN))
    assert ("given to your own process of" in page.text, PLANTED in page.text) == (True, False)
    assert (await service.call("PATCH", "/v1/mcp-servers/wiki", json={"version": "2.0.0"})).status_code == 200
    assert await connected(ANN)
    assert (await service.call("PATCH", "/v1/mcp-servers/wiki", json={"env": {"HOST": "evil"}})).status_code == 200
    assert not await connected(ANN)
    assert (await service.call("DELETE", path, token=ANN)).status_code == 204


async def test_variables_are_shown_before_a_secret_is_given_and_a_changed_one_gets_nothing(service: Service) -> None:
    await people(service)
    env = {"T": {"secret": "person:token"}, "MODE": "quiet-mode"}
    wiki = {"slug": "wiki", "kind": "npm", "package": "@acme/wiki", "credentials": "person", "env": env}
    assert (await service.call("POST", "/v1/mcp-servers", json=wiki)).status_code == 201
    browser = await signed_in(service, ANN)

    async def told() -> str:
        listed = (await service.call("GET", "/v1/me/accounts", token=ANN)).json()["data"]
        [found] = [each for each in listed if each["server"] == "wiki"]
        assert found["env"]["T"] == {"secret": "person:token"}
        page = (await browse(service, "GET", "/console/accounts?server=wiki", headers=browser)).text
        assert all(f'<span class="mono">{shown}</span>' in page for shown in (*found["env"], "person:token"))
        assert "quiet-mode" not in page + str(listed)
        assert f'name="offer" value="{found["offer"]}"' in page
        return str(found["offer"])

    before = await told()
    changed = {"env": {"WIKI_URL": "https://evil.example"}}
    assert (await service.call("PATCH", "/v1/mcp-servers/wiki", json=changed)).status_code == 200
    body = {"secrets": {"token": PLANTED}}
    path = "/v1/me/accounts/wiki"
    for offer, status in ((before, 409), (await told(), 200)):
        answer = await service.call("PATCH", path, token=ANN, json={**body, "offer": offer})
        assert answer.status_code == status


async def test_a_run_that_waits_for_a_secret_ends_after_it_was_given(service: Service) -> None:
    await people(service, Role.RUNNER)
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})
    url = "https://x.y/console/accounts?server=tickets"
    question = Elicitation(request_id=ACCOUNT_QUESTION, message="Give it.", url=url)
    service.worker.act, service.worker.question = Act.ELICIT, InputRound(number=1, questions=(question,))
    service.worker.asking_server = McpServerId(str((await account(service, ANN))["server_id"]))
    started = [
        (await service.call("POST", "/v1/runs", json={"agent": "guide", "input": "Mine?"}, token=token)).json()["id"]
        for token in (ANN, BEN)
    ]
    service.worker.act = Act.FINISH
    await give(service, ANN)
    states = [(await service.call("GET", f"/v1/runs/{run_id}", token=ANN)).json()["status"] for run_id in started]
    assert states == ["completed", "requires_action"]
    events = (await service.call("GET", f"/v1/runs/{started[0]}/events", token=ANN)).text
    assert PLANTED not in events


async def test_a_key_is_not_a_person_on_the_page(service: Service) -> None:
    await people(service)
    browser = await signed_in(service, token_of(Role.ADMIN))
    form = {"secrets.token": PLANTED, "offer": "mcp_x:1"}
    refused = await browse(service, "POST", "/console/accounts/tickets/secrets", headers=browser, data=form)
    assert refused.status_code == 403
