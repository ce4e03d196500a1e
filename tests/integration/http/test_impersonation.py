"""Impersonation over HTTP and in the console: what it may do, where it is named, who sees and ends
it."""

import html
from dataclasses import replace

import httpx
import pytest

from domain.audit.event import AuditAction
from domain.identity.role import Role
from domain.ids import UserId
from interfaces.console.sessions import AS_COOKIE
from tests.builders import an_audit_event, numbered
from tests.composition import MODEL
from tests.integration.http.service import PLATFORM, Service, token_of
from tests.integration.http.test_console import browse, on_a_page, signed_in, waiting_run
from tests.integration.http.test_sessions import is_signed_in
from tests.people_builders import USER, a_console_session, a_provider, a_user

pytestmark = pytest.mark.requirement("P7")
REASON = {"reason": "Ticket 4711"}
ACTING = f"impersonation:key_platform:{USER}"
BOB = UserId(numbered("usr", 2))


@pytest.fixture
async def ann(service: Service) -> Service:
    """Ann is an operator."""
    await service.stores.identity_providers.add(a_provider(), an_audit_event(1))
    await service.stores.user_access.add(a_user(), an_audit_event(2, action=AuditAction.USER_CREATED))
    return service


async def begun(service: Service, user_id: str = USER, token: str = PLATFORM, **more: object) -> httpx.Response:
    return await service.call("POST", f"/v1/users/{user_id}/impersonation", json={**REASON, **more}, token=token)


async def acting(service: Service) -> tuple[str, str]:
    """The id of an impersonation of Ann, and its token."""
    answer = await begun(service)
    assert answer.status_code == 201, answer.text
    return answer.json()["id"], answer.json()["token"]


async def test_runs_calls_and_audit_entries_name_both(ann: Service) -> None:
    await ann.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})
    impersonation_id, token = await acting(ann)
    run = await ann.call("POST", "/v1/runs", json={"agent": "guide", "input": "hello"}, token=token)
    assert run.json()["started_by"] == ACTING
    entries = (await ann.call("GET", "/v1/audit-events?limit=100")).json()["data"]
    named = {entry["action"]: entry for entry in entries}
    assert named["run.started"]["actor"] == ACTING
    assert (named["impersonation.begun"]["actor"], named["impersonation.begun"]["resource"]) == (
        "key_platform",
        impersonation_id,
    )
    assert named["impersonation.begun"]["details"] == {"as": USER, "reason": "Ticket 4711", "minutes": 15}
    who = (await ann.call("GET", "/v1/whoami", token=token)).json()
    assert (who["id"], who["name"], who["role"], who["platform"]) == (ACTING, "Ann", "operator", False)


async def test_the_user_sees_who_acts_as_them_and_ends_it(ann: Service) -> None:
    impersonation_id, token = await acting(ann)
    [session] = (await ann.call("GET", f"/v1/sessions?holder={USER}")).json()["data"]
    assert (session["id"], session["kind"], session["actor"], session["reason"]) == (
        impersonation_id,
        "impersonation",
        "key_platform",
        "Ticket 4711",
    )
    assert (await ann.call("DELETE", f"/v1/sessions/{impersonation_id}")).status_code == 204
    assert (await ann.call("GET", "/v1/runs", token=token)).status_code == 401
    [stored] = (await ann.call("GET", f"/v1/users/{USER}/impersonation")).json()["data"]
    assert (stored["id"], stored["acting"], stored["ended_at"] is None) == (impersonation_id, ACTING, False)
    assert "token" not in stored
    refused = await ann.call("GET", f"/v1/users/{USER}/impersonation", token=token_of(Role.OPERATOR))
    assert refused.status_code == 403


async def test_only_who_was_allowed_acts_as_a_user_and_never_with_more_rights(ann: Service) -> None:
    for role in Role:
        refused = await begun(ann, token=token_of(role))
        assert (refused.status_code, refused.json()["code"]) == (403, "impersonation_refused")
    assert (await begun(ann, "usr_unknown")).status_code == 404
    for wrong in ({"reason": ""}, {"minutes": 61}, {"minutes": 0}):
        assert (await begun(ann, **wrong)).status_code == 422
    allowed = await ann.call("PATCH", f"/v1/users/{USER}", json={"may_impersonate": True})
    assert allowed.json()["may_impersonate"] is True


