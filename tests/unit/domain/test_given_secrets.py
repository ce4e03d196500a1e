"""Secrets that people give for MCP servers: which configurations take them, and for which address
they are used."""

from dataclasses import replace
from typing import Any

import pytest

from domain.errors import ServiceError
from domain.mcp.auth import ApiKeyAuth, AuthorizationCodeAuth, BearerAuth, ClientCredentialsAuth, ServerAuth
from domain.mcp.given_secrets import AccountOwner, GivenSecrets, account_owner, binding_of_secrets, is_process_of_person
from domain.mcp.server import Credentials, McpServerConfig, McpServerKind
from domain.secrets.secret import SecretRef
from tests.builders import ORG, SERVER, START, a_server
from tests.mcp_builders import PERSON_SERVER, a_secrets_server
from tests.people_builders import USER

pytestmark = pytest.mark.requirement("P3")

TOKEN = SecretRef("person:token")
URL = "https://mcp.example.org/mcp"


def config(**settings: object) -> McpServerConfig:
    given = {"slug": "tickets", "kind": McpServerKind.HTTP, "url": URL, "credentials": Credentials.PERSON, **settings}
    return McpServerConfig(**given)  # type: ignore[arg-type]


def wrong_paths(**settings: object) -> list[str]:
    with pytest.raises(ServiceError) as refused:
        config(**settings)
    return [violation.path for violation in refused.value.violations]


@pytest.mark.parametrize(
    "settings",
    [
        {"headers": {"X-Token": TOKEN}},
        {"auth": BearerAuth(token=TOKEN)},
        {"auth": ApiKeyAuth(header="X-Key", value=TOKEN)},
        {"url": f"{URL}?key=${{secret:person:token}}"},
        {"kind": McpServerKind.SSE, "headers": {"X-Token": TOKEN, "X-Company": SecretRef("COMPANY")}},
    ],
    ids=str,
)
def test_headers_the_url_and_fixed_keys_may_be_secrets_of_each_person(settings: dict[str, object]) -> None:
    assert config(**settings).person_secrets == ("token",)


@pytest.mark.parametrize(
    "auth",
    [
        AuthorizationCodeAuth(client_id="c", client_secret=TOKEN),
        ClientCredentialsAuth(client_id="c", client_secret=TOKEN),
    ],
    ids=["code", "credentials"],
)
def test_a_secret_of_a_client_belongs_to_no_person(auth: ServerAuth) -> None:
    assert "auth.client_secret.secret" in wrong_paths(auth=auth)


@pytest.mark.parametrize(
    "settings",
    [
        {"headers": {"X-Token": TOKEN}, "auth": AuthorizationCodeAuth()},
        {"headers": {"X-Token": TOKEN}, "credentials": Credentials.ORGANIZATION},
        {"headers": {"X-Token": TOKEN}, "kind": McpServerKind.A2A},
        {"headers": {"X-Token": SecretRef("COMPANY")}},
    ],
    ids=["two ways", "of the organization", "another protocol", "nothing of a person"],
)
def test_an_account_comes_from_one_place(settings: dict[str, object]) -> None:
    assert wrong_paths(**settings) == ["credentials"]


STARTED: dict[McpServerKind, dict[str, object]] = {
    McpServerKind.NPM: {"package": "@acme/wiki", "command": "wiki", "args": ("--fast",)},
    McpServerKind.PYTHON: {"package": "acme-wiki"},
    McpServerKind.OCI: {"package": "ghcr.io/acme/wiki"},
    McpServerKind.CUSTOM: {"command": "server"},
}


@pytest.mark.parametrize("kind", STARTED)
def test_variables_of_a_started_server_may_be_secrets_of_each_person(kind: McpServerKind) -> None:
    program = {**STARTED[kind], "kind": kind, "url": None}
    started = config(**program, env={"TOKEN": TOKEN, "HOST": "h", "COMPANY": SecretRef("COMPANY")})
    assert started.person_secrets == ("token",)
    assert wrong_paths(**program, env={"TOKEN": TOKEN}, credentials=Credentials.ORGANIZATION) == ["credentials"]
    assert wrong_paths(**program, env={"COMPANY": SecretRef("COMPANY")}) == ["credentials"]
    assert wrong_paths(**program, env={"TOKEN": SecretRef("person:a b")})[0] == "env.TOKEN.secret"


@pytest.mark.parametrize(
    ("changes", "is_same"),
    [
        ({"version": "2.0.0"}, True),
        ({"timeout_s": 3.0}, True),
        ({"env": {"TOKEN": TOKEN, "HOST": "h", "MORE": SecretRef("person:more")}}, False),
        ({"env": {"HOST": "h", "URL": TOKEN}}, False),
        ({"package": "@acme/other"}, False),
        ({"command": "other"}, False),
        ({"args": ("--fast", "--to=evil.example")}, False),
        ({"env": {"TOKEN": TOKEN, "HOST": "evil.example"}}, False),
        ({"env": {"TOKEN": TOKEN, "HOST": SecretRef("h")}}, False),
        ({"env": {"TOKEN": TOKEN, "HOST": "h", "HTTPS_PROXY": "http://evil.example"}}, False),
    ],
    ids=str,
)
def test_what_was_given_for_one_program_is_given_to_no_other(changes: dict[str, Any], is_same: bool) -> None:
    program = {**STARTED[McpServerKind.NPM], "kind": McpServerKind.NPM, "url": None}
    here = config(**program, env={"TOKEN": TOKEN, "HOST": "h"})
    given = GivenSecrets(binding=binding_of_secrets(here), revision="r", given_at=START, values={"token": "s"})
    assert given.is_complete(here)
    assert dict(given.of(replace(here, **changes))) == ({"token": "s"} if is_same else {})


def test_a_process_of_a_person_is_one_that_is_started_for_them() -> None:
    started = replace(a_server(), config=config(kind=McpServerKind.CUSTOM, url=None, command="c", env={"T": TOKEN}))
    assert is_process_of_person(started.acting_for(USER))
    for other in (started, a_server().acting_for(USER), a_secrets_server().acting_for(USER)):
        assert not is_process_of_person(other)


@pytest.mark.parametrize("name", ["person:", "person:a b", "person:person:a", "person:vault:a#b", "Person:token"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    assert "headers.X-Token.secret" in wrong_paths(headers={"X-Token": SecretRef(name)})


def test_what_was_given_for_one_address_is_used_at_no_other() -> None:
    here = a_secrets_server("token", "user").config
    given = GivenSecrets(
        binding=binding_of_secrets(here), revision="r", given_at=START, values={"token": "s", "user": "u", "old": "o"}
    )
    assert (given.of(here), given.is_complete(here)) == ({"token": "s", "user": "u"}, True)
    for elsewhere in (replace(here, url="https://evil.example/mcp"), replace(here, kind=McpServerKind.SSE)):
        assert (given.of(elsewhere), given.is_complete(elsewhere)) == ({}, False)
    more = replace(here, headers={**here.headers, "X-More": SecretRef("person:more")})
    assert (dict(given.of(more)), given.is_complete(more)) == ({"token": "s", "user": "u"}, False)
    assert "values" not in repr(given)


def test_the_test_of_a_saved_server_uses_what_the_person_gave_for_that() -> None:
    server = a_secrets_server()
    assert account_owner(server) is None
    owner = AccountOwner(ORG, PERSON_SERVER, USER)
    assert account_owner(server.acting_for(USER)) == owner
    probe = replace(server, id=SERVER, tested_id=server.id)
    assert account_owner(probe.acting_for(USER)) == owner
    assert account_owner(a_server().acting_for(USER)) is None
