"""Sessions over HTTP and in the console: who sees and ends which, and what an ended one is
worth."""

import html

import pytest

from domain.audit.event import AuditAction
from domain.identity.role import Role
from infrastructure.secrets.secret_box import SecretBox
from interfaces.console.sessions import COOKIE
from tests.builders import an_audit_event
from tests.composition import BOX_KEY
from tests.integration.http.service import OTHER_ADMIN, Service, token_of
from tests.integration.http.test_console import browse, signed_in
from tests.people_builders import a_console_session, a_provider, a_user

pytestmark = pytest.mark.requirement("P2")
VIEWER = token_of(Role.VIEWER)


async def listed(service: Service, query: str = "", token: str | None = None) -> list[dict[str, object]]:
    answer = await service.call("GET", f"/v1/sessions{query}", token=token or token_of(Role.ADMIN))
    assert answer.status_code == 200, answer.text
    return list(answer.json()["data"])


async def is_signed_in(service: Service, browser: dict[str, str]) -> bool:
    answer = await browse(service, "GET", "/console/runs", headers={"cookie": browser["cookie"]})
    return answer.status_code == 200


async def test_a_sign_in_is_listed_with_where_it_came_from(service: Service) -> None:
    form = {"key": VIEWER}
    await browse(service, "POST", "/console/sign-in", data=form, headers={"user-agent": "Firefox\x01 on Linux"})
    [session] = await listed(service, token=VIEWER)
    assert str(session["id"]).startswith("ses_")
    assert (session["kind"], session["holder"], session["client_name"]) == ("console", "key_viewer", None)
    assert session["user_agent"] == "Firefox on Linux"
    assert session["address"] is not None
    assert await listed(service) == []
    assert [each["id"] for each in await listed(service, "?holder=all")] == [session["id"]]
    assert [each["id"] for each in await listed(service, "?holder=key_viewer")] == [session["id"]]
    assert await listed(service, "?holder=all", OTHER_ADMIN) == []


async def test_a_session_that_is_ended_is_refused_with_its_copies(service: Service) -> None:
    first, second = await signed_in(service, VIEWER), await signed_in(service, VIEWER)
    newest, oldest = await listed(service, token=VIEWER)
    ended = await service.call("DELETE", f"/v1/sessions/{oldest['id']}", token=VIEWER)
    assert (ended.status_code, await is_signed_in(service, first), await is_signed_in(service, second)) == (
        204,
        False,
        True,
    )
    assert [each["id"] for each in await listed(service, token=VIEWER)] == [newest["id"]]
    again = await service.call("DELETE", f"/v1/sessions/{oldest['id']}")
    assert (again.status_code, again.json()["code"]) == (404, "session_not_found")
    entries = (await service.call("GET", "/v1/audit-events?action=session.ended")).json()["data"]
    assert [(entry["actor"], entry["resource"]) for entry in entries] == [("key_viewer", oldest["id"])]


async def test_only_admins_see_and_end_sessions_of_others(service: Service) -> None:
    browser = await signed_in(service)
    [session] = await listed(service)
    for path in ("?holder=all", "?holder=key_admin"):
        assert (await service.call("GET", f"/v1/sessions{path}", token=VIEWER)).status_code == 403
    assert (await service.call("DELETE", f"/v1/sessions/{session['id']}", token=VIEWER)).status_code == 403
    others = await service.call("POST", "/v1/sessions/end-all", json={"holder": "key_admin"}, token=VIEWER)
    assert others.status_code == 403
    stranger = await service.call("DELETE", f"/v1/sessions/{session['id']}", token=OTHER_ADMIN)
    assert (stranger.status_code, await is_signed_in(service, browser)) == (404, True)


async def test_all_sessions_of_a_caller_end_together(service: Service) -> None:
    mine, theirs = await signed_in(service), await signed_in(service, VIEWER)
    answer = await service.call("POST", "/v1/sessions/end-all", json={"holder": "key_viewer"})
    assert (answer.json(), await is_signed_in(service, theirs), await is_signed_in(service, mine)) == (
        {"ended": 1},
        False,
        True,
    )
    assert (await service.call("POST", "/v1/sessions/end-all", json={})).json() == {"ended": 1}
    assert not await is_signed_in(service, mine)


