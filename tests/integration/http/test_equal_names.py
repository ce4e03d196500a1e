"""Two organizations that call everything by the same names, and never meet."""

import pytest

from domain.identity.role import Role
from tests.composition import MODEL
from tests.integration.http.service import OTHER_ADMIN, PLATFORM, Act, Service, problem_of, token_of

MINE = token_of(Role.ADMIN)
BOTH = (MINE, OTHER_ADMIN)
PROVIDER = {"name": "acme", "kind": "openai", "base_url": "https://models.example.com/v1"}


async def make(service: Service, path: str, body: dict[str, object], *tokens: str) -> list[dict[str, object]]:
    made = [await service.call("POST", path, json=body, token=token) for token in tokens or BOTH]
    assert all(response.status_code < 300 for response in made), [response.text for response in made]
    return [response.json() for response in made]


@pytest.mark.requirement("C6")
@pytest.mark.parametrize(
    ("path", "body", "one"),
    [
        ("/v1/agents", {"name": "guide", "model": MODEL}, "/v1/agents/guide"),
        ("/v1/mcp-servers", {"slug": "files", "kind": "custom", "command": "server"}, "/v1/mcp-servers/files"),
        ("/v1/model-providers", PROVIDER, "/v1/model-providers/acme"),
        ("/v1/secrets", {"name": "TOKEN", "value": "x"}, "/v1/secrets/TOKEN"),
    ],
)
async def test_a_name_is_each_organizations_own_and_deleting_it_leaves_the_others(
    service: Service, path: str, body: dict[str, object], one: str
) -> None:
    await make(service, path, body)
    theirs = (await service.call("GET", path, token=OTHER_ADMIN)).text
    assert (await service.call("DELETE", one, token=MINE)).status_code == 204
    assert (await service.call("GET", path, token=MINE)).json()["data"] == []
    assert (await service.call("GET", path, token=OTHER_ADMIN)).text == theirs
    assert len((await service.call("GET", path, token=OTHER_ADMIN)).json()["data"]) == 1


@pytest.mark.requirement("C6", "E5")
async def test_one_idempotency_key_names_a_run_in_each_organization(service: Service) -> None:
    await make(service, "/v1/agents", {"name": "guide", "model": MODEL})
    body = {"agent": "guide", "input": "hello"}
    runs = []
    for token in (*BOTH, *BOTH):
        response = await service.call("POST", "/v1/runs", json=body, token=token, headers={"Idempotency-Key": "once"})
        runs.append(response.json()["id"])
    assert runs[:2] == runs[2:]
    assert runs[0] != runs[1]
    other_body = {**body, "input": "something else"}
    response = await service.call(
        "POST", "/v1/runs", json=other_body, token=OTHER_ADMIN, headers={"Idempotency-Key": "once"}
    )
    problem_of(response, 422, "idempotency_key_reused")


@pytest.mark.requirement("C6")
async def test_a_run_under_a_shared_name_is_the_callers_own_agents(service: Service) -> None:
    agents = await make(service, "/v1/agents", {"name": "guide", "model": MODEL})
    service.worker.act = Act.REST
    runs = await make(service, "/v1/runs", {"agent": "guide", "input": "hello"})
    assert [run["agent_id"] for run in runs] == [agent["id"] for agent in agents]
    for run, stranger in zip(runs, reversed(BOTH), strict=True):
        for view in ("", "/events", "/wait?timeout_s=0", "/stream"):
            problem_of(await service.call("GET", f"/v1/runs/{run['id']}{view}", token=stranger), 404, "run_not_found")
        thread = f"/v1/threads/{run['thread_id']}/runs"
        refused = await service.call("POST", thread, json={"agent": "guide", "input": "hi"}, token=stranger)
        problem_of(refused, 404, "thread_not_found")


@pytest.mark.requirement("C6")
async def test_tools_of_a_server_of_the_same_slug_are_listed_where_they_were_found(service: Service) -> None:
    await make(service, "/v1/mcp-servers", {"slug": "files", "kind": "custom", "command": "server"})
    await service.call("POST", "/v1/mcp-servers/files/refresh", token=MINE)
    assert (await service.call("GET", "/v1/mcp-servers/files/tools", token=MINE)).json()["data"] != []
    assert (await service.call("GET", "/v1/mcp-servers/files/tools", token=OTHER_ADMIN)).json()["data"] == []


@pytest.mark.requirement("C6")
async def test_switching_mcp_off_and_changing_agents_is_seen_in_ones_own_organization_only(service: Service) -> None:
    await make(service, "/v1/agents", {"name": "guide", "model": MODEL})
    for path, change in (("/v1/organization", {"mcp_enabled": False}), ("/v1/agents/guide", {"enabled": False})):
        before = (await service.call("GET", path, token=OTHER_ADMIN)).text
        assert (await service.call("PATCH", path, json=change, token=MINE)).status_code == 200
        assert (await service.call("GET", path, token=OTHER_ADMIN)).text == before


@pytest.mark.requirement("C6")
async def test_a_platform_key_reaches_nothing_that_is_in_another_organization(service: Service) -> None:
    (created,) = await make(service, "/v1/organizations", {"name": "acme"}, PLATFORM)
    admin = created["admin_key"]
    assert isinstance(admin, dict)
    (agent,) = await make(service, "/v1/agents", {"name": "guide", "model": MODEL}, str(admin["token"]))
    problem_of(await service.call("GET", f"/v1/agents/{agent['id']}", token=PLATFORM), 404, "agent_not_found")
    revoked = await service.call("DELETE", f"/v1/api-keys/{admin['id']}", token=PLATFORM)
    problem_of(revoked, 404, "api_key_not_found")
    problem_of(await service.call("GET", "/v1/organizations", token=str(admin["token"])), 403, "platform_key_required")
