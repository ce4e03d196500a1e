"""The console's doors: who gets in, what comes from elsewhere, what a browser is allowed to do with
a page."""

import html
import re
from dataclasses import replace

import httpx
import pytest

from application.system.pages import MAX_PAGE_SIZE, Page, PageRequest
from domain.identity.role import Role
from interfaces.console.app import console_routes
from interfaces.console.sessions import COOKIE
from interfaces.console.sign_in_attempts import FAILURES
from interfaces.console.whole_lists import all_of
from interfaces.http.bodies import MAX_JSON_BYTES
from tests.builders import an_audit_event
from tests.composition import MODEL
from tests.doubles.mcp_connections import text_reply
from tests.integration.http.service import OTHER_ADMIN, Act, Harness, Service, token_of
from tests.integration.http.test_audit import seal

PAGES = (
    "/console",
    "/console/runs",
    "/console/approvals",
    "/console/playground",
    "/console/chat",
    "/console/servers",
    "/console/audit",
    "/console/agents",
    "/console/agents/new",
    "/console/first-agent",
    "/console/servers-new",
    "/console/servers-import",
    "/console/workflows",
    "/console/workflows/new",
    "/console/usage",
    "/console/keys",
    "/console/settings",
    "/console/secrets",
)


async def signed_in(service: Service, token: str | None = None) -> dict[str, str]:
    """The headers of a browser whose owner has signed in, with what its pages send along."""
    answer = await browse(service, "POST", "/console/sign-in", data={"key": token or token_of(Role.ADMIN)})
    assert answer.status_code == 303, answer.text
    return await on_a_page(service, f"{COOKIE}={answer.cookies[COOKIE]}")


async def on_a_page(service: Service, cookies: str) -> dict[str, str]:
    """The headers that a page sends along, which was opened with these cookies."""
    cookie = {"cookie": cookies}
    page = await browse(service, "GET", "/console", headers=cookie)
    found = re.search(r'"X-CSRF-Token": "([\w-]+)"', html.unescape(page.text))
    assert found is not None
    return cookie | {"x-csrf-token": found[1], "hx-request": "true"}


async def browse(
    service: Service,
    method: str,
    path: str,
    *,
    headers: dict[str, str] | None = None,
    data: dict[str, str] | None = None,
) -> httpx.Response:
    return await service.client.request(method, path, headers=headers, data=data, follow_redirects=False)


async def waiting_run(service: Service, *, policy: dict[str, object] | None = None) -> tuple[str, str]:
    """A run that waits for an approval: its id and the approval's."""
    service.worker.act = Act.APPROVE
    agent = {"name": "guide", "model": MODEL, "tool_policies": {"*": {"allow_self_approval": True, **(policy or {})}}}
    await service.call("POST", "/v1/agents", json=agent)
    started = await service.call("POST", "/v1/runs", json={"agent": "guide", "input": "hello"})
    approvals = await service.call("GET", "/v1/approvals?state=pending")
    return started.json()["id"], approvals.json()["data"][0]["id"]


@pytest.mark.requirement("C6")
async def test_every_page_sends_away_whoever_is_not_signed_in_and_lets_him_back_afterwards(service: Service) -> None:
    for page in PAGES:
        answer = await browse(service, "GET", page)
        assert answer.status_code == 303
        assert answer.headers["location"].startswith("/console/sign-in?next=%2Fconsole")
    refused = await browse(service, "POST", "/console/sign-in", data={"key": "dgm_nobody"})
    assert refused.status_code == 401
    assert COOKIE not in refused.cookies
    for target, there in (
        ("/console/runs", "/console/runs"),
        ("//evil.example", "/console"),
        ("https://e", "/console"),
        ("/console/\r\nset-cookie: a=b", "/console"),
        ("/console/グ", "/console"),
        (f"/console/runs?search={'x' * 2_000}", "/console"),
    ):
        form = {"key": token_of(Role.ADMIN), "next": target}
        answer = await browse(service, "POST", "/console/sign-in", data=form)
        assert answer.headers["location"] == there


