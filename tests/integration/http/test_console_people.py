"""People in the console: users and their access, and groups with their members and claims, for
admins."""

import html

import pytest

from domain.audit.event import AuditAction
from domain.identity.role import Role
from domain.identity.user import UserStatus
from domain.ids import UserId
from tests.builders import ORG, an_audit_event, numbered
from tests.integration.http.service import OTHER_ADMIN, Service, token_of
from tests.integration.http.test_console import browse, signed_in
from tests.integration.http.test_permissions import key_with
from tests.people_builders import USER, a_user

pytestmark = pytest.mark.requirement("P2", "U6")
BOB = UserId(numbered("usr", 2))
IDP = {"name": "company", "issuer": "https://login.example.com", "client_id": "dragoman"}


@pytest.fixture
async def people(service: Service) -> Service:
    """Ann and Bob."""
    for number, user in enumerate((a_user(), a_user(BOB, subject="bob"))):
        await service.stores.user_access.add(user, an_audit_event(number, action=AuditAction.USER_CREATED))
    return service


async def shown(service: Service, path: str, token: str | None = None) -> tuple[int, str]:
    answer = await browse(service, "GET", f"/console{path}", headers=await signed_in(service, token))
    return answer.status_code, html.unescape(answer.text)


async def sent(service: Service, path: str, token: str | None = None, **data: str) -> tuple[int, str, str]:
    """Status, text, and where the browser goes."""
    answer = await browse(service, "POST", f"/console{path}", headers=await signed_in(service, token), data=data)
    return (
        answer.status_code,
        html.unescape(answer.text),
        answer.headers.get("hx-redirect", "").removeprefix("/console"),
    )


async def group_of(service: Service, address: str) -> dict[str, object]:
    return dict((await service.call("GET", f"/v1/groups/{address.rpartition('/')[2]}")).json())


async def test_an_admin_sees_users_and_changes_role_and_access(people: Service) -> None:
    status, page = await shown(people, "/people")
    assert status == 200
    assert "ann@example.com" in page
    assert f'aria-label="Deactivate {a_user().name}"' in page

    status, table, _ = await sent(people, f"/people/{USER}", role="admin")
    assert (status, "Ann is active, admin." in table) == (200, True)
    await sent(people, f"/people/{USER}", status="deactivated")
    changed = await people.stores.users.get(ORG, USER)
    assert changed is not None
    assert (changed.role, changed.role_fixed, changed.status) == (Role.ADMIN, True, UserStatus.DEACTIVATED)
    _, table, _ = await sent(people, f"/people/{USER}", status="active")
    assert "Ann is active" in table
    _, table, _ = await sent(people, f"/people/{USER}", status="removed")
    assert "ann@example.com" not in table
    for wrong in ({"role": "king"}, {"status": "gone"}, {}):
        assert (await sent(people, f"/people/{BOB}", **wrong))[0] == 422


async def test_an_admin_finds_a_removed_user_and_activates_them(people: Service) -> None:
    await sent(people, f"/people/{BOB}", status="removed")
    listed = {}
    for status in ("active", "deactivated", "removed"):
        answer = await people.call("GET", f"/v1/users?status={status}")
        listed[status] = [user["id"] for user in answer.json()["data"]]
    assert listed == {"active": [USER], "deactivated": [], "removed": [BOB]}
    assert (await people.call("GET", "/v1/users?status=gone")).status_code == 422

    assert BOB not in (await shown(people, "/people"))[1]
    _, page = await shown(people, "/people?status=removed")
    assert (BOB in page, USER in page, 'aria-label="Remove bob"' in page) == (True, False, False)
    activate = f"/people/{BOB}?status=removed"
    assert f'hx-post="/console{activate}"' in page
    _, table, _ = await sent(people, activate, status="active")
    assert ("bob is active" in table, f'id="{BOB}"' in table) == (True, False)
    assert BOB in (await shown(people, "/people"))[1]


