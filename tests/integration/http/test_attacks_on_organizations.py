"""Attacks on the wall between organizations over HTTP, beside the walk of every route in
test_access: filters, cursors, and naming another organization instead of one's own."""

import pytest

from domain.identity.role import Role
from tests.builders import ORG, OTHER_ORG
from tests.composition import MODEL
from tests.integration.http.service import OTHER_ADMIN, Act, Service, paths_of, problem_of, token_of

LISTS = (
    "/v1/agents",
    "/v1/mcp-servers",
    "/v1/model-providers",
    "/v1/secrets",
    "/v1/threads",
    "/v1/runs",
    "/v1/approvals",
    "/v1/api-keys",
    "/v1/audit-events",
)

pytestmark = pytest.mark.requirement("C6")


@pytest.fixture
async def estate(service: Service) -> dict[str, list[str]]:
    """ORG has two or more of everything that is listed: what identifies each, by list."""
    for number in (1, 2):
        await service.call("POST", "/v1/agents", json={"name": f"agent-{number}", "model": MODEL})
        server = {"slug": f"server-{number}", "kind": "custom", "command": "server"}
        await service.call("POST", "/v1/mcp-servers", json=server)
        provider = {"name": f"provider-{number}", "kind": "openai", "api_key": "sk-nobody-sees"}
        await service.call("POST", "/v1/model-providers", json=provider)
        await service.call("POST", "/v1/secrets", json={"name": f"SECRET_{number}", "value": "x"})
        service.worker.act = Act.APPROVE
        await service.call("POST", "/v1/runs", json={"agent": f"agent-{number}", "input": "hello"})
    listed = {path: (await service.call("GET", path)).json()["data"] for path in LISTS}
    return {path: [str(entry.get("id", entry.get("name"))) for entry in entries] for path, entries in listed.items()}


async def test_the_cursor_of_another_organizations_list_shows_nothing_of_it(
    service: Service, estate: dict[str, list[str]]
) -> None:
    for path, theirs in estate.items():
        page = (await service.call("GET", f"{path}?limit=1")).json()
        assert page["next_cursor"] is not None, path
        stolen = await service.call("GET", f"{path}?limit=100&cursor={page['next_cursor']}", token=OTHER_ADMIN)
        assert stolen.status_code == 200, path
        assert not [identifier for identifier in theirs if identifier in stolen.text], path


async def test_filtering_by_another_organizations_ids_finds_nothing(
    service: Service, estate: dict[str, list[str]]
) -> None:
    run, agent, server = estate["/v1/runs"][0], estate["/v1/agents"][0], estate["/v1/mcp-servers"][0]
    thread = (await service.call("GET", f"/v1/runs/{run}")).json()["thread_id"]
    filters = [
        f"/v1/runs?thread_id={thread}",
        f"/v1/runs?agent_id={agent}",
        f"/v1/approvals?run_id={run}",
        f"/v1/audit-events?run_id={run}",
        f"/v1/audit-events?resource={agent}",
        f"/v1/audit-events?server_id={server}",
        "/v1/audit-events?actor=key_admin",
        f"/v1/usage?agent_id={agent}",
    ]
    for path in filters:
        own = await service.call("GET", path)
        assert own.status_code == 200, (path, own.text)
        if not path.startswith("/v1/usage"):
            assert own.json()["data"] != [], path
        stolen = await service.call("GET", path, token=OTHER_ADMIN)
        assert (stolen.status_code, stolen.json()["data"]) == (200, []), path
    problem_of(await service.call("GET", f"/v1/tools?agent={agent}", token=OTHER_ADMIN), 404, "agent_not_found")


async def test_naming_another_organization_changes_nothing_of_whose_one_is(service: Service) -> None:
    for headers in ({"X-Organization-Id": ORG}, {"X-Forwarded-Host": ORG}, {"Cookie": f"organization={ORG}"}):
        answer = await service.call("GET", "/v1/organization", token=OTHER_ADMIN, headers=headers)
        assert answer.json()["id"] == OTHER_ORG
    asked = await service.call("GET", f"/v1/organization?organization_id={ORG}", token=OTHER_ADMIN)
    assert asked.status_code in (200, 400, 422)
    assert ORG not in asked.text.replace(f"organization_id={ORG}", "")
    named = {"name": "spy", "model": MODEL, "organization_id": ORG}
    refused = await service.call("POST", "/v1/agents", json=named, token=OTHER_ADMIN)
    assert paths_of(problem_of(refused, 422, "body_invalid")) == ["organization_id"]


async def test_two_keys_in_one_request_are_not_one_key_of_both(service: Service, estate: dict[str, list[str]]) -> None:
    agent = estate["/v1/agents"][0]
    for authorization in (
        f"Bearer {OTHER_ADMIN}, Bearer {token_of(Role.ADMIN)}",
        f"Bearer {OTHER_ADMIN} {token_of(Role.ADMIN)}",
    ):
        answer = await service.call("GET", f"/v1/agents/{agent}", token=None, headers={"Authorization": authorization})
        assert answer.status_code == 401


async def test_an_agent_does_not_get_a_server_of_another_organization_by_its_name_or_id(
    service: Service, estate: dict[str, list[str]]
) -> None:
    body: dict[str, object] = {"name": "spy", "model": MODEL}
    for server in ("server-1", estate["/v1/mcp-servers"][0]):
        refused = await service.call("POST", "/v1/agents", json={**body, "mcp_servers": [server]}, token=OTHER_ADMIN)
        assert paths_of(problem_of(refused, 422, "agent_invalid")) == ["mcp_servers.0"]
    assert (await service.call("POST", "/v1/agents", json={**body, "mcp_servers": ["server-1"]})).status_code == 201