@pytest.mark.requirement("C6")
async def test_the_session_is_a_sealed_cookie_that_scripts_and_other_sites_never_see(service: Service) -> None:
    answer = await browse(service, "POST", "/console/sign-in", data={"key": token_of(Role.ADMIN)})
    cookie = answer.headers["set-cookie"]
    assert token_of(Role.ADMIN) not in cookie
    assert all(word in cookie for word in ("HttpOnly", "SameSite=lax", "Path=/console", "Secure"))
    forged = await browse(service, "GET", "/console", headers={"cookie": f"{COOKIE}=gAAAA-forged"})
    assert forged.status_code == 303


@pytest.mark.requirement("C6")
async def test_a_copied_cookie_is_worth_nothing_after_signing_out(service: Service) -> None:
    browser, other = await signed_in(service), await signed_in(service)
    assert (await browse(service, "POST", "/console/sign-out", headers=browser)).status_code == 200
    assert (await browse(service, "GET", "/console/runs", headers={"cookie": browser["cookie"]})).status_code == 303
    assert (await browse(service, "GET", "/console/runs", headers={"cookie": other["cookie"]})).status_code == 200


@pytest.mark.requirement("C6")
async def test_no_page_is_shown_under_a_name_that_is_not_the_services(service: Service) -> None:
    browser = await signed_in(service)
    for path, headers in (("/console", browser), ("/console/sign-in", {}), ("/console/static/live.js", {})):
        for host in ("evil.example", "evil.example:8321", "localhost.evil.example", "[::1"):
            answer = await browse(service, "GET", path, headers={**headers, "host": host})
            assert (answer.status_code, "DRAGOMAN_PUBLIC_URL" in answer.text) == (403, True), (path, host)
    for host in ("127.0.0.1:8321", "localhost", "[::1]:8321"):
        assert (await browse(service, "GET", "/console/sign-in", headers={"host": host})).status_code == 200


@pytest.mark.requirement("C6")
async def test_guessing_keys_is_slowed_down_for_a_right_one_too() -> None:
    async with Harness().service() as service:
        for _ in range(FAILURES.calls):
            wrong = await browse(service, "POST", "/console/sign-in", data={"key": "dgm_nobody"})
            assert wrong.status_code == 401
        refused = await browse(service, "POST", "/console/sign-in", data={"key": token_of(Role.ADMIN)})
        assert (refused.status_code, COOKIE in refused.cookies) == (429, False)


@pytest.mark.requirement("C6")
async def test_a_page_allows_a_browser_nothing_but_our_own_files(service: Service) -> None:
    browser = await signed_in(service)
    for page in PAGES:
        answer = await browse(service, "GET", page, headers={"cookie": browser["cookie"]})
        assert answer.status_code == 200
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert "<script>" not in answer.text
        assert not re.search(r'\sstyle="|\son\w+="', answer.text)


@pytest.mark.requirement("C6")
async def test_no_route_answers_who_is_not_signed_in_and_none_acts_for_another_site(service: Service) -> None:
    browser = await signed_in(service)
    routes = [
        (method, re.sub(r"\{[^}]+\}", "x", f"/console{path}".rstrip("/")))
        for route in console_routes()
        for path in route.paths
        if not path.startswith(("/sign-in", "/static/"))
        for method in sorted(set(route.http_methods) & {"GET", "POST"})
    ]
    assert len(routes) > 70
    for method, path in routes:
        answer = await browse(service, method, path)
        assert answer.status_code == 303, path
        assert answer.headers["location"].startswith("/console/sign-in"), path
        if method == "POST":
            without_token = await browse(service, method, path, headers={"cookie": browser["cookie"]})
            assert without_token.status_code == 403, path


