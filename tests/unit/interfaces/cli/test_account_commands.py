"""`dragoman account`."""

import json

import httpx
import pytest

from domain.json_value import JsonObject
from tests.unit.interfaces.cli.fake_service import FakeService

pytestmark = pytest.mark.requirement("P3")

LINK = "https://here/console/accounts?server=tickets"
TICKETS: JsonObject = {
    "server": "tickets",
    "server_id": "mcp_1",
    "connected": False,
    "used": True,
    "stored": False,
    "sign_in_with": None,
    "secrets": [],
    "address": "https://mcp.example/mcp",
    "env": {},
    "offer": "mcp_1:7",
    "issuer": None,
    "scope": None,
    "renewed_at": None,
    "link": LINK,
}


def a_service() -> FakeService:
    return FakeService().on("GET", "/v1/me/accounts", {"data": [dict(TICKETS)]})


def test_accounts_are_listed_with_their_state() -> None:
    listed = a_service().run("account", "list")
    assert ("tickets" in listed.out, "not connected" in listed.out) == (True, True)


def test_an_account_of_another_provider_says_which_sign_in_it_needs() -> None:
    elsewhere = {**TICKETS, "sign_in_with": "https://idp.example"}
    service = FakeService().on("GET", "/v1/me/accounts", {"data": [elsewhere]})
    assert "needs a sign-in with https://idp.example" in service.run("account", "list").out


def test_what_is_left_of_an_account_is_listed_as_not_used_any_more() -> None:
    left = {**TICKETS, "used": False, "stored": True}
    service = FakeService().on("GET", "/v1/me/accounts", {"data": [left]})
    assert "not used any more" in service.run("account", "list").out
    for command in (("connect", "tickets"), ("set", "tickets"), ("set", "tickets", "token")):
        refused = service.run("account", *command, typed=("s3cret",))
        assert (refused.exit_code, "No MCP server 'tickets' is used with your own account" in refused.err) == (1, True)
    assert {request.method for request in service.requests} == {"GET"}


def test_no_accounts_are_said_to_be_none() -> None:
    service = FakeService().on("GET", "/v1/me/accounts", {"data": []})
    assert "No MCP server of your organization" in service.run("account", "list").err


@pytest.mark.parametrize("named", ["tickets", "mcp_1"])
def test_connecting_prints_the_page_of_the_account(named: str) -> None:
    shown = a_service().run("account", "connect", named)
    assert (shown.exit_code, shown.out.strip()) == (0, LINK)


def test_a_server_that_is_not_used_so_is_not_connected() -> None:
    shown = a_service().run("account", "connect", "files")
    assert (shown.exit_code, "dragoman account list" in shown.err) == (1, True)


def taking_secrets(*names: str) -> FakeService:
    service = FakeService().on("GET", "/v1/me/accounts", {"data": [{**TICKETS, "secrets": [*names]}]})
    return service.on("PATCH", "/v1/me/accounts/tickets", {**TICKETS, "secrets": [*names]})


def test_a_secret_is_read_from_a_pipe_and_sent_for_what_was_told() -> None:
    service = taking_secrets("token")
    given = service.run("account", "set", "tickets", typed=("s3cret",))
    assert (given.exit_code, "Gave token for tickets." in given.err) == (0, True)
    assert "s3cret" not in given.out + given.err
    assert json.loads(service.requests[-1].content) == {
        "secrets": {"token": "s3cret"},
        "offer": "mcp_1:7",
    }


def test_of_several_secrets_a_pipe_gives_the_one_that_is_named() -> None:
    service = taking_secrets("token", "user")
    assert "Name one of its secrets: token, user." in service.run("account", "set", "tickets", typed=("x",)).err
    assert service.run("account", "set", "tickets", "user", typed=("ann",)).exit_code == 0
    assert json.loads(service.requests[-1].content) == {
        "secrets": {"user": "ann"},
        "offer": "mcp_1:7",
    }


def test_the_variables_of_a_program_are_told_before_a_secret_is_given() -> None:
    env: JsonObject = {"HOST": "[hidden]", "TOKEN": {"secret": "person:token"}}
    wiki: JsonObject = {**TICKETS, "secrets": ["token"], "env": env}
    service = FakeService().on("GET", "/v1/me/accounts", {"data": [wiki]}).on("PATCH", "/v1/me/accounts/tickets", wiki)
    given = service.run("account", "set", "tickets", typed=("s3cret",))
    assert "variables, beside the program: HOST, TOKEN (secret person:token)." in given.err


def test_a_server_with_an_authorization_server_takes_no_secrets() -> None:
    shown = taking_secrets().run("account", "set", "tickets", typed=("x",))
    assert (shown.exit_code, "takes no secrets" in shown.err) == (1, True)


def test_disconnecting_deletes_the_account() -> None:
    service = FakeService().on("DELETE", "/v1/me/accounts/tickets", httpx.Response(204))
    shown = service.run("account", "disconnect", "tickets")
    assert (shown.exit_code, "Disconnected your account at tickets." in shown.err) == (0, True)
