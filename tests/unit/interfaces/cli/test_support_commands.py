"""`dragoman user support` and `dragoman user impersonate`."""

import json

import pytest

from domain.json_value import JsonObject
from interfaces.http.users.views import UpdatedUserView
from tests.unit.interfaces.cli.fake_service import FakeService, whole

pytestmark = pytest.mark.requirement("P7")
BEGUN: JsonObject = {
    "id": "imp_1",
    "actor": "usr_2",
    "user_id": "usr_1",
    "acting": "impersonation:usr_2:usr_1",
    "reason": "Ticket",
    "created_at": "2026-11-27T10:00:00Z",
    "expires_at": "2026-11-27T10:15:00Z",
    "ended_at": None,
    "token": "dgi_secret",
}
USER = whole(UpdatedUserView, {"id": "usr_1"})


def test_the_token_alone_is_printed_with_a_word_about_how_to_use_and_end_it() -> None:
    service = FakeService().on("POST", "/v1/users/usr_1/impersonation", dict(BEGUN))
    shown = service.run("user", "impersonate", "usr_1", "--reason", "Ticket", "--minutes", "5")
    assert (shown.exit_code, shown.out.strip()) == (0, "dgi_secret")
    assert ("DRAGOMAN_API_KEY" in shown.err, "dragoman session end imp_1" in shown.err) == (True, True)
    assert json.loads(service.requests[-1].content) == {"reason": "Ticket", "minutes": 5}


@pytest.mark.parametrize("arguments", [[], ["--reason", "x", "--minutes", "61"]], ids=["no reason", "too long"])
def test_a_reason_and_at_most_an_hour_are_required(arguments: list[str]) -> None:
    service = FakeService()
    assert service.run("user", "impersonate", "usr_1", *arguments).exit_code == 2
    assert service.requests == []


@pytest.mark.parametrize(("arguments", "allowed"), [([], True), (["--off"], False)])
def test_an_admin_lets_a_user_act_as_others(arguments: list[str], allowed: bool) -> None:
    service = FakeService().on("PATCH", "/v1/users/usr_1", dict(USER))
    assert service.run("user", "support", "usr_1", *arguments).exit_code == 0
    assert json.loads(service.requests[-1].content) == {"may_impersonate": allowed}