@pytest.mark.requirement("C6")
async def test_nothing_is_changed_for_a_request_that_does_not_come_from_our_pages(service: Service) -> None:
    run_id, approval_id = await waiting_run(service)
    browser = await signed_in(service)
    path, form = f"/console/approvals/{approval_id}", {"decision": "approve"}
    without_token = {"cookie": browser["cookie"]}
    elsewhere = browser | {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}
    same_site = browser | {"sec-fetch-site": "same-site"}
    for headers in (without_token, elsewhere, same_site, browser | {"x-csrf-token": "guessed"}):
        answer = await browse(service, "POST", path, headers=headers, data=form)
        assert answer.status_code == 403
    assert (await browse(service, "POST", path, data=form)).status_code == 303, "nobody is signed in"
    run = (await service.call("GET", f"/v1/runs/{run_id}")).json()
    assert run["status"] == "requires_action"


@pytest.mark.requirement("C3")
async def test_an_approval_is_decided_with_edited_arguments_or_denied_with_a_reason(service: Service) -> None:
    run_id, approval_id = await waiting_run(service)
    browser = await signed_in(service)
    page = await browse(service, "GET", f"/console/runs/{run_id}", headers=browser)
    assert approval_id in page.text
    bad = {"decision": "approve", "arguments": "[1"}
    refused = await browse(service, "POST", f"/console/approvals/{approval_id}", headers=browser, data=bad)
    assert refused.status_code == 422
    assert refused.headers["hx-retarget"] == "#flash"
    form = {"decision": "deny", "reason": "Not today."}
    decided = await browse(service, "POST", f"/console/approvals/{approval_id}", headers=browser, data=form)
    assert decided.status_code == 200
    assert decided.headers["hx-trigger"] == "approval-decided"
    [approval] = (await service.call("GET", f"/v1/approvals?run_id={run_id}")).json()["data"]
    assert (approval["state"], approval["reason"]) == ("denied", "Not today.")
    again = await browse(service, "POST", f"/console/approvals/{approval_id}", headers=browser, data=form)
    assert again.status_code == 409


@pytest.mark.requirement("C6")
async def test_a_viewer_sees_and_changes_nothing_and_other_organizations_see_nothing(service: Service) -> None:
    run_id, approval_id = await waiting_run(service)
    viewer = await signed_in(service, token_of(Role.VIEWER))
    page = await browse(service, "GET", f"/console/runs/{run_id}", headers=viewer)
    assert page.status_code == 200
    assert "Approve</button>" not in page.text
    for path, form in (
        (f"/console/approvals/{approval_id}", {"decision": "approve"}),
        (f"/console/runs/{run_id}/cancel", {}),
        ("/console/playground", {"agent": "guide", "input": "hello"}),
    ):
        assert (await browse(service, "POST", path, headers=viewer, data=form)).status_code == 403
    stranger = await signed_in(service, OTHER_ADMIN)
    for path in (f"/console/runs/{run_id}", f"/console/runs/{run_id}/state", f"/console/runs/{run_id}/stream"):
        assert (await browse(service, "GET", path, headers=stranger)).status_code == 404
    assert run_id not in (await browse(service, "GET", "/console/runs", headers=stranger)).text
    cancelled = await browse(service, "POST", f"/console/runs/{run_id}/cancel", headers=stranger)
    assert cancelled.status_code == 404


@pytest.mark.requirement("C6")
async def test_a_revoked_key_ends_the_sessions_of_its_owner(service: Service) -> None:
    made = (await service.call("POST", "/v1/api-keys", json={"name": "ops", "role": "operator"})).json()
    browser = await signed_in(service, made["token"])
    assert (await browse(service, "GET", "/console", headers=browser)).status_code == 200
    await service.call("DELETE", f"/v1/api-keys/{made['id']}")
    on_page = browser | {"hx-current-url": "https://agents.example.com/console/runs?status=failed"}
    answer = await browse(service, "GET", "/console/parts/overview", headers=on_page)
    assert answer.headers["hx-redirect"] == "/console/sign-in?next=%2Fconsole%2Fruns%3Fstatus%3Dfailed"


