"""What each permission opens: every route with a key that has only its permission, and with one
that lacks only it."""

import pytest

from domain.identity.permission import NEEDED_FOR, Permission
from domain.identity.role import Role
from tests.integration.http.route_cases import Case
from tests.integration.http.service import Service, problem_of
from tests.integration.http.test_access import CASES, REFUSALS, _everything, _filled, names

__all__ = ["names"]
pytestmark = pytest.mark.requirement("P2")

BY_PATH = {
    ("agents", Role.ADMIN): Permission.AGENTS_MANAGE,
    ("mcp-servers", Role.ADMIN): Permission.SERVERS_MANAGE,
    ("mcp-servers", Role.OPERATOR): Permission.SERVERS_OPERATE,
    ("mcp-registries", Role.ADMIN): Permission.SERVERS_MANAGE,
    ("threads", Role.RUNNER): Permission.RUNS_START,
    ("threads", Role.OPERATOR): Permission.THREADS_RELEASE,
    ("sources", Role.OPERATOR): Permission.RUNS_CONTROL,
    ("mcp-servers", Role.RUNNER): Permission.RUNS_START,
    ("runs", Role.RUNNER): Permission.RUNS_START,
    ("runs", Role.OPERATOR): Permission.RUNS_CONTROL,
    ("queue", Role.OPERATOR): Permission.RUNS_CONTROL,
    ("approvals", Role.OPERATOR): Permission.APPROVALS_DECIDE,
    ("webhook-deliveries", Role.OPERATOR): Permission.WEBHOOKS_RETRY,
    ("organization", Role.ADMIN): Permission.ORGANIZATION_MANAGE,
    ("api-keys", Role.ADMIN): Permission.KEYS_MANAGE,
    ("groups", Role.ADMIN): Permission.GROUPS_MANAGE,
    ("roles", Role.ADMIN): Permission.ROLES_MANAGE,
    ("users", Role.ADMIN): Permission.USERS_MANAGE,
    ("gateway-sessions", Role.RUNNER): Permission.RUNS_START,
    ("gateway-sessions", Role.OPERATOR): Permission.GATEWAY_OPEN,
    ("secrets", Role.ADMIN): Permission.SECRETS_MANAGE,
    ("workflows", Role.ADMIN): Permission.WORKFLOWS_MANAGE,
    ("workflows", Role.RUNNER): Permission.RUNS_START,
    ("workflow-runs", Role.OPERATOR): Permission.RUNS_CONTROL,
    ("model-providers", Role.ADMIN): Permission.MODELS_MANAGE,
    ("schedules", Role.ADMIN): Permission.SCHEDULES_MANAGE,
}
OTHERWISE = {"POST /v1/organization/webhook-key": Permission.WEBHOOKS_MANAGE}
FOR_ADMINS = ("identity-providers", "organizations", "sessions")
"""Routes that no permission opens."""
GUARDED = [case for case in CASES if case.role is not Role.VIEWER and not case.platform]


def permission_of(case: Case) -> Permission | None:
    """What the route needs; None: the role admin."""
    part = case.path.split("/")[2]
    return (
        None
        if part in FOR_ADMINS or case.path.endswith("/impersonation")
        else OTHERWISE.get(str(case)) or BY_PATH[part, case.role]
    )


async def key_with(service: Service, name: str, permissions: list[str]) -> str:
    """The token of a key with a custom role of these permissions."""
    made = await service.call("POST", "/v1/roles", json={"name": name, "permissions": permissions})
    assert made.status_code == 201, made.text
    key = await service.call("POST", "/v1/api-keys", json={"name": name, "custom_role": name})
    assert (key.status_code, key.json()["role"], key.json()["custom_role"]) == (201, "viewer", name)
    return str(key.json()["token"])


async def test_every_route_is_closed_to_a_role_that_lacks_only_its_permission(
    service: Service, names: dict[str, str]
) -> None:
    tokens = {}
    for permission in Permission:
        needing = {each for each, needed in NEEDED_FOR.items() if permission in needed}
        others = sorted(set(Permission) - {permission} - needing)
        tokens[permission] = await key_with(service, f"without-{permission.value.replace('.', '-')}", [*others])
    before = await _everything(service)
    for case in GUARDED:
        path, body = str(_filled(case.path + case.query, names)), _filled(case.body, names)
        for token in [tokens[needed]] if (needed := permission_of(case)) else tokens.values():
            response = await service.call(case.method, path, json=body, token=token)
            assert response.status_code == 403, str(case)
            assert response.json()["code"] in REFUSALS, str(case)
    assert await _everything(service) == before


@pytest.mark.parametrize("case", [case for case in GUARDED if permission_of(case)], ids=str)
async def test_every_route_is_open_to_a_role_with_its_permission(
    service: Service, names: dict[str, str], case: Case
) -> None:
    needed = permission_of(case)
    assert needed is not None
    path, body = str(_filled(case.path + case.query, names)), _filled(case.body, names)
    # What a caller gives or takes, they have.
    held = {needed, *NEEDED_FOR.get(needed, ())} | ({Permission.RUNS_START} if "{role}" in case.path else set())
    if needed in (Permission.KEYS_MANAGE, Permission.USERS_MANAGE):
        held |= Role.OPERATOR.permissions
    token = await key_with(service, "only", [*sorted(held)])
    response = await service.call(case.method, path, json=body, token=token)
    assert response.status_code == case.status, response.text


async def test_a_role_with_all_permissions_is_as_admin(service: Service) -> None:
    token = await key_with(service, "all", [*Permission])
    assert (await service.call("GET", "/v1/identity-providers", token=token)).status_code == 200
    problem_of(await service.call("GET", "/v1/organizations", token=token), 403, "platform_key_required")
