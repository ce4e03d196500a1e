"""Attacks on what people grant to OAuth clients: on the consent, the code, the tokens, and on whose
they are."""

import html
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.e2e.consent import Consent, People
from tests.e2e.front_door import a_front_door
from tests.e2e.identity_provider import CLI_CLIENT, needs_identity_provider, providing_for, register
from tests.e2e.oauth_client import RawClient, a_client, answer_of
from tests.e2e.service import Json, a_turn, serving

pytestmark = [pytest.mark.timeout(240), pytest.mark.requirement("P5"), needs_identity_provider()]

EVIL = "https://evil.example/callback"


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    with a_front_door(tmp_path_factory.mktemp("attacks_on_identity") / "home") as running:
        yield running


@pytest.fixture(scope="module")
def ann(people: People) -> Iterator[httpx.Client]:
    """Her browser, in which she is signed in."""
    with httpx.Client(trust_env=False, timeout=60.0) as browser:
        people.signed_in(browser, f"{people.service.url}/console", "ann")
        yield browser


@pytest.fixture
def client(people: People) -> RawClient:
    return a_client(people.service)


def granted(people: People, browser: httpx.Client, client: RawClient, **changes: str) -> Json:
    """The tokens of a client that a person has allowed."""
    code = answer_of(people.consent(browser, client.url(**changes)).redirected())["code"]
    resource = changes.get("resource", client.resource)
    return dict(client.redeem(code, resource=resource).raise_for_status().json())


def grants(people: People) -> int:
    return len(people.service.call("GET", "/gateway-sessions?limit=100")["data"])


def test_mix_up_every_answer_names_the_server_that_gave_it(
    people: People, ann: httpx.Client, client: RawClient
) -> None:
    described = httpx.get(
        f"{people.service.url}/.well-known/oauth-authorization-server", trust_env=False, timeout=60
    ).json()
    assert described["authorization_response_iss_parameter_supported"] is True
    for decision in ("allow", "deny"):
        answer = answer_of(people.consent(ann, client.url()).redirected(decision))
        assert (answer["iss"], answer["state"]) == (described["issuer"], "the-state")
        assert ("error" in answer) is (decision == "deny")


def test_confused_deputy_each_client_and_each_request_needs_a_consent(people: People, ann: httpx.Client) -> None:
    trusted, other = (a_client(people.service, name=name) for name in ("Trusted", "Other"))
    granted(people, ann, trusted)
    before = grants(people)
    for asking in (trusted, other):
        page = ann.get(asking.url())
        assert (page.status_code, page.has_redirect_location) == (httpx.codes.OK, False)
        assert "Allow " in page.text
    assert grants(people) == before
    foreign = ann.get(trusted.url(redirect_uri=EVIL))
    assert (foreign.status_code, foreign.has_redirect_location) == (httpx.codes.UNPROCESSABLE_ENTITY, False)


def test_token_substitution_a_token_opens_what_it_was_issued_for_and_nothing_else(
    people: People, ann: httpx.Client, client: RawClient
) -> None:
    code = answer_of(people.consent(ann, client.url()).redirected())["code"]
    assert client.ping(code) == httpx.codes.UNAUTHORIZED, "a code is no token"
    tokens = dict(client.redeem(code).raise_for_status().json())
    access, refresh = tokens["access_token"], tokens["refresh_token"]
    assert client.ping(access) == client.ping(access, "") == httpx.codes.OK
    assert client.ping(access, "?agent=other") == httpx.codes.UNAUTHORIZED, "another agent"
    assert client.ping(refresh) == httpx.codes.UNAUTHORIZED, "no token for tools"
    api = httpx.get(
        f"{people.service.url}/v1/agents", headers={"Authorization": f"Bearer {access}"}, trust_env=False, timeout=60
    )
    assert api.status_code == httpx.codes.UNAUTHORIZED, "no token for the API"
    another = a_client(people.service, name="Another")
    assert another.refresh(refresh).json()["error"] == "invalid_grant"
    assert client.refresh(access).json()["error"] == "invalid_grant"
    elsewhere = client.refresh(refresh, resource=f"{people.service.url}/mcp?agent=other")
    assert elsewhere.json()["error"] == "invalid_target"
    assert client.refresh(refresh).is_success, "which none of this has used up"


def test_open_redirect_no_request_sends_the_browser_to_what_the_client_has_not_registered(
    people: People, ann: httpx.Client, client: RawClient
) -> None:
    port = client.redirect_uri.replace("127.0.0.1:33420", "127.0.0.1:33420@evil.example")
    faulty = [
        client.url(redirect_uri=EVIL),
        client.url(redirect_uri=port),
        client.url(redirect_uri=f"{client.redirect_uri}/../x"),
        client.url(redirect_uri="//evil.example/"),
        client.url(redirect_uri=""),
        f"{client.url()}&redirect_uri={EVIL}",
        client.url(client_id="unknown", redirect_uri=EVIL),
        client.url(response_type="token"),
        client.url(resource="https://evil.example/mcp"),
    ]
    for url in faulty:
        page = ann.get(url)
        assert page.is_client_error, url
        assert not page.has_redirect_location, url
        assert "refresh" not in page.headers, url
    for uri in ("javascript://evil.example/%0aalert(1)", "data://text/html,x", "http://evil.example/"):
        refused = httpx.post(
            f"{people.service.url}/register", json={"redirect_uris": [uri]}, trust_env=False, timeout=60
        )
        assert refused.json()["error"] == "invalid_redirect_uri"