async def test_the_console_shows_a_person_their_sessions_and_ends_the_others(service: Service) -> None:
    here, there = await signed_in(service, VIEWER), await signed_in(service, VIEWER)
    page = html.unescape((await browse(service, "GET", "/console/sessions", headers=here)).text)
    assert ("My sessions" in page, page.count("this browser"), page.count(">End</button>")) == (True, 1, 2)
    assert "everybody" not in page
    answer = await browse(service, "POST", "/console/sessions/end", headers=here, data={"holder": ""})
    assert answer.headers["hx-redirect"] == "/console/sessions"
    assert (await is_signed_in(service, here), await is_signed_in(service, there)) == (True, False)
    [own] = await listed(service, token=VIEWER)
    answer = await browse(service, "POST", f"/console/sessions/{own['id']}/end", headers=here, data={"holder": ""})
    assert (answer.status_code, await is_signed_in(service, here)) == (200, False)


async def test_an_admin_finds_the_sessions_of_people_in_the_console(service: Service) -> None:
    await service.stores.identity_providers.add(a_provider(), an_audit_event(1))
    await service.stores.user_access.add(a_user(), an_audit_event(2, action=AuditAction.USER_CREATED))
    session = a_console_session()
    await service.stores.console_sessions.add(session)
    admin = await signed_in(service)
    people = (await browse(service, "GET", "/console/people", headers=admin)).text
    assert f'href="/console/sessions?holder={session.holder}"' in people
    for holder in ("all", session.holder):
        page = html.unescape((await browse(service, "GET", f"/console/sessions?holder={holder}", headers=admin)).text)
        assert ("Firefox" in page, "Ann" in page) == (True, True)
    form = {"holder": str(session.holder)}
    answer = await browse(service, "POST", f"/console/sessions/{session.id}/end", headers=admin, data=form)
    assert answer.headers["hx-redirect"] == f"/console/sessions?holder={session.holder}"
    assert await listed(service, f"?holder={session.holder}") == []
    viewer = await signed_in(service, VIEWER)
    refused = await browse(service, "GET", "/console/sessions?holder=all", headers=viewer)
    assert refused.status_code == 403


async def test_deactivating_a_user_ends_their_sessions_for_good(service: Service) -> None:
    await service.stores.identity_providers.add(a_provider(), an_audit_event(1))
    await service.stores.user_access.add(a_user(), an_audit_event(2, action=AuditAction.USER_CREATED))
    session = a_console_session()
    await service.stores.console_sessions.add(session)
    await service.call("PATCH", f"/v1/users/{session.holder}", json={"status": "deactivated"})
    await service.call("PATCH", f"/v1/users/{session.holder}", json={"status": "active"})
    assert await listed(service, "?holder=all") == []


async def test_a_revoked_key_leaves_no_session(service: Service) -> None:
    await signed_in(service, VIEWER)
    await service.call("DELETE", "/v1/api-keys/key_viewer")
    assert await listed(service, "?holder=all") == []


async def test_a_cookie_that_names_no_stored_session_is_no_sign_in(service: Service) -> None:
    await signed_in(service, VIEWER)
    box = SecretBox((BOX_KEY,))
    for document in (
        b'{"token": "dgm_admin", "csrf": "c", "until": "2999-01-01T00:00:00+00:00"}',
        b'{"token": "dgm_admin", "csrf": "c", "session": "ses_1", "organization": "org_1"}',
        b"[]",
    ):
        cookie = {"cookie": f"{COOKIE}={box.encrypt(document).decode()}"}
        answer = await browse(service, "GET", "/console/runs", headers=cookie)
        assert (answer.status_code, answer.headers["location"].startswith("/console/sign-in")) == (303, True)
