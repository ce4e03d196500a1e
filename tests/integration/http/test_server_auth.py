"""`auth` of MCP servers over HTTP: what is taken, what is shown, and coming back from an
authorization server."""

from urllib.parse import parse_qs, urlsplit

import pytest

from tests.certificates import Authority
from tests.integration.http.service import Service, paths_of, problem_of
from tests.integration.http.test_console import browse, signed_in

pytestmark = pytest.mark.requirement("B12")

PLANTED = "planted-s3cret-value"
SIGNING_KEY = f"{PLANTED}\n{Authority('machines').issue('dragoman').private_key}"
"""A key with a text before it."""
REMOTE = {"slug": "tickets", "kind": "http", "url": "https://mcp.example.org/mcp"}
BY_PERSON = {"type": "oauth_authorization_code"}


@pytest.mark.parametrize(
    ("auth", "shown"),
    [
        ({"type": "bearer", "token": PLANTED}, {"type": "bearer", "token": "[hidden]"}),
        ({"type": "bearer", "token": {"secret": "TOKEN"}}, {"type": "bearer", "token": {"secret": "TOKEN"}}),
        (
            {"type": "api_key", "header": "X-Api-Key", "value": PLANTED},
            {"type": "api_key", "header": "X-Api-Key", "value": "[hidden]"},
        ),
        (
            {
                "type": "oauth_client_credentials",
                "client_id": "dragoman",
                "client_secret": PLANTED,
                "scopes": ["read"],
                "issuer": "https://auth.example.org",
            },
            {
                "type": "oauth_client_credentials",
                "client_id": "dragoman",
                "client_secret": "[hidden]",
                "private_key": None,
                "key_id": None,
                "scopes": ["read"],
                "issuer": "https://auth.example.org",
            },
        ),
        (
            {"type": "oauth_client_credentials", "client_id": "dragoman", "private_key": SIGNING_KEY, "key_id": "one"},
            {
                "type": "oauth_client_credentials",
                "client_id": "dragoman",
                "client_secret": None,
                "private_key": "[hidden]",
                "key_id": "one",
                "scopes": [],
                "issuer": None,
            },
        ),
        (BY_PERSON, {**BY_PERSON, "client_id": None, "client_secret": None, "scopes": [], "issuer": None}),
    ],
)
async def test_auth_is_taken_and_shown_without_its_secrets(
    service: Service, auth: dict[str, object], shown: dict[str, object]
) -> None:
    made = await service.call("POST", "/v1/mcp-servers", json={**REMOTE, "auth": auth})
    assert (made.status_code, made.json()["auth"]) == (201, shown)
    read = await service.call("GET", "/v1/mcp-servers/tickets")
    audit = await service.call("GET", "/v1/audit-events")
    assert read.json()["auth"] == shown
    assert PLANTED not in made.text + read.text + audit.text


ON_BEHALF = {"type": "oauth_token_exchange", "audience": "tickets", "scopes": ["read"]}
BY_ASSERTION = {
    "type": "oauth_id_jag",
    "issuer": "https://auth.example.org",
    "client_id": "dragoman",
    "client_secret": PLANTED,
}


@pytest.mark.requirement("P4")
@pytest.mark.parametrize(
    ("auth", "shown"),
    [
        (
            ON_BEHALF,
            {
                **ON_BEHALF,
                "client_id": None,
                "client_secret": None,
                "private_key": None,
                "key_id": None,
                "issuer": None,
                "resource": None,
                "subject_token": "id_token",
            },
        ),
        (
            BY_ASSERTION,
            {**BY_ASSERTION, "client_secret": "[hidden]", "private_key": None, "key_id": None, "scopes": []},
        ),
    ],
    ids=["token exchange", "id-jag"],
)
async def test_auth_on_behalf_of_people_needs_their_own_credentials(
    service: Service, auth: dict[str, object], shown: dict[str, object]
) -> None:
    shared = await service.call("POST", "/v1/mcp-servers", json={**REMOTE, "auth": auth})
    assert paths_of(problem_of(shared, 422, "mcp_server_invalid")) == ["credentials"]
    made = await service.call("POST", "/v1/mcp-servers", json={**REMOTE, "auth": auth, "credentials": "person"})
    assert (made.status_code, made.json()["auth"]) == (201, shown)
    assert PLANTED not in made.text