async def test_nothing_that_outlasts_it_or_is_a_persons_own_is_done_in_their_name(ann: Service) -> None:
    await ann.call("PATCH", f"/v1/users/{USER}", json={"role": "admin", "may_impersonate": True})
    agent = await ann.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})
    await ann.call("POST", "/v1/groups", json={"name": "Leads"})
    _, token = await acting(ann)
    schedule = {"name": "daily", "agent": "guide", "cron": "0 7 * * *", "input": "hello"}
    for method, path, body in (
        ("POST", "/v1/api-keys", {"name": "mine", "role": "admin"}),
        ("POST", "/v1/gateway-sessions", {"agent_id": agent.json()["id"]}),
        ("POST", "/v1/schedules", schedule),
        ("POST", "/v1/identity-providers/company/scim-token", None),
        ("PATCH", f"/v1/users/{USER}", {"role": "viewer"}),
        ("POST", "/v1/identity-providers", {"name": "mine", "issuer": "https://idp.example.com", "client_id": "c"}),
        ("PATCH", "/v1/identity-providers/company", {"client_id": "mine"}),
        ("POST", "/v1/organization/webhook-key", None),
        ("POST", "/v1/roles", {"name": "mine", "permissions": ["runs.start"]}),
        ("PATCH", "/v1/roles/mine", {"permissions": []}),
        ("DELETE", "/v1/roles/mine", None),
        ("POST", "/v1/groups", {"name": "mine", "members": [USER]}),
        ("PATCH", "/v1/groups/Leads", {"members": [USER]}),
        ("DELETE", "/v1/groups/Leads", None),
        ("POST", f"/v1/users/{BOB}/impersonation", REASON),
    ):
        answer = await ann.call(method, path, json=body, token=token)
        assert (path, answer.status_code, answer.json()["code"]) == (path, 403, "impersonation_refused")
    accounts = await ann.call("GET", "/v1/me/accounts", token=token)
    assert (accounts.status_code, accounts.json()["code"]) == (403, "person_required")
    assert "API key" not in accounts.json()["detail"]


async def test_no_approval_is_decided_in_the_name_of_a_person(ann: Service) -> None:
    run_id, approval_id = await waiting_run(ann)
    _, token = await acting(ann)
    decided = await ann.call("POST", f"/v1/approvals/{approval_id}", json={"decision": "approve"}, token=token)
    assert (decided.status_code, decided.json()["code"]) == (403, "impersonation_refused")
    assert (await ann.call("GET", f"/v1/runs/{run_id}")).json()["status"] == "requires_action"


async def test_the_token_opens_the_api_only(ann: Service) -> None:
    _, token = await acting(ann)
    assert (await ann.call("GET", "/v1/runs", token=token)).status_code == 200
    for method, path in (("POST", "/mcp"), ("POST", "/openai/v1/chat/completions"), ("POST", "/ag-ui")):
        answer = await ann.client.request(method, path, json={}, headers={"authorization": f"Bearer {token}"})
        assert answer.status_code in (401, 404), path
    signed = await browse(ann, "POST", "/console/sign-in", data={"key": token})
    assert signed.status_code == 401


async def test_a_browser_acts_as_a_user_with_a_banner_until_it_ends_it(ann: Service) -> None:
    admin = await signed_in(ann, PLATFORM)
    form = await browse(ann, "GET", f"/console/people/{USER}/impersonation", headers=admin)
    assert (form.status_code, "Act as Ann" in form.text) == (200, True)
    entered = {"reason": "Ticket 4711", "minutes": "10"}
    answer = await browse(ann, "POST", f"/console/people/{USER}/impersonation", headers=admin, data=entered)
    assert answer.headers["hx-redirect"] == "/console"
    both = await on_a_page(ann, f"{admin['cookie']}; {AS_COOKIE}={answer.cookies[AS_COOKIE]}")
    page = html.unescape((await browse(ann, "GET", "/console/runs", headers=both)).text)
    assert f'You act as <span title="{USER}">Ann</span>' in page
    assert '<time data-left datetime="' in page
    assert (await browse(ann, "GET", "/console/people", headers=both)).status_code == 403
    accounts = (await browse(ann, "GET", "/console/accounts", headers=both)).text
    assert ("You act as another user" in accounts, "API key, which" in accounts) == (True, False)

    other = await signed_in(ann)
    stolen = other | {"cookie": f"{other['cookie']}; {AS_COOKIE}={answer.cookies[AS_COOKIE]}"}
    assert "You act as" not in (await browse(ann, "GET", "/console/runs", headers=stolen)).text

    ended = await browse(ann, "POST", "/console/impersonation/end", headers=both)
    assert ended.headers["hx-redirect"] == "/console"
    assert "You act as" not in (await browse(ann, "GET", "/console/runs", headers=both)).text
    assert (await browse(ann, "GET", "/console/people", headers=both)).status_code == 200


