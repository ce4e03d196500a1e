"""Custom roles over HTTP: given to keys, people and rules, changed while they are in use, and never
beyond one's own."""

from typing import Any

import pytest

from domain.audit.event import AuditAction
from domain.identity.role import Role
from tests.builders import an_audit_event
from tests.integration.http.route_cases import IDP_BODY
from tests.integration.http.service import OTHER_ADMIN, Service, paths_of, problem_of, token_of
from tests.integration.http.test_approvals import a_waiting_run
from tests.integration.http.test_permissions import key_with
from tests.people_builders import a_user

pytestmark = pytest.mark.requirement("P2")
LEAD = {"name": "lead", "permissions": ["runs.start", "keys.manage", "users.manage", "roles.manage"]}
SUPPORT = {"name": "support", "description": "Answers people.", "permissions": ["runs.start", "approvals.decide"]}


async def whoami(service: Service, token: str) -> dict[str, Any]:
    return dict((await service.call("GET", "/v1/whoami", token=token)).json())


async def test_a_role_is_created_listed_changed_and_deleted_and_audited(service: Service) -> None:
    made = await service.call("POST", "/v1/roles", json=SUPPORT)
    assert (made.status_code, made.headers["etag"]) == (201, '"1"')
    assert made.json()["permissions"] == ["approvals.decide", "runs.start"]
    problem_of(await service.call("POST", "/v1/roles", json=SUPPORT), 409, "role_exists")
    listed = (await service.call("GET", "/v1/roles", token=token_of(Role.VIEWER))).json()
    assert [each["name"] for each in listed["data"]] == ["support"]
    assert [each["name"] for each in listed["built_in"]] == list(Role)
    assert {each["name"] for each in listed["permissions"]} == set(listed["built_in"][-1]["permissions"])

    changes = {"permissions": ["runs.start"]}
    refused = await service.call("PATCH", "/v1/roles/support", json=changes, headers={"If-Match": '"7"'})
    problem_of(refused, 412, "version_conflict")
    changed = await service.call("PATCH", "/v1/roles/support", json=changes)
    assert (changed.json()["permissions"], changed.json()["version"]) == (["runs.start"], 2)
    assert (await service.call("PATCH", "/v1/roles/support", json=changes)).json()["version"] == 2
    assert (await service.call("DELETE", "/v1/roles/support")).status_code == 204
    problem_of(await service.call("GET", "/v1/roles/support"), 404, "role_not_found")
    entries = (await service.call("GET", "/v1/audit-events")).json()["data"]
    assert [(entry["action"], entry["details"]) for entry in entries if entry["action"].startswith("role.")] == [
        ("role.deleted", {}),
        ("role.updated", {"added": [], "removed": ["approvals.decide"]}),
        ("role.created", {"permissions": ["approvals.decide", "runs.start"]}),
    ]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"name": "admin", "permissions": []}, "name"),
        ({"name": "Two Words", "permissions": []}, "name"),
        ({"name": "x", "permissions": ["schedules.manage"]}, "permissions"),
    ],
)
async def test_a_role_that_cannot_be_right_is_refused(service: Service, body: dict[str, object], path: str) -> None:
    problem = problem_of(await service.call("POST", "/v1/roles", json=body), 422, "role_invalid")
    assert paths_of(problem) == [path]


async def test_built_in_roles_cannot_be_changed_or_deleted(service: Service) -> None:
    for role in Role:
        changed = await service.call("PATCH", f"/v1/roles/{role.value}", json={"permissions": []})
        problem_of(changed, 404, "role_not_found")
        problem_of(await service.call("DELETE", f"/v1/roles/{role.value}"), 404, "role_not_found")


async def test_a_caller_sees_their_permissions_and_a_refusal_names_the_one_that_lacks(service: Service) -> None:
    token = await key_with(service, "approver", ["approvals.decide"])
    me = await whoami(service, token)
    assert (me["role"], me["custom_role"], me["permissions"]) == ("viewer", "approver", ["approvals.decide"])
    refused = problem_of(await service.call("POST", "/v1/threads", token=token), 403, "role_insufficient")
    assert refused["detail"] == "This needs the permission runs.start; the caller has approver."
    assert (await whoami(service, token_of(Role.RUNNER)))["permissions"] == ["runs.start"]