@pytest.mark.requirement("P4")
async def test_the_forms_of_auth_on_behalf_of_people_are_saved_and_edited(service: Service) -> None:
    admin = await signed_in(service)
    cases: tuple[tuple[dict[str, str], dict[str, object]], ...] = (
        (
            {"auth.type": "oauth_token_exchange", "auth.audience": "a", "auth.subject_token": "access_token"},
            {"type": "oauth_token_exchange", "audience": "a", "subject_token": "access_token", "client_id": None},
        ),
        (
            {
                "auth.type": "oauth_id_jag",
                "auth.issuer": "https://auth.example.org",
                "auth.client_id": "me",
                "auth.client_secret": PLANTED,
            },
            {"type": "oauth_id_jag", "issuer": "https://auth.example.org", "client_secret": "[hidden]"},
        ),
    )
    for number, (fields, expected) in enumerate(cases):
        part = await browse(
            service, "GET", f"/console/parts/server-auth?auth.type={fields['auth.type']}", headers=admin
        )
        assert all(f'name="{name}"' in part.text for name in fields if name != "auth.type")
        form = {**REMOTE, "slug": f"s{number}", "enabled": "on", "credentials": "person", **fields}
        answer = await browse(service, "POST", "/console/servers-new", headers=admin, data=form)
        assert answer.status_code == 200, answer.text
        page = await browse(service, "GET", f"/console/servers/s{number}/edit", headers=admin)
        assert PLANTED not in page.text
        again = {name: value for name, value in form.items() if value != PLANTED} | {"revision": "1", "timeout_s": "9"}
        answer = await browse(service, "POST", f"/console/servers/s{number}/edit", headers=admin, data=again)
        assert answer.status_code == 200, answer.text
        auth = (await service.call("GET", f"/v1/mcp-servers/s{number}")).json()["auth"]
        assert auth.items() >= expected.items()


@pytest.mark.parametrize(
    ("auth", "paths"),
    [
        ({"type": "magic"}, {"auth"}),
        ({"token": PLANTED}, {"auth"}),
        ({"type": "bearer"}, {"auth.token"}),
        ({"type": "bearer", "token": ""}, {"auth.token"}),
        ({"type": "bearer", "token": "[hidden]"}, {"auth.token"}),
        ({"type": "bearer", "token": {"secret": "not a name"}}, {"auth.token.secret"}),
        ({"type": "api_key", "header": "a b", "value": PLANTED}, {"auth.header"}),
        ({"type": "oauth_client_credentials", "client_id": "", "client_secret": PLANTED}, {"auth.client_id"}),
        ({"type": "oauth_client_credentials", "client_id": "me"}, {"auth.client_secret"}),
        (
            {"type": "oauth_client_credentials", "client_id": "me", "client_secret": PLANTED, "private_key": PLANTED},
            {"auth.client_secret"},
        ),
        (
            {"type": "oauth_client_credentials", "client_id": "me", "client_secret": PLANTED, "key_id": "one"},
            {"auth.key_id"},
        ),
        (
            {"type": "oauth_client_credentials", "client_id": "me", "private_key": "[hidden]"},
            {"auth.private_key"},
        ),
        (
            {"type": "oauth_client_credentials", "client_id": "me", "private_key": PLANTED},
            {"auth.private_key"},
        ),
        ({**BY_PERSON, "client_secret": PLANTED}, {"auth.client_secret"}),
        ({"type": "oauth_token_exchange", "client_secret": PLANTED}, {"auth.client_secret", "credentials"}),
        (
            {"type": "oauth_token_exchange", "audience": "", "resource": "a\nb"},
            {"auth.audience", "auth.resource", "credentials"},
        ),
        ({"type": "oauth_token_exchange", "subject_token": "refresh_token"}, {"auth.subject_token"}),
        ({"type": "oauth_id_jag", "client_id": "me", "client_secret": PLANTED}, {"auth.issuer"}),
        (
            {"type": "oauth_id_jag", "client_id": "me", "issuer": "https://a.example"},
            {"auth.client_secret", "credentials"},
        ),
        ({**BY_PERSON, "scopes": ["a b"], "issuer": "auth.example.org"}, {"auth.scopes.0", "auth.issuer"}),
    ],
)
async def test_wrong_auth_is_refused_with_its_paths_and_without_its_secrets(
    service: Service, auth: dict[str, object], paths: set[str]
) -> None:
    response = await service.call("POST", "/v1/mcp-servers", json={**REMOTE, "auth": auth})
    assert response.status_code == 422
    assert set(paths_of(response.json())) == paths
    assert PLANTED not in response.text


async def test_auth_is_for_remote_servers_and_sets_its_header_alone(service: Service) -> None:
    auth = {"type": "bearer", "token": PLANTED}
    started = {"slug": "files", "kind": "custom", "command": "run", "auth": auth}
    refused = await service.call("POST", "/v1/mcp-servers", json=started)
    assert paths_of(problem_of(refused, 422, "mcp_server_invalid")) == ["auth"]
    twice = {**REMOTE, "auth": auth, "headers": {"Authorization": "Bearer x"}}
    refused = await service.call("POST", "/v1/mcp-servers", json=twice)
    assert paths_of(problem_of(refused, 422, "mcp_server_invalid")) == ["headers.Authorization"]


