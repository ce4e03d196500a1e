"""The organization's MCP servers as a registry: what IDEs read, with a key and without one."""

import re
from collections.abc import AsyncIterator

import httpx
import pytest

from domain.identity.role import Role
from tests.builders import ORG
from tests.composition import the_settings
from tests.integration.http.service import OTHER_ADMIN, Harness, Service, problem_of, token_of

pytestmark = pytest.mark.requirement("X6")
Json = dict[str, object]

NAME = re.compile(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+")
BASE = "/v0.1/servers"
SERVERS: list[Json] = [
    {
        "slug": "search",
        "kind": "http",
        "url": "https://mcp.example.com/${secret:TENANT}/mcp",
        "headers": {"X-Key": "k-1"},
    },
    {"slug": "old", "kind": "sse", "url": "https://old.example.com/sse", "auth": {"type": "bearer", "token": "t-1"}},
    {"slug": "files", "kind": "npm", "package": "@example/files", "version": "1.2.3", "args": ["/data"]},
    {"slug": "notes", "kind": "python", "package": "mcp-notes mcp<2", "env": {"NOTES_TOKEN": "t-2"}},
    {"slug": "boxed", "kind": "oci", "package": "ghcr.io/example/boxed", "version": "2.0"},
    {"slug": "here", "kind": "custom", "command": "server"},
    {"slug": "packed", "kind": "npm", "package": "/srv/packed.tgz"},
    {"slug": "off", "kind": "http", "url": "https://off.example.com/mcp", "enabled": False},
]


@pytest.fixture
async def published() -> AsyncIterator[Service]:
    """A service that publishes the servers of ORG."""
    async with Harness(settings=the_settings(registry_organization=ORG)).service() as service:
        await registered(service)
        yield service


async def registered(service: Service) -> None:
    assert (await service.call("POST", "/v1/secrets", json={"name": "TENANT", "value": "acme"})).status_code == 201
    for server in SERVERS:
        created = await service.call("POST", "/v1/mcp-servers", json=server)
        assert created.status_code == 201, created.text


async def read(service: Service, path: str = BASE, token: str | None = token_of(Role.VIEWER)) -> httpx.Response:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return await service.client.get(path, headers=headers)


async def listed(service: Service, query: str = "") -> list[str]:
    answer = (await read(service, f"{BASE}{query}")).json()
    return [one["server"]["name"].rpartition("/")[2] for one in answer["servers"]]


async def test_servers_that_others_can_start_or_reach_are_listed_in_the_registrys_format(service: Service) -> None:
    await registered(service)

    answer = (await read(service)).json()

    entries = {one["server"]["title"]: one["server"] for one in answer["servers"]}
    assert [*entries] == ["boxed", "files", "notes", "old", "search"]
    assert answer["metadata"] == {"count": 5}
    for one in answer["servers"]:
        entry, meta = one["server"], one["_meta"]["io.modelcontextprotocol.registry/official"]
        assert NAME.fullmatch(entry["name"])
        assert entry["name"].startswith("com.example.agents/")
        assert 1 <= len(entry["description"]) <= 100
        assert (meta["status"], meta["isLatest"]) == ("active", True)
    assert (entries["files"]["version"], entries["files"]["packages"]) == (
        "1.2.3",
        [
            {
                "registryType": "npm",
                "identifier": "@example/files",
                "version": "1.2.3",
                "transport": {"type": "stdio"},
                "packageArguments": [{"type": "positional", "value": "/data"}],
            }
        ],
    )
    (notes,) = entries["notes"]["packages"]
    assert (notes["registryType"], notes["identifier"], "version" in notes) == ("pypi", "mcp-notes", False)
    assert entries["boxed"]["packages"][0]["identifier"] == "ghcr.io/example/boxed:2.0"
    assert [entries[name]["remotes"][0]["type"] for name in ("old", "search")] == ["sse", "streamable-http"]
    assert entries["search"]["remotes"][0]["url"] == "https://mcp.example.com/{TENANT}/mcp"


async def test_no_value_of_a_secret_is_shown_only_that_it_is_needed(service: Service) -> None:
    await registered(service)

    answer = await read(service)

    assert not [value for value in ("k-1", "t-1", "t-2", "acme") if value in answer.text]
    entries = {one["server"]["title"]: one["server"] for one in answer.json()["servers"]}
    needed = {"isRequired": True, "isSecret": True}
    assert entries["notes"]["packages"][0]["environmentVariables"] == [{"name": "NOTES_TOKEN", **needed}]
    assert entries["search"]["remotes"][0]["headers"] == [{"name": "X-Key", **needed}]
    assert entries["search"]["remotes"][0]["variables"] == {"TENANT": needed}
    assert entries["old"]["remotes"][0]["headers"] == [{"name": "authorization", **needed}]


async def test_pages_and_filters_miss_and_double_nothing(service: Service) -> None:
    await registered(service)
    names: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = (await read(service, f"{BASE}?limit=2{cursor and f'&cursor={cursor}'}")).json()
        names += [one["server"]["title"] for one in page["servers"]]
        cursor = page["metadata"].get("nextCursor")
    assert names == ["boxed", "files", "notes", "old", "search"]
    assert await listed(service, "?search=OT") == ["notes"]
    assert await listed(service, "?version=1.2.3") == ["files"]
    assert len(await listed(service, "?version=latest")) == 5
    assert len(await listed(service, "?updated_since=2000-01-01T00:00:00Z")) == 5
    assert await listed(service, "?updated_since=2999-01-01T00:00:00Z") == []
    assert (await read(service, f"{BASE}?updated_since=soon")).status_code == 422
    assert (await read(service, f"{BASE}?limit=0")).status_code == 422
    problem_of(await read(service, f"{BASE}?cursor=zz"), 422, "cursor_invalid")


async def test_a_server_is_read_by_its_name_with_the_slash_encoded_or_not(service: Service) -> None:
    await registered(service)
    for name in ("com.example.agents%2Ffiles", "com.example.agents/files"):
        for version in ("latest", "1.2.3"):
            one = (await read(service, f"{BASE}/{name}/versions/{version}")).json()
            assert one["server"]["title"] == "files"
        versions = (await read(service, f"{BASE}/{name}/versions")).json()
        assert [each["server"]["version"] for each in versions["servers"]] == ["1.2.3"]
    other = problem_of(
        await read(service, f"{BASE}/com.example.agents/files/versions/9.9.9"), 404, "mcp_server_version_not_found"
    )
    assert other["detail"] == "There is no MCP server version 'com.example.agents/files 9.9.9'."
    for missing in (
        "com.example.agents/nothing/versions/9.9.9",
        "com.example/files/versions",
        "com.example.agents/off/versions",
    ):
        told = problem_of(await read(service, f"{BASE}/{missing}"), 404, "mcp_server_not_found")
        assert str(told["detail"]).startswith("There is no MCP server ")


async def test_without_a_published_organization_a_key_is_needed_and_shows_its_own_servers(service: Service) -> None:
    await registered(service)
    problem_of(await read(service, token=None), 401, "token_missing")
    assert (await read(service, token=OTHER_ADMIN)).json()["servers"] == []


async def test_ides_read_the_published_organization_without_a_key(published: Service) -> None:
    answer = await read(published, token=None)
    assert len(answer.json()["servers"]) == 5
    assert (await read(published, f"{BASE}/com.example.agents/files/versions/latest", token=None)).status_code == 200
    assert (await read(published, token=OTHER_ADMIN)).json()["servers"] == []
    problem_of(await read(published, token="dgm_wrong"), 401, "token_invalid")
    problem_of(await published.client.get("/v1/mcp-servers"), 401, "token_missing")


@pytest.mark.parametrize("path", [BASE, f"{BASE}/com.example.agents/files/versions/latest", f"{BASE}/a/b/versions/1"])
async def test_pages_of_other_origins_ask_first_without_a_key_and_read(published: Service, path: str) -> None:
    asked = await published.client.options(path, headers={"Origin": "https://ide.example.com"})
    assert (asked.status_code, asked.content) == (204, b"")
    for answer in (asked, await read(published, path, token=None)):
        assert answer.headers["access-control-allow-origin"] == "*"
        assert answer.headers["access-control-allow-methods"] == "GET, OPTIONS"
        assert answer.headers["access-control-allow-headers"] == "Authorization, Content-Type"


async def test_readers_without_a_key_cause_one_read_of_the_list_in_five_seconds(published: Service) -> None:
    assert len((await read(published, token=None)).json()["servers"]) == 5
    published.state.servers.clear()
    assert len((await read(published, token=None)).json()["servers"]) == 5
    assert (await read(published)).json()["servers"] == []
    published.clock.advance(5)
    assert (await read(published, token=None)).json()["servers"] == []


async def test_while_mcp_is_off_for_the_organization_its_registry_is_empty(published: Service) -> None:
    assert (await published.call("PATCH", "/v1/organization", json={"mcp_enabled": False})).status_code == 200
    for token in (None, token_of(Role.VIEWER)):
        assert (await read(published, token=token)).json()["servers"] == []
        one = await read(published, f"{BASE}/com.example.agents/files/versions/latest", token=token)
        problem_of(one, 404, "mcp_server_not_found")


async def test_a_published_organization_that_does_not_exist_is_not_found() -> None:
    async with Harness(settings=the_settings(registry_organization=f"org_{9:026}")).service() as service:
        problem_of(await read(service, token=None), 404, "organization_not_found")