async def test_a_group_is_created_gets_members_and_claims_and_is_deleted(people: Service) -> None:
    await people.call("POST", "/v1/identity-providers", json=IDP)
    _, _, address = await sent(people, "/people/groups", name="Support leads")
    assert address.startswith("/people/groups/grp_")
    await sent(people, address, add=USER)
    await sent(people, address, add=BOB)
    status, page, _ = await sent(people, address, remove=USER)
    assert (status, "Saved." in page, BOB in page) == (200, True, True)

    version = str((await group_of(people, address))["version"])
    saved = {"name": "Leads", "claims": "company:groups=leads\n\ncompany:email=a@b.c", "version": version}
    assert (await sent(people, address, **saved))[0] == 200
    group = await group_of(people, address)
    assert (group["name"], group["members"]) == ("Leads", [BOB])
    claims = group["claims"]
    assert isinstance(claims, list)
    assert [(each["claim"], each["value"]) for each in claims] == [("groups", "leads"), ("email", "a@b.c")]
    assert (await sent(people, address, **saved))[0] == 412  # another admin saved meanwhile
    assert (await sent(people, address, name="Leads", claims="groups", version=""))[0] == 422
    assert (await sent(people, address, add="usr_unknown"))[0] == 422
    assert (await shown(people, "/people"))[1].count("Leads") == 1
    assert (await sent(people, f"{address}/delete"))[2] == "/people"
    assert (await shown(people, address))[0] == 404


async def test_people_are_for_admins_of_the_organization(people: Service) -> None:
    _, _, address = await sent(people, "/people/groups", name="Leads")
    for path in ("/people", address):
        assert (await shown(people, path, token_of(Role.OPERATOR)))[0] == 403
    assert (await sent(people, f"/people/{USER}", token_of(Role.OPERATOR), status="removed"))[0] == 403
    assert (await sent(people, address, token_of(Role.OPERATOR), add=USER))[0] == 403
    assert "ann@example.com" not in (await shown(people, "/people", OTHER_ADMIN))[1]
    assert (await shown(people, address, OTHER_ADMIN))[0] == 404
    assert (await sent(people, f"/people/{USER}", OTHER_ADMIN, status="removed"))[0] == 404
    frame = (await shown(people, "/parts/palette", token_of(Role.VIEWER)))[1]
    assert "/console/people" not in frame


async def test_an_admin_creates_changes_gives_and_deletes_a_role(people: Service) -> None:
    chosen = {"permission.runs.start": "on", "permission.approvals.decide": "on"}
    status, page, _ = await sent(people, "/people/roles", name="support", description="Answers.", **chosen)
    assert (status, "Created support." in page) == (200, True)
    role = (await people.call("GET", "/v1/roles/support")).json()
    assert (role["description"], role["permissions"]) == ("Answers.", ["approvals.decide", "runs.start"])

    assert (await sent(people, f"/people/{USER}", role="support"))[1].count("Ann is active, support.") == 1
    held = await people.stores.users.get(ORG, USER)
    assert held is not None
    assert (held.role, held.custom_role) == (Role.VIEWER, "support")
    _, made, _ = await sent(people, "/keys", name="ci", role="support")
    assert "dgm_" in made
    assert (await people.call("GET", "/v1/api-keys")).json()["data"][0]["custom_role"] == "support"

    saved = {"permission.runs.start": "on", "version": "1"}
    assert "Saved support." in (await sent(people, "/people/roles/support", **saved))[1]
    assert (await people.call("GET", "/v1/roles/support")).json()["permissions"] == ["runs.start"]
    assert (await sent(people, "/people/roles/support", **saved))[0] == 412
    assert (await sent(people, "/people/roles/support/delete"))[0] == 409
    await sent(people, "/people/roles", name="idle")
    assert "Deleted idle." in (await sent(people, "/people/roles/idle/delete"))[1]


async def test_every_role_reads_the_page_of_roles_and_only_managers_of_roles_get_its_forms(people: Service) -> None:
    await sent(people, "/people/roles", name="support")
    status, page = await shown(people, "/people/roles", token_of(Role.OPERATOR))
    assert (status, "support" in page, "New role" in page) == (200, True, False)
    assert (await sent(people, "/people/roles", token_of(Role.OPERATOR), name="mine"))[0] == 403
    assert "support" not in (await shown(people, "/people/roles", OTHER_ADMIN))[1]


async def test_the_page_of_people_is_for_who_manages_users_and_shows_groups_to_who_manages_groups(
    people: Service,
) -> None:
    await sent(people, "/people/groups", name="Leads")
    token = await key_with(people, "users-only", ["users.manage"])
    status, page = await shown(people, "/people", token)
    assert (status, "ann@example.com" in page, "Leads" in page) == (200, True, False)