async def test_the_form_takes_a_private_key_in_lines_and_an_entered_secret_replaces_it(service: Service) -> None:
    admin = await signed_in(service)
    form = {**REMOTE, "enabled": "on", "auth.type": "oauth_client_credentials", "auth.client_id": "me"}
    entered = {"auth.private_key": SIGNING_KEY.replace("\n", "\r\n"), "auth.key_id": "one"}
    await browse(service, "POST", "/console/servers-new", headers=admin, data=form | entered)

    async def saved() -> dict[str, object]:
        auth = (await service.call("GET", "/v1/mcp-servers/tickets")).json()["auth"]
        return {name: auth[name] for name in ("client_secret", "private_key", "key_id")}

    assert await saved() == {"client_secret": None, "private_key": "[hidden]", "key_id": "one"}
    for revision, fields, expected in (
        ("1", {"auth.key_id": "two"}, {"client_secret": None, "private_key": "[hidden]", "key_id": "two"}),
        ("2", {"auth.client_secret": "s3cret"}, {"client_secret": "[hidden]", "private_key": None, "key_id": None}),
    ):
        page = await browse(service, "GET", "/console/servers/tickets/edit", headers=admin)
        assert PLANTED not in page.text
        changed = form | {"revision": revision} | fields
        await browse(service, "POST", "/console/servers/tickets/edit", headers=admin, data=changed)
        assert await saved() == expected


async def test_auth_is_replaced_whole_or_taken_away(service: Service) -> None:
    await service.call("POST", "/v1/mcp-servers", json={**REMOTE, "auth": {"type": "bearer", "token": PLANTED}})
    changed = await service.call("PATCH", "/v1/mcp-servers/tickets", json={"auth": BY_PERSON})
    assert changed.json()["auth"]["type"] == "oauth_authorization_code"
    kept = await service.call("PATCH", "/v1/mcp-servers/tickets", json={"timeout_s": 9})
    assert kept.json()["auth"]["type"] == "oauth_authorization_code"
    hidden = await service.call(
        "PATCH", "/v1/mcp-servers/tickets", json={"auth": {"type": "bearer", "token": "[hidden]"}}
    )
    assert paths_of(problem_of(hidden, 422, "mcp_server_invalid")) == ["auth.token"]
    assert (await service.call("PATCH", "/v1/mcp-servers/tickets", json={"auth": None})).json()["auth"] is None


async def test_a_person_is_sent_away_and_comes_back_once(service: Service) -> None:
    await service.call("POST", "/v1/mcp-servers", json={**REMOTE, "auth": BY_PERSON})
    begun = await service.call("POST", "/v1/mcp-servers/tickets/authorize")
    assert begun.status_code == 200
    assert begun.json().keys() == {"authorization_url", "expires_at"}
    state = parse_qs(urlsplit(begun.json()["authorization_url"]).query)["state"][0]

    back = f"/oauth/callback?state={state}&code=the-code"
    first = await service.call("GET", back, token=None)
    assert (first.status_code, first.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "tickets" in first.text
    assert "default-src 'none'" in first.headers["content-security-policy"]
    assert first.headers["cache-control"] == "no-store"

    again = await service.call("GET", back, token=None)
    assert again.status_code == 422
    entries = (await service.call("GET", "/v1/audit-events?action=mcp_server.authorized")).json()["data"]
    assert [(entry["actor"], entry["details"]["slug"]) for entry in entries] == [("key_admin", "tickets")]


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?state=",
        "?state=unknown&code=x",
        "?state=%3Cscript%3Ealert(1)%3C/script%3E&code=%3Cscript%3E&error=%3Cscript%3E&iss=%3Cscript%3E",
        "?state=unknown&code=x&redirect_uri=https://evil.example.org&next=https://evil.example.org",
        "?state=a&state=b",
    ],
)
async def test_whoever_comes_without_having_been_sent_gets_a_page_that_repeats_nothing_and_leads_nowhere(
    service: Service, query: str
) -> None:
    response = await service.call("GET", f"/oauth/callback{query}", token=None)
    assert response.status_code == 422
    assert response.headers["content-type"].startswith("text/html")
    assert "location" not in response.headers
    assert "script" not in response.text
    assert "evil" not in response.text


async def test_a_server_that_no_person_authorizes_is_a_conflict(service: Service) -> None:
    await service.call("POST", "/v1/mcp-servers", json=REMOTE)
    response = await service.call("POST", "/v1/mcp-servers/tickets/authorize")
    problem_of(response, 409, "mcp_server_auth_mismatch")


async def test_the_client_metadata_document_names_itself_and_where_people_come_back_to(service: Service) -> None:
    document = (await service.call("GET", "/oauth/client.json", token=None)).json()
    assert document["client_id"] == "https://agents.example.com/oauth/client.json"
    assert document["redirect_uris"] == ["https://agents.example.com/oauth/callback"]
    assert (document["token_endpoint_auth_method"], document["application_type"]) == ("none", "web")
