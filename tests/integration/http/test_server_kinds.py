"""Kinds of MCP servers that an organization may have: its admins get round them in no way."""

import pytest

from tests.composition import MODEL
from tests.integration.http.service import PLATFORM, Service, problem_of

CUSTOM: dict[str, object] = {"slug": "shell", "kind": "custom", "command": "sh", "args": ["-c", "id"]}
IMAGE: dict[str, object] = {"slug": "image", "kind": "oci", "package": "mcp/time"}
ARCHIVE: dict[str, object] = {"slug": "wheel", "kind": "python", "package": "/srv/server-1.0-py3-none-any.whl"}
REMOTE: dict[str, object] = {"slug": "remote", "kind": "http", "url": "https://mcp.example.com/mcp"}
REFUSED = "mcp_kind_not_permitted"

pytestmark = pytest.mark.requirement("B1", "C6", "S5")


async def a_new_organization(service: Service, **settings: object) -> tuple[str, str]:
    """Its id, and the token of its admin."""
    created = await service.call("POST", "/v1/organizations", json={"name": "acme", **settings}, token=PLATFORM)
    assert created.status_code == 201, created.text
    return created.json()["id"], created.json()["admin_key"]["token"]


async def test_an_admin_of_a_new_organization_starts_no_program_of_the_machine(service: Service) -> None:
    _, admin = await a_new_organization(service)
    for body in (CUSTOM, ARCHIVE, IMAGE):
        problem_of(await service.call("POST", "/v1/mcp-servers", json=body, token=admin), 403, REFUSED)
        problem_of(await service.call("POST", "/v1/mcp-servers/test", json=body, token=admin), 403, REFUSED)
    entries = {"mcpServers": {"shell": {"command": "sh", "args": ["-c", "id"]}}}
    imported = await service.call("POST", "/v1/mcp-servers/import", json=entries, token=admin)
    assert [(entry["outcome"], "mcp_kinds" in entry["remarks"][0]) for entry in imported.json()["data"]] == [
        ("skipped", True)
    ]
    assert (await service.call("GET", "/v1/mcp-servers", token=admin)).json()["data"] == []
    grant = {"mcp_kinds": ["custom"]}
    problem_of(await service.call("PATCH", "/v1/organization", json=grant, token=admin), 403, "platform_key_required")
    assert (await service.call("POST", "/v1/mcp-servers", json=REMOTE, token=admin)).status_code == 201
    package = {"slug": "time", "kind": "python", "package": "mcp-server-time"}
    assert (await service.call("POST", "/v1/mcp-servers", json=package, token=admin)).status_code == 201
    change = {"package": "/srv/server-1.0-py3-none-any.whl"}
    problem_of(await service.call("PATCH", "/v1/mcp-servers/time", json=change, token=admin), 403, REFUSED)
    assert service.connections.discoveries == []


async def test_a_platform_key_grants_kinds_and_takes_them_away(service: Service) -> None:
    organization, admin = await a_new_organization(service)
    path = f"/v1/organizations/{organization}"
    granted = await service.call("PATCH", path, json={"mcp_kinds": ["http", "custom", "oci"]}, token=PLATFORM)
    assert granted.json()["mcp_kinds"] == ["http", "custom", "oci"]
    assert (await service.call("POST", "/v1/mcp-servers", json=IMAGE, token=admin)).status_code == 201
    assert (await service.call("POST", "/v1/mcp-servers", json=CUSTOM, token=admin)).status_code == 201
    await service.call("PATCH", path, json={"mcp_kinds": ["http"]}, token=PLATFORM)
    for action in ("refresh", "connect", "test"):
        refused = await service.call("POST", f"/v1/mcp-servers/shell/{action}", token=admin)
        problem_of(refused, 403, REFUSED)
    problem_of(await service.call("PATCH", "/v1/mcp-servers/shell", json={"args": ["x"]}, token=admin), 403, REFUSED)
    disabled = await service.call("PATCH", "/v1/mcp-servers/shell", json={"enabled": False}, token=admin)
    assert disabled.status_code == 200


async def test_the_tools_of_a_server_that_is_not_permitted_any_more_are_gone(service: Service) -> None:
    await service.call("POST", "/v1/mcp-servers", json={**CUSTOM, "slug": "files", "isolation": "shared"})
    await service.call("POST", "/v1/mcp-servers/files/refresh")
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL, "mcp_servers": ["files"]})
    names = [tool["name"] for tool in (await service.call("GET", "/v1/tools?agent=guide")).json()["data"]]
    assert any(name.startswith("mcp__files__") for name in names)
    await service.call("PATCH", "/v1/organization", json={"mcp_kinds": ["http"]}, token=PLATFORM)
    names = [tool["name"] for tool in (await service.call("GET", "/v1/tools?agent=guide")).json()["data"]]
    assert not any(name.startswith("mcp__files__") for name in names)


async def test_the_first_organization_has_all_kinds(service: Service) -> None:
    assert (await service.call("GET", "/v1/organization")).json()["mcp_kinds"] is None
    problem_of(
        await service.call("PATCH", "/v1/organization", json={"mcp_kinds": ["exe"]}, token=PLATFORM),
        422,
        "organization_invalid",
    )
