"""`dragoman account`."""

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


def test_disconnecting_deletes_the_account() -> None:
    service = FakeService().on("DELETE", "/v1/me/accounts/tickets", httpx.Response(204))
    shown = service.run("account", "disconnect", "tickets")
    assert (shown.exit_code, "Disconnected your account at tickets." in shown.err) == (0, True)