async def test_a_link_into_the_console_is_gone_on_with_after_signing_in(service: Service) -> None:
    deep = "/console/audit?action=tool.*&tool=a"
    sent_away = await browse(service, "GET", deep)
    form_page = await browse(service, "GET", sent_away.headers["location"])
    found = re.search(r'name="next" value="([^"]+)"', form_page.text)
    assert found is not None
    form = {"key": token_of(Role.VIEWER), "next": html.unescape(found[1])}
    assert (await browse(service, "POST", "/console/sign-in", data=form)).headers["location"] == deep


async def test_what_is_not_there_is_told_on_a_page_and_elsewhere_as_a_problem(service: Service) -> None:
    browser = await signed_in(service)
    for path in ("/console/nothing", "/console/runs/run_1/nothing", "/console/servers/a/b/c"):
        answer = await browse(service, "GET", path, headers={"cookie": browser["cookie"]})
        assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert "There is no such page." in answer.text
        assert '<nav aria-label="Main">' in answer.text
        assert "default-src 'none'" in answer.headers["content-security-policy"]
    for headers in ({}, {"cookie": "dragoman_console=nobody"}, {"cookie": browser["cookie"], "host": "elsewhere.test"}):
        anonymous = await browse(service, "GET", "/console/nothing", headers=headers)
        assert anonymous.status_code == 404
        assert "<nav" not in anonymous.text
    wrong = await browse(service, "POST", "/console/audit", headers=browser)
    assert (wrong.status_code, wrong.headers["content-type"]) == (405, "text/html; charset=utf-8")
    for path in ("/consoles", "/v1/nothing"):
        assert (await service.call("GET", path)).headers["content-type"] == "application/problem+json"


async def test_what_agents_and_models_say_is_never_markup(service: Service) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    await service.call("POST", "/v1/agents", json={"name": hostile, "model": MODEL})
    browser = await signed_in(service)
    for page in ("/console/playground", "/console/runs"):
        text = (await browse(service, "GET", page, headers=browser)).text
        assert hostile not in text
        assert html.escape(hostile) in text


async def test_the_playground_starts_a_run_and_goes_to_its_page(service: Service) -> None:
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})
    browser = await signed_in(service)
    form = {"agent": "guide", "input": "hello"}
    answer = await browse(service, "POST", "/console/playground", headers=browser, data=form)
    run_id = answer.headers["hx-redirect"].rpartition("/")[2]
    run = (await service.call("GET", f"/v1/runs/{run_id}")).json()
    assert run["input"] == [{"type": "text", "text": "hello"}]
    missing = await browse(service, "POST", "/console/playground", headers=browser, data={"agent": "guide"})
    assert missing.status_code == 422


@pytest.mark.requirement("B12")
async def test_a_server_is_tested_listed_and_its_tools_let_out_of_quarantine_by_an_admin_alone(
    service: Service,
) -> None:
    body = {"slug": "files", "kind": "custom", "command": "files-server"}
    await service.call("POST", "/v1/mcp-servers", json=body)
    admin, viewer = await signed_in(service), await signed_in(service, token_of(Role.VIEWER))
    tested = await browse(service, "POST", "/console/servers/files/test", headers=admin)
    assert "1 tools" in tested.text
    listed = await browse(service, "POST", "/console/servers/files/refresh", headers=admin)
    assert "echo" in listed.text
    page = await browse(service, "GET", "/console/servers/files", headers=viewer)
    assert "echo" in page.text
    assert "hx-post" not in page.text.partition("<main")[2]
    form = {"tool": "echo", "digest": "sha256:other"}
    for action, data in (("test", {}), ("refresh", {}), ("approve", form)):
        refused = await browse(service, "POST", f"/console/servers/files/{action}", headers=viewer, data=data)
        assert refused.status_code == 403
    stranger = await signed_in(service, OTHER_ADMIN)
    assert (await browse(service, "GET", "/console/servers/files", headers=stranger)).status_code == 404
    logs = await browse(service, "GET", "/console/servers/files/logs", headers=admin)
    assert "started" in logs.text


