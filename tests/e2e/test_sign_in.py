"""People who sign in with a real identity provider: console, API, gateway and streams of a real
service."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.browser import Person, browsing, needs_browser
from tests.e2e.identity_provider import (
    IdentityProvider,
    begin,
    needs_identity_provider,
    providing,
    register,
)
from tests.e2e.service import Json, Service, a_turn, serving

pytestmark = [pytest.mark.timeout(240), pytest.mark.requirement("P1"), needs_identity_provider()]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("sign_in") / "home") as running:
        running.agent("talker", running.script("talker", a_turn("Hello.")))
        yield running


@pytest.fixture(scope="module")
def provider(service: Service) -> Iterator[IdentityProvider]:
    with providing(service) as running:
        yield running


@pytest.fixture(scope="module")
def registered(service: Service, provider: IdentityProvider) -> Json:
    return register(service, provider)


@pytest.fixture
def browser() -> Iterator[httpx.Client]:
    with httpx.Client(trust_env=False, timeout=60.0) as client:
        yield client


def signed_in(browser: httpx.Client, service: Service, provider: IdentityProvider, registered: Json, name: str) -> str:
    """The page to which the console sends a person who came back."""
    back = provider.answer(browser, begin(browser, service, registered["id"]), name)
    response = browser.get(back)
    assert response.status_code == httpx.codes.SEE_OTHER, response.text
    return str(response.headers["location"])


def with_token(service: Service, token: str) -> httpx.Client:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.Client(base_url=service.url, headers=headers, trust_env=False, timeout=60.0)


@contextmanager
def listening(client: httpx.Client, path: str) -> Iterator[Iterator[str]]:
    """What comes on a stream after its first part."""
    with client.stream("GET", path, headers={"Accept": "text/event-stream"}) as response:
        assert response.status_code == httpx.codes.OK, response.read()
        parts = response.iter_text()
        assert next(parts)
        yield parts


def user_of(service: Service, subject: str) -> Json:
    [found] = [user for user in service.call("GET", "/users")["data"] if user["subject"] == subject]
    return dict(found)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browsing() as opened:
        yield opened


@needs_browser()
@pytest.mark.requirement("P2")
def test_a_person_signs_in_and_out_at_the_companys_provider(
    chromium: Browser, service: Service, provider: IdentityProvider, registered: Json
) -> None:
    ann = Person(chromium, service.url)
    ann.go("/console/runs")
    ann.page.get_by_role("button", name="Sign in with company").click()
    ann.page.get_by_label("Name").fill("ann")
    ann.page.get_by_role("button", name="Continue").click()
    ann.page.get_by_role("heading", name="Runs").wait_for()
    user = user_of(service, "ann")
    expect(ann.page.get_by_title(f"You are signed in as {user['id']}")).to_have_text("ann")

    assert (user["role"], user["email"], user["status"]) == ("operator", "ann@example.com", "active")

    ann.page.get_by_role("button", name="Sign out").click()
    ann.page.get_by_role("button", name="Yes").click()
    ann.page.get_by_label("API key").wait_for()
    ann.go("/console/runs")
    ann.page.get_by_role("button", name="Sign in with company").wait_for()
    ann.page.context.close()


def test_a_person_whom_no_rule_admits_is_refused_and_gets_no_user(
    browser: httpx.Client, service: Service, provider: IdentityProvider, registered: Json
) -> None:
    back = provider.answer(browser, begin(browser, service, registered["id"]), "eve")
    refused = browser.get(back)
    assert refused.status_code == httpx.codes.UNAUTHORIZED
    assert "No rule of the identity provider admits you." in refused.text
    assert browser.get(f"{service.url}/console/runs").headers["location"].startswith("/console/sign-in")
    assert "eve" not in [user["subject"] for user in service.call("GET", "/users")["data"]]


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
def test_the_api_takes_tokens_of_the_provider_also_after_it_has_new_keys(
    service: Service, provider: IdentityProvider, registered: Json, algorithm: str
) -> None:
    provider.sign_tokens_with(algorithm)
    tokens = provider.tokens("bob")
    with with_token(service, tokens["id_token"]) as bob:
        assert bob.get("/v1/agents").is_success
        refused = bob.get("/v1/users")
        assert (refused.status_code, refused.json()["code"]) == (httpx.codes.FORBIDDEN, "role_insufficient")
    assert user_of(service, "bob")["role"] == "operator"


@pytest.mark.requirement("P2")
def test_a_deactivated_person_is_refused_by_api_gateway_stream_and_console(
    browser: httpx.Client, service: Service, provider: IdentityProvider, registered: Json
) -> None:
    token = provider.tokens("carla")["id_token"]
    signed_in(browser, service, provider, registered, "carla")
    home = browser.get(f"{service.url}/console")
    assert home.is_success
    user = user_of(service, "carla")
    assert user["role"] == "admin"
    waiting = {"code_execution": {"decision": "require_approval"}}
    model = service.script("asker", a_turn("Wait.", ("code_execution", {"code": "1"})), a_turn("Done."))
    service.agent("asker", model, tools=["code_execution"], tool_policies=waiting)
    service.agent("slow", service.script("slow", a_turn("Late."), delay_ms=60_000, chunk_chars=1))
    with with_token(service, token) as carla:
        run = carla.post("/v1/runs", json={"agent": "asker", "input": "Go."}).raise_for_status().json()["id"]
        assert carla.get(f"/v1/runs/{run}/wait").json()["run"]["status"] == "requires_action"
        [started] = service.call("GET", f"/audit-events?run_id={run}&action=run.started")["data"]
        assert started["actor"] == user["id"]

        slow = carla.post("/v1/runs", json={"agent": "slow", "input": "Go."}).raise_for_status().json()["id"]
        with listening(carla, f"/v1/runs/{slow}/stream") as of_run, listening(carla, "/mcp?agent=talker") as of_gateway:
            ended = service.call("PATCH", f"/users/{user['id']}", {"status": "deactivated"})
            assert ended["cancelled_runs"] == len((run, slow))
            assert "run.completed" not in "".join(of_run), "it ends before the answer"
            said = [line for line in "".join(of_gateway).splitlines() if line and not line.startswith(":")]
            assert said == [], "it ends, and says no more"

        for answer in (
            carla.get("/v1/runs"),
            carla.get(f"/v1/runs/{run}/stream"),
            carla.post("/mcp?agent=talker", json={"jsonrpc": "2.0", "id": 1, "method": "ping"}),
        ):
            assert answer.status_code == httpx.codes.UNAUTHORIZED, answer.text
        away = browser.get(f"{service.url}/console/runs")
        assert away.headers["location"].startswith("/console/sign-in")
        again = browser.get(provider.answer(browser, begin(browser, service, registered["id"]), "carla"))
        assert again.status_code == httpx.codes.UNAUTHORIZED

        removed = service.call("DELETE", f"/users/{user['id']}")
        assert (removed["status"], removed["name"], removed["email"]) == ("removed", None, None)
        assert carla.get("/v1/runs").status_code == httpx.codes.UNAUTHORIZED
    assert service.call("GET", f"/runs/{run}")["status"] == "cancelled"


@pytest.mark.requirement("P2", "C3")
def test_a_sign_in_makes_a_member_who_decides_what_is_left_to_the_group_until_the_claim_is_gone(
    browser: httpx.Client, service: Service, provider: IdentityProvider, registered: Json
) -> None:
    claim = {"identity_provider": "company", "claim": "groups", "value": "agents"}
    service.call("POST", "/groups", {"name": "Deciders", "claims": [claim]})
    asks = {"decision": "require_approval", "allow_self_approval": False, "approvers": {"groups": ["Deciders"]}}
    model = service.script("transfers", a_turn("Wait.", ("code_execution", {"code": "1"})), a_turn("Done."))
    service.agent("transfers", model, tools=["code_execution"], tool_policies={"code_execution": asks})

    def approval_of(client: httpx.Client) -> str:
        run = client.post("/v1/runs/wait", json={"agent": "transfers", "input": "Go."}).raise_for_status().json()["run"]
        return str(run["pending"][0]["approval_id"])

    def decided(client: httpx.Client, approval: str) -> str:
        answer = client.post(f"/v1/approvals/{approval}", json={"decision": "approve"})
        return str(answer.json().get("code", answer.json().get("state")))

    admin = with_token(service, service.key)
    with admin, with_token(service, provider.tokens("bob")["id_token"]) as bob:
        by_admin = approval_of(admin)
        assert decided(bob, by_admin) == "not_an_approver"
        assert decided(admin, by_admin) == "not_an_approver", "the admin is none either"
        signed_in(browser, service, provider, registered, "bob")
        assert bob.get(f"/v1/approvals/{by_admin}").json()["approvable"] is True
        assert decided(bob, by_admin) == "approved"
        assert decided(bob, approval_of(bob)) == "self_approval_forbidden"

        another = approval_of(admin)
        service.call("PATCH", "/groups/Deciders", {"claims": []})
        assert decided(bob, another) == "not_an_approver"
    [entry] = service.call("GET", f"/audit-events?action=tool.approved&actor={user_of(service, 'bob')['id']}")["data"]
    assert entry["details"]["approval_id"] == by_admin


def test_state_and_code_work_once_and_only_in_the_browser_that_began(
    browser: httpx.Client, service: Service, provider: IdentityProvider, registered: Json
) -> None:
    back = provider.answer(browser, begin(browser, service, registered["id"]), "bob")
    with httpx.Client(trust_env=False, timeout=60.0) as other:
        assert other.get(back).status_code == httpx.codes.UNAUTHORIZED
        begin(other, service, registered["id"])
        assert other.get(back).status_code == httpx.codes.UNAUTHORIZED, "another state"
    first_cookies = dict(browser.cookies)
    assert browser.get(back).status_code == httpx.codes.SEE_OTHER
    with httpx.Client(trust_env=False, timeout=60.0, cookies=first_cookies) as copy:
        assert copy.get(back).status_code == httpx.codes.UNAUTHORIZED, "a used code"


def test_sign_ins_that_two_tabs_began_both_finish(
    browser: httpx.Client, service: Service, provider: IdentityProvider, registered: Json
) -> None:
    begun = [begin(browser, service, registered["id"], f"/console/{page}") for page in ("runs", "agents")]
    unknown = browser.get(f"{service.url}/console/sign-in/callback?code=c0de&state=unknown")
    assert unknown.status_code == httpx.codes.UNAUTHORIZED
    for url, page in zip(begun, ("runs", "agents"), strict=True):
        back = provider.answer(browser, url, "bob")
        assert browser.get(back).headers.get("location") == f"/console/{page}"
        assert browser.get(back).status_code == httpx.codes.UNAUTHORIZED, "each once"


def test_signing_in_begins_a_new_session_and_leads_to_pages_of_the_console_only(
    browser: httpx.Client, service: Service, provider: IdentityProvider, registered: Json
) -> None:
    host = urlsplit(service.url).hostname or ""
    browser.cookies.set("dragoman_console", "planted", domain=host, path="/console")
    back = provider.answer(browser, begin(browser, service, registered["id"], "https://evil.example/console"), "bob")
    response = browser.get(back)
    assert response.headers["location"] == "/console"
    cookies = response.headers.get_list("set-cookie")
    assert [re.match(r"dragoman_console=(?!planted)[\w=\"-]{100,}", cookie) is not None for cookie in cookies].count(
        True
    ) == 1
    assert parse_qs(urlsplit(begin(browser, service, registered["id"])).query)["code_challenge_method"] == ["S256"]
