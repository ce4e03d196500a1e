"""`dragoman session`."""

import httpx
import pytest

from domain.json_value import JsonObject, JsonValue
from tests.unit.interfaces.cli.fake_service import FakeService

pytestmark = pytest.mark.requirement("P2")

SESSION: JsonObject = {
    "id": "ses_1",
    "kind": "console",
    "holder": "usr_1",
    "client_name": None,
    "actor": None,
    "reason": None,
    "address": "192.0.2.1",
    "user_agent": "Firefox",
    "created_at": "2026-11-27T10:00:00Z",
    "last_seen_at": "2026-11-27T10:05:00Z",
    "expires_at": "2026-11-27T22:00:00Z",
}
CLIENT: JsonObject = {
    **SESSION,
    "id": "gws_1",
    "kind": "client",
    "client_name": "An editor",
    "address": None,
    "user_agent": None,
    "last_seen_at": None,
}
IMPERSONATION: JsonObject = {
    **CLIENT,
    "id": "imp_1",
    "kind": "impersonation",
    "client_name": None,
    "actor": "usr_2",
    "reason": "Ticket",
}


def a_service() -> FakeService:
    listed: list[JsonValue] = [dict(SESSION), dict(CLIENT), dict(IMPERSONATION)]
    return FakeService().on("GET", "/v1/sessions", {"data": listed, "next_cursor": None})


@pytest.mark.parametrize(
    ("arguments", "query"), [([], {}), (["--all"], {"holder": "all"}), (["--of", "usr_1"], {"holder": "usr_1"})]
)
def test_sessions_are_listed_with_where_they_came_from(arguments: list[str], query: dict[str, str]) -> None:
    service = a_service()
    shown = service.run("session", "list", *arguments, "--json").out
    assert ("Firefox" in shown, "An editor" in shown) == (True, True)
    table = service.run("session", "list", *arguments).out
    assert ("ses_1" in table, "gws_1" in table, "imp_1" in table) == (True, True, True)
    asked = dict(service.requests[-1].url.params)
    asked.pop("limit", None)
    assert asked == query


def test_all_and_one_are_not_asked_for_together() -> None:
    service = a_service()
    assert service.run("session", "list", "--all", "--of", "usr_1").exit_code == 2
    assert service.requests == []


def test_a_session_is_ended() -> None:
    service = FakeService().on("DELETE", "/v1/sessions/ses_1", httpx.Response(204))
    shown = service.run("session", "end", "ses_1")
    assert (shown.exit_code, "Ended ses_1." in shown.err) == (0, True)


def test_all_sessions_of_a_user_are_ended() -> None:
    service = FakeService().on("POST", "/v1/sessions/end-all", {"ended": 3})
    shown = service.run("session", "end-all", "--of", "usr_1")
    assert (shown.exit_code, "Sessions ended: 3." in shown.err) == (0, True)
    assert service.requests[-1].content == b'{"holder":"usr_1"}'
    assert service.run("session", "end-all", "--json").out.split() == ["{", '"ended":', "3", "}"]