async def test_a_page_that_was_opened_as_another_user_changes_nothing_as_oneself_afterwards(ann: Service) -> None:
    admin = await signed_in(ann, PLATFORM)
    entered = {"reason": "Ticket 4711", "minutes": "10"}
    begun_as = await browse(ann, "POST", f"/console/people/{USER}/impersonation", headers=admin, data=entered)
    both = await on_a_page(ann, f"{admin['cookie']}; {AS_COOKIE}={begun_as.cookies[AS_COOKIE]}")
    own_page = both | {"x-csrf-token": admin["x-csrf-token"]}
    grant = {"may_impersonate": "yes"}
    refused = await browse(ann, "POST", f"/console/people/{USER}", headers=own_page, data=grant)
    assert refused.status_code == 403, "a page of oneself changes nothing as the user"
    [impersonation] = (await ann.call("GET", f"/v1/users/{USER}/impersonation")).json()["data"]
    await ann.call("DELETE", f"/v1/sessions/{impersonation['id']}")
    over = await browse(ann, "POST", f"/console/people/{USER}", headers=both, data=grant)
    assert (over.status_code, "The impersonation is over. Reload" in over.text) == (409, True)
    without_cookie = both | {"cookie": admin["cookie"]}
    assert (await browse(ann, "POST", f"/console/people/{USER}", headers=without_cookie, data=grant)).status_code == 403
    stored = await ann.stores.users.get(a_user().organization_id, USER)
    assert stored == a_user()
    reloaded = await browse(ann, "GET", "/console/people", headers={"cookie": both["cookie"]})
    assert (reloaded.status_code, "from here on you are yourself" in reloaded.text) == (200, True)
    assert reloaded.headers["set-cookie"].startswith(f"{AS_COOKIE}=")
    assert "Max-Age=0" in reloaded.headers["set-cookie"]


async def test_signing_out_ends_the_session_and_the_impersonation(ann: Service) -> None:
    admin = await signed_in(ann, PLATFORM)
    entered = {"reason": "Ticket 4711", "minutes": "10"}
    answer = await browse(ann, "POST", f"/console/people/{USER}/impersonation", headers=admin, data=entered)
    both = await on_a_page(ann, f"{admin['cookie']}; {AS_COOKIE}={answer.cookies[AS_COOKIE]}")
    assert (await browse(ann, "POST", "/console/sign-out", headers=both)).status_code == 200
    assert not await is_signed_in(ann, admin)
    assert (await ann.call("GET", "/v1/sessions?holder=all")).json()["data"] == []


async def test_wrong_entries_of_the_form_begin_nothing(ann: Service) -> None:
    admin = await signed_in(ann, PLATFORM)
    for wrong in ({"reason": "", "minutes": "10"}, {"reason": "x", "minutes": "ten"}, {"reason": "x", "minutes": "90"}):
        answer = await browse(ann, "POST", f"/console/people/{USER}/impersonation", headers=admin, data=wrong)
        assert (answer.status_code, AS_COOKIE in answer.cookies) == (422, False)


async def test_the_console_tells_the_user_who_acts_as_them(ann: Service) -> None:
    # Ann's own session cannot begin here without an identity provider: an admin looks at her list.
    await ann.stores.console_sessions.add(a_console_session())
    await acting(ann)
    admin = await signed_in(ann)
    page = html.unescape((await browse(ann, "GET", f"/console/sessions?holder={USER}", headers=admin)).text)
    assert "acts as the user: Ticket 4711" in page
    assert "Who acted as this user" in page


async def test_an_admin_lets_a_user_act_as_others_in_the_console(ann: Service) -> None:
    admin = await signed_in(ann)
    for answer, allowed in (("yes", True), ("no", False)):
        data = {"may_impersonate": answer}
        assert (await browse(ann, "POST", f"/console/people/{USER}", headers=admin, data=data)).status_code == 200
        stored = await ann.stores.users.get(a_user().organization_id, USER)
        assert stored == replace(a_user(), may_impersonate=allowed)