async def test_of_a_server_with_very_many_tools_the_first_are_shown_and_the_others_counted(service: Service) -> None:
    files = service.connections.servers["files"]
    files.tools = {f"old_{number}": text_reply("hi") for number in range(310)}
    await service.call("POST", "/v1/mcp-servers", json={"slug": "files", "kind": "custom", "command": "x"})
    admin = await signed_in(service)
    listed = await browse(service, "POST", "/console/servers/files/refresh", headers=admin)
    assert listed.text.count('class="mono">old_') == 300
    assert "And 10 more" in listed.text
    files.tools = {f"new_{number}": text_reply("hi") for number in range(60)}
    held = await browse(service, "POST", "/console/servers/files/refresh", headers=admin)
    assert held.text.count('class="approval"') == 50
    assert "And 10 more" in held.text


@pytest.mark.requirement("C5")
async def test_a_trail_that_was_changed_says_where_and_what_is_wrong(service: Service) -> None:
    entry = an_audit_event(1)
    await service.stores.audit.record(entry)
    await seal(service)
    browser = await signed_in(service, token_of(Role.VIEWER))
    service.state.audit[entry.id] = replace(entry, actor="key_somebody_else")
    verified = (await browse(service, "POST", "/console/audit/verify", headers=browser)).text
    assert "The trail was changed" in verified
    assert "was changed after sealing" in verified
    assert entry.id in verified


async def test_files_of_the_console_are_kept_by_browsers_and_nothing_else_is_served(service: Service) -> None:
    page = await browse(service, "GET", "/console/sign-in")
    for path in re.findall(r'(?:src|href)="(/console/static/[^"]+)"', page.text):
        answer = await browse(service, "GET", path)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
    for name in ("nothing.js", "..%2fpages.py", "htmx.LICENSE"):
        assert (await browse(service, "GET", f"/console/static/{name}")).status_code == 404


async def test_what_is_larger_than_may_be_sent_is_told_so_with_how_much_may(service: Service) -> None:
    browser = await signed_in(service)
    form = {"agent": "x", "input": "a" * (MAX_JSON_BYTES + 1)}
    refused = await browse(service, "POST", "/console/playground", headers=browser, data=form)
    assert (refused.status_code, refused.headers["hx-retarget"]) == (413, "#flash")
    assert "10 MiB" in refused.text


async def test_what_is_chosen_from_is_there_whole_however_much_there_is() -> None:
    every = [str(number) for number in range(2 * MAX_PAGE_SIZE + 1)]

    async def page(request: PageRequest) -> Page[str]:
        begin = int(request.cursor or 0)
        end = begin + request.limit
        return Page(items=tuple(every[begin:end]), next_cursor=str(end) if end < len(every) else None)

    assert list(await all_of(page)) == every


async def test_more_agents_than_a_page_has_can_all_be_talked_with(service: Service) -> None:
    for number in range(101):
        await service.call("POST", "/v1/agents", json={"name": f"agent-{number}", "model": MODEL})
    browser = await signed_in(service)
    for path in ("/console/playground", "/console/runs"):
        page = await browse(service, "GET", path, headers=browser)
        assert page.text.count("<option") >= 101
        assert ">agent-0" in page.text


@pytest.mark.requirement("C6")
async def test_a_form_of_very_many_fields_or_values_is_refused(service: Service) -> None:
    person = await signed_in(service)
    form = person | {"content-type": "application/x-www-form-urlencoded"}
    fields = await service.client.request("POST", "/console/secrets", content=b"a=b&" * 10_000, headers=form)
    assert fields.status_code == 413
    long = {"key": "x" * 20_000}
    assert (await browse(service, "POST", "/console/sign-in", data=long)).status_code == 413