async def test_who_may_only_decide_approvals_decides_with_the_approval_or_the_run_and_does_no_more(
    service: Service,
) -> None:
    token = await key_with(service, "approver", ["approvals.decide"])
    run = await a_waiting_run(service)
    path, call = f"/v1/runs/{run['id']}", run["pending"][0]
    problem_of(await service.call("POST", f"{path}/cancel", token=token), 403, "role_insufficient")
    given = {"tool_results": [{"tool_call_id": call["id"], "result": "x"}]}
    problem_of(await service.call("POST", f"{path}/resume", json=given, token=token), 403, "role_insufficient")
    decided = {"approvals": [{"tool_call_id": call["id"], "decision": "deny"}]}
    assert (await service.call("POST", f"{path}/resume", json=decided, token=token)).status_code == 200


async def test_a_changed_role_holds_at_the_next_request_of_a_key_that_was_known(service: Service) -> None:
    token = await key_with(service, "support", ["runs.start"])
    assert (await service.call("POST", "/v1/threads", token=token)).status_code == 201
    await service.call("PATCH", "/v1/roles/support", json={"permissions": []})
    problem_of(await service.call("POST", "/v1/threads", token=token), 403, "role_insufficient")
    await service.call("PATCH", "/v1/roles/support", json={"permissions": ["runs.start"]})
    assert (await service.call("POST", "/v1/threads", token=token)).status_code == 201


async def test_a_role_in_use_is_not_deleted_and_the_error_says_who_has_it(service: Service) -> None:
    await service.call("POST", "/v1/roles", json=SUPPORT)
    key = (await service.call("POST", "/v1/api-keys", json={"name": "ci", "custom_role": "support"})).json()
    user = await service.stores.user_access.add(a_user(), an_audit_event(1, action=AuditAction.USER_CREATED))
    given = await service.call("PATCH", f"/v1/users/{user.id}", json={"custom_role": "support"})
    assert (given.json()["role"], given.json()["custom_role"], given.json()["role_fixed"]) == (
        "viewer",
        "support",
        True,
    )
    rules = [{"claim": "groups", "value": "support", "custom_role": "support"}]
    provider = await service.call("POST", "/v1/identity-providers", json={**IDP_BODY, "rules": rules})
    assert (provider.status_code, provider.json()["rules"][0]["custom_role"]) == (201, "support")

    refused = problem_of(await service.call("DELETE", "/v1/roles/support"), 409, "role_in_use")
    detail = str(refused["detail"])
    assert [each for each in (key["id"], user.id, "the identity provider new") if each not in detail] == []

    await service.call("DELETE", f"/v1/api-keys/{key['id']}")
    back = await service.call("PATCH", f"/v1/users/{user.id}", json={"role": "runner"})
    assert (back.json()["role"], back.json()["custom_role"]) == ("runner", None)
    await service.call("PATCH", "/v1/identity-providers/new", json={"rules": []})
    assert (await service.call("DELETE", "/v1/roles/support")).status_code == 204


@pytest.mark.parametrize("custom_role", ["nobody", "admin"])
async def test_only_a_custom_role_of_the_organization_is_given(service: Service, custom_role: str) -> None:
    key = await service.call("POST", "/v1/api-keys", json={"name": "ci", "custom_role": custom_role})
    assert paths_of(problem_of(key, 422, "role_invalid")) == ["custom_role"]
    rules = [{"claim": "groups", "value": "x", "custom_role": custom_role}]
    provider = await service.call("POST", "/v1/identity-providers", json={**IDP_BODY, "rules": rules})
    assert paths_of(problem_of(provider, 422, "role_invalid")) == ["rules.0.custom_role"]


@pytest.mark.parametrize("role", [{}, {"role": None}, {"role": "boss"}, {"custom_role": None}])
async def test_a_rule_of_an_identity_provider_says_its_role(service: Service, role: dict[str, object]) -> None:
    rules = {"rules": [{"claim": "groups", "value": "x", **role}]}
    created = await service.call("POST", "/v1/identity-providers", json={**IDP_BODY, **rules})
    assert paths_of(problem_of(created, 422, "body_invalid")) == ["rules.0.role"]
    await service.call("POST", "/v1/identity-providers", json=IDP_BODY)
    changed = await service.call("PATCH", "/v1/identity-providers/new", json=rules)
    assert paths_of(problem_of(changed, 422, "body_invalid")) == ["rules.0.role"]