def test_session_fixation_the_page_of_one_session_answers_in_no_other(people: People, client: RawClient) -> None:
    with httpx.Client(trust_env=False, timeout=60.0) as mallory, httpx.Client(trust_env=False, timeout=60.0) as victim:
        planted = people.consent(mallory, client.url(), "bob")
        # The victim's browser has the attacker's session: the page says whose it is.
        victim.cookies.set("dragoman_console", mallory.cookies["dragoman_console"], path="/console")
        assert "bob@example.com" in people.consent(victim, client.url()).text
        victim.cookies.clear()
        own = people.consent(victim, client.url(), "ann")
        assert "ann@example.com" in own.text
        assert own.csrf != planted.csrf
        before = grants(people)
        with_planted = Consent(browser=victim, url=planted.url, text=planted.text)
        assert with_planted.answer().status_code == httpx.codes.FORBIDDEN
        assert grants(people) == before


def test_csrf_no_other_site_consents_in_a_persons_name(people: People, ann: httpx.Client, client: RawClient) -> None:
    page = people.consent(ann, client.url())
    before = grants(people)
    for headers in (
        {"X-CSRF-Token": ""},
        {"X-CSRF-Token": "guess"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
    ):
        assert page.answer(**headers).status_code == httpx.codes.FORBIDDEN, headers
    by_link = ann.get(f"{client.url()}&decision=allow")
    assert "hx-redirect" not in by_link.headers
    assert grants(people) == before


def test_clickjacking_no_site_shows_the_consent_in_a_frame(
    people: People, ann: httpx.Client, client: RawClient
) -> None:
    page = ann.get(client.url())
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert page.headers["cache-control"] == "no-store"


def test_a_name_of_a_client_writes_nothing_into_the_page_of_the_consent(people: People, ann: httpx.Client) -> None:
    name = "<script>alert(1)</script>\u202e of your company"
    refused = {"client_name": name, "redirect_uris": ["http://127.0.0.1/"]}
    answer = httpx.post(f"{people.service.url}/register", json=refused, trust_env=False, timeout=60)
    assert answer.json()["error"] == "invalid_client_metadata", "text that people do not see"
    page = ann.get(a_client(people.service, name="<script>alert(1)</script>").url())
    assert html.escape("<script>alert(1)</script>") in page.text
    assert not re.search(r"<script>alert", page.text)


def test_a_replayed_code_ends_what_it_gave(people: People, ann: httpx.Client, client: RawClient) -> None:
    code = answer_of(people.consent(ann, client.url()).redirected())["code"]
    tokens = client.redeem(code).raise_for_status().json()
    assert client.ping(tokens["access_token"]) == httpx.codes.OK
    assert client.redeem(code).json()["error"] == "invalid_grant"
    assert client.ping(tokens["access_token"]) == httpx.codes.UNAUTHORIZED
    assert client.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"


def test_of_many_who_redeem_a_code_at_the_same_time_one_gets_tokens_and_they_end(
    people: People, ann: httpx.Client, client: RawClient
) -> None:
    code = answer_of(people.consent(ann, client.url()).redirected())["code"]
    with ThreadPoolExecutor(max_workers=8) as many:
        answers = list(many.map(lambda _: client.redeem(code), range(8)))
    [only] = [answer.json() for answer in answers if answer.is_success]
    assert {answer.json().get("error") for answer in answers} == {None, "invalid_grant"}
    assert client.ping(only["access_token"]) == httpx.codes.UNAUTHORIZED
    assert client.refresh(only["refresh_token"]).json()["error"] == "invalid_grant"


def test_a_stolen_code_is_worth_nothing_without_what_the_client_alone_knows(
    people: People, ann: httpx.Client, client: RawClient
) -> None:
    for downgrade in ({"code_challenge_method": "plain"}, {"code_challenge": ""}, {"code_challenge_method": ""}):
        assert ann.get(client.url(**downgrade)).is_client_error
    code = answer_of(people.consent(ann, client.url()).redirected())["code"]
    thief = a_client(people.service, name="Thief")
    assert thief.redeem(code).json()["error"] == "invalid_grant"
    assert thief.redeem(code, client_id=client.client_id).json()["error"] == "invalid_grant"
    assert client.redeem(code, redirect_uri=EVIL).json()["error"] == "invalid_grant"
    assert client.redeem(code).is_success


def test_a_stolen_refresh_token_ends_the_grant_once_both_have_used_it(
    people: People, ann: httpx.Client, client: RawClient
) -> None:
    tokens = granted(people, ann, client)
    renewed = client.refresh(tokens["refresh_token"]).raise_for_status().json()
    assert client.ping(tokens["access_token"]) == httpx.codes.UNAUTHORIZED, "it was replaced"
    assert client.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    assert client.ping(renewed["access_token"]) == httpx.codes.UNAUTHORIZED
    assert client.refresh(renewed["refresh_token"]).json()["error"] == "invalid_grant"


def test_a_revoked_token_and_a_revoked_grant_open_nothing(people: People, ann: httpx.Client, client: RawClient) -> None:
    by_client, by_admin = granted(people, ann, client), granted(people, ann, client)
    session = people.service.call("GET", "/gateway-sessions")["data"][0]["id"]
    assert client.post("/oauth/revoke", client_id=client.client_id, token=by_client["refresh_token"]).is_success
    people.service.client.delete(f"/gateway-sessions/{session}").raise_for_status()
    for tokens in (by_client, by_admin):
        assert client.ping(tokens["access_token"]) == httpx.codes.UNAUTHORIZED
        assert client.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"


def test_an_api_key_in_the_browser_grants_nothing(people: People, client: RawClient) -> None:
    with httpx.Client(trust_env=False, timeout=60.0) as browser:
        browser.post(f"{people.service.url}/console/sign-in", data={"key": people.service.key, "next": "/console"})
        page = browser.get(client.url())
        assert page.status_code == httpx.codes.FORBIDDEN
        assert "Sign in with company" in page.text


def test_a_deactivated_person_is_refused_at_once_through_every_client(people: People, client: RawClient) -> None:
    with httpx.Client(trust_env=False, timeout=60.0) as browser:
        people.signed_in(browser, f"{people.service.url}/console", "bob")
        tokens = granted(people, browser, client)
        code = answer_of(people.consent(browser, client.url(), "bob").redirected())["code"]
        assert client.ping(tokens["access_token"]) == httpx.codes.OK
        [user] = [each for each in people.service.call("GET", "/users")["data"] if each["subject"] == "bob"]
        people.service.call("PATCH", f"/users/{user['id']}", {"status": "deactivated"})
        assert client.ping(tokens["access_token"]) == httpx.codes.UNAUTHORIZED
        assert client.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
        assert client.redeem(code).json()["error"] == "invalid_grant"
        assert browser.get(client.url()).has_redirect_location, "to the sign-in page"


def test_people_of_a_deleted_identity_provider_are_refused_at_once(people: People, client: RawClient) -> None:
    with httpx.Client(trust_env=False, timeout=60.0) as browser:
        people.signed_in(browser, f"{people.service.url}/console", "carla")
        tokens = granted(people, browser, client)
        assert client.ping(tokens["access_token"]) == httpx.codes.OK
        people.service.client.delete(f"/identity-providers/{people.registered['id']}").raise_for_status()
        assert client.ping(tokens["access_token"]) == httpx.codes.UNAUTHORIZED
        assert client.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"


def test_with_another_authorization_server_only_its_tokens_for_the_gateway_are_taken(tmp_path: Path) -> None:
    public = "https://agents.example.com"
    gateway = f"{public}/mcp"
    with (
        providing_for(public) as provider,
        serving(
            tmp_path / "home", DRAGOMAN_PUBLIC_URL=public, DRAGOMAN_GATEWAY_AUTHORIZATION_SERVER=provider.issuer
        ) as service,
    ):
        service.agent("reader", service.script("reader", a_turn("Hello.")))
        register(service, provider, audiences=[CLI_CLIENT, gateway])
        described = httpx.get(
            f"{service.url}/.well-known/oauth-protected-resource/mcp?agent=reader", trust_env=False, timeout=60
        ).json()
        assert (described["resource"], described["authorization_servers"]) == (gateway, [provider.issuer])
        client = RawClient(service=service, client_id="none")
        token = provider.tokens("bob", scope="openid", resource=gateway)["access_token"]
        assert client.ping(token) == httpx.codes.OK
        for_others = provider.tokens("bob")["id_token"]
        assert client.ping(for_others) == httpx.codes.UNAUTHORIZED, "it is for another audience"
        with httpx.Client(
            base_url=service.url, headers={"Authorization": f"Bearer {for_others}"}, trust_env=False, timeout=60
        ) as bob:
            assert bob.get("/v1/agents").is_success, "which the API takes"
        refused = httpx.post(f"{service.url}/mcp", trust_env=False, timeout=60).headers["www-authenticate"]
        assert "scope=" not in refused, "scopes are the other server's"
        for path in ("/.well-known/oauth-authorization-server", "/register"):
            method = "POST" if path == "/register" else "GET"
            assert httpx.request(method, f"{service.url}{path}", trust_env=False, timeout=60).is_client_error
