"""The caller's organization over HTTP, and the switch of MCP."""

import pytest

from tests.builders import ORG
from tests.integration.http.service import OTHER_ADMIN, Service, paths_of, problem_of


async def test_an_organization_is_read_and_changed(service: Service) -> None:
    read = await service.call("GET", "/v1/organization")
    assert (read.status_code, read.headers["etag"]) == (200, '"1"')
    assert read.json().items() >= {"id": ORG, "mcp_enabled": True, "version": 1}.items()

    changed = await service.call(
        "PATCH", "/v1/organization", json={"name": "Acme", "mcp_enabled": False}, headers={"If-Match": '"1"'}
    )

    assert (changed.status_code, changed.headers["etag"]) == (200, '"2"')
    assert changed.json() == {**read.json(), "name": "Acme", "mcp_enabled": False, "version": 2, "warnings": []}
    assert {**(await service.call("GET", "/v1/organization")).json(), "warnings": []} == changed.json()
    theirs = (await service.call("GET", "/v1/organization", token=OTHER_ADMIN)).json()
    assert (theirs["id"] == ORG, theirs["mcp_enabled"], theirs["name"] == "Acme") == (False, True, False)
    stale = await service.call("PATCH", "/v1/organization", json={"name": "x"}, headers={"If-Match": '"1"'})
    problem_of(stale, 412, "version_conflict")


async def test_what_was_set_is_audited_and_a_change_of_nothing_is_not(service: Service) -> None:
    for body in ({"mcp_enabled": True}, {}, {"mcp_enabled": False}, {"mcp_enabled": False}):
        assert (await service.call("PATCH", "/v1/organization", json=body)).status_code == 200
    entries = (await service.call("GET", "/v1/audit-events?action=organization.updated")).json()["data"]
    assert [entry["details"] for entry in entries] == [{"version": 2, "mcp_enabled": False}]


@pytest.mark.parametrize(
    ("body", "code", "paths"),
    [
        ({"limit": {}}, "body_invalid", ["limit"]),
        ({"limits": {"max_turns": 0}}, "body_invalid", ["limits.max_turns"]),
        ({"limits": None}, "body_invalid", ["limits"]),
        ({"models": ["gpt"]}, "organization_invalid", ["models.0"]),
        ({"retention_days": 0}, "body_invalid", ["retention_days"]),
        ({"tool_policies": {"a b": {}}}, "tool_policy_invalid", ["tool_policies.a b"]),
        ({"tool_policies": {"x": {"decision": "maybe"}}}, "body_invalid", ["tool_policies.x.decision"]),
        ({"tool_policies": {"x": {"max_calls": -1}}}, "body_invalid", ["tool_policies.x.max_calls"]),
        (
            {"tool_policies": {"x": {"allowed_params": ["a"], "denied_params": ["a"]}}},
            "tool_policy_invalid",
            ["tool_policies.x.denied_params"],
        ),
        (
            {"tool_policies": {"x": {"arguments_schema": {"type": "objekt"}}}},
            "organization_invalid",
            ["tool_policies.x.arguments_schema"],
        ),
        ({"mcp_enabled": "no"}, "body_invalid", ["mcp_enabled"]),
        ({"mcp_enabled": None}, "body_invalid", ["mcp_enabled"]),
        ({"name": "  "}, "organization_invalid", ["name"]),
        ({"name": "x" * 201}, "organization_invalid", ["name"]),
    ],
)
async def test_settings_that_cannot_be_are_refused(
    service: Service, body: dict[str, object], code: str, paths: list[str]
) -> None:
    assert paths_of(problem_of(await service.call("PATCH", "/v1/organization", json=body), 422, code)) == paths


@pytest.mark.requirement("B14")
async def test_with_mcp_switched_off_servers_are_neither_connected_nor_tested(service: Service) -> None:
    files = {"slug": "files", "kind": "custom", "command": "files-server"}
    await service.call("POST", "/v1/mcp-servers", json=files)
    await service.call("PATCH", "/v1/organization", json={"mcp_enabled": False})
    for action in ("connect", "refresh"):
        problem_of(await service.call("POST", f"/v1/mcp-servers/files/{action}"), 409, "mcp_disabled")
    tested = (await service.call("POST", "/v1/mcp-servers/files/test")).json()
    assert (tested["ok"], tested["error"]["code"]) == (False, "disabled")
    assert service.connections.discoveries == []
    await service.call("PATCH", "/v1/organization", json={"mcp_enabled": True})
    assert (await service.call("POST", "/v1/mcp-servers/files/test")).json()["ok"]