async def test_a_custom_role_stands_alone(service: Service) -> None:
    await service.call("POST", "/v1/roles", json=SUPPORT)
    both = {"name": "ci", "role": "admin", "custom_role": "support"}
    problem_of(await service.call("POST", "/v1/api-keys", json=both), 422, "role_invalid")
    problem_of(
        await service.call("POST", "/v1/api-keys", json={**both, "platform": True}), 403, "platform_key_required"
    )


async def test_no_key_is_made_that_may_do_more_than_its_maker(service: Service) -> None:
    lead = await key_with(service, "lead", LEAD["permissions"])  # type: ignore[arg-type]
    await service.call("POST", "/v1/roles", json=SUPPORT)
    for wanted in ({"role": "admin"}, {"role": "operator"}, {"custom_role": "support"}):
        answer = await service.call("POST", "/v1/api-keys", json={"name": "more", **wanted}, token=lead)
        problem_of(answer, 403, "role_beyond_own")
    made = await service.call("POST", "/v1/api-keys", json={"name": "less", "role": "runner"}, token=lead)
    assert made.status_code == 201


async def test_no_role_is_made_widened_or_narrowed_beyond_ones_own(service: Service) -> None:
    lead = await key_with(service, "lead", LEAD["permissions"])  # type: ignore[arg-type]
    await service.call("POST", "/v1/roles", json=SUPPORT)
    wide = {"name": "wide", "permissions": ["runs.start", "secrets.manage"]}
    problem_of(await service.call("POST", "/v1/roles", json=wide, token=lead), 403, "role_beyond_own")
    own = {"permissions": [*LEAD["permissions"], "secrets.manage"]}
    problem_of(await service.call("PATCH", "/v1/roles/lead", json=own, token=lead), 403, "role_beyond_own")
    narrow = {"permissions": ["runs.start"]}
    problem_of(await service.call("PATCH", "/v1/roles/support", json=narrow, token=lead), 403, "role_beyond_own")
    assert (await whoami(service, lead))["permissions"] == ["runs.start", "keys.manage", "users.manage", "roles.manage"]


async def test_no_user_is_raised_above_the_caller_nor_changed_from_above_them(service: Service) -> None:
    lead = await key_with(service, "lead", LEAD["permissions"])  # type: ignore[arg-type]
    user = await service.stores.user_access.add(
        a_user(role=Role.RUNNER), an_audit_event(1, action=AuditAction.USER_CREATED)
    )
    path = f"/v1/users/{user.id}"
    problem_of(await service.call("PATCH", path, json={"role": "admin"}, token=lead), 403, "role_beyond_own")
    assert (await service.call("PATCH", path, json={"role": "viewer"}, token=lead)).status_code == 200
    await service.call("PATCH", path, json={"role": "operator"})
    for change in ({"role": "viewer"}, {"status": "deactivated"}):
        problem_of(await service.call("PATCH", path, json=change, token=lead), 403, "role_beyond_own")
    problem_of(await service.call("DELETE", path, token=lead), 403, "role_beyond_own")


async def test_no_key_is_revoked_that_may_do_more_than_the_caller(service: Service) -> None:
    lead = await key_with(service, "lead", LEAD["permissions"])  # type: ignore[arg-type]
    problem_of(await service.call("DELETE", "/v1/api-keys/key_operator", token=lead), 403, "role_beyond_own")
    assert (await service.call("DELETE", "/v1/api-keys/key_runner", token=lead)).status_code == 200


async def test_roles_of_an_organization_are_unknown_in_another(service: Service) -> None:
    await service.call("POST", "/v1/roles", json=SUPPORT)
    key = await service.call("POST", "/v1/api-keys", json={"name": "ci", "custom_role": "support"}, token=OTHER_ADMIN)
    problem_of(key, 422, "role_invalid")
