"""Installing, uninstalling and importing MCP servers over HTTP."""

import pytest

from tests.integration.http.service import Service, paths_of, problem_of

TIME: dict[str, object] = {"slug": "time", "kind": "python", "package": "mcp-server-time mcp<3", "version": "1.2.3"}


@pytest.mark.requirement("B1")
async def test_a_packaged_server_is_registered_and_read_back(service: Service) -> None:
    created = await service.call("POST", "/v1/mcp-servers", json=TIME)
    assert created.status_code == 201
    assert created.json().items() >= {**TIME, "command": None, "path": None, "isolation": "run", "revision": 1}.items()
    changed = await service.call("PATCH", "/v1/mcp-servers/time", json={"version": None, "command": "time"})
    assert changed.json().items() >= {"version": None, "command": "time", "revision": 2}.items()


@pytest.mark.requirement("B1")
async def test_a_package_that_cannot_be_named_so_is_refused_with_its_path(service: Service) -> None:
    for change, path in (
        ({"package": "--pre"}, "package"),
        ({"version": "1 --pre"}, "version"),
        ({"path": "/p"}, "path"),
    ):
        response = await service.call("POST", "/v1/mcp-servers", json={**TIME, **change})
        assert paths_of(problem_of(response, 422, "mcp_server_invalid")) == [path]


@pytest.mark.requirement("B2")
async def test_a_server_is_installed_in_the_background_and_uninstalled(service: Service) -> None:
    await service.call("POST", "/v1/mcp-servers", json=TIME)
    before = (await service.call("GET", "/v1/mcp-servers/time/status")).json()
    assert before.items() >= {"state": "not_installed", "installed_version": None, "install": None}.items()

    accepted = await service.call("POST", "/v1/mcp-servers/time/install")
    assert accepted.status_code == 202
    assert accepted.json().items() >= {"state": "installing", "install": {"step": "waiting", "percent": 0}}.items()
    while (after := (await service.call("GET", "/v1/mcp-servers/time/status")).json())["state"] == "installing":
        pass
    assert (after["state"], after["installed_version"], after["install"]) == ("disconnected", "1.2.3", None)
    assert after["installed_at"].endswith("Z")
    assert (await service.call("GET", "/v1/mcp-servers/time/logs")).json()["text"].startswith("installing time")

    problem_of(await service.call("POST", "/v1/mcp-servers/time/install"), 409, "mcp_server_installed")
    change = await service.call("PATCH", "/v1/mcp-servers/time", json={"version": "2.0.0"})
    problem_of(change, 409, "mcp_server_installed")
    removed = await service.call("POST", "/v1/mcp-servers/time/uninstall")
    assert (removed.status_code, removed.json()["state"]) == (202, "not_installed")


@pytest.mark.requirement("B1", "B12")
async def test_a_desktop_clients_file_is_imported_without_showing_its_secrets(service: Service) -> None:
    await service.call("POST", "/v1/mcp-servers", json=TIME)
    servers = {
        "Files": {"command": "npx", "args": ["-y", "@scope/files", "/srv"], "env": {"TOKEN": "s3cret"}},
        "time": {"command": "uvx", "args": ["mcp-server-time"]},
        "Tickets": {"type": "http", "url": "https://mcp.example.com", "headers": {"X-Key": "s3cret"}},
        "Bad": {"args": ["s3cret"]},
    }
    answer = await service.call("POST", "/v1/mcp-servers/import", json={"mcpServers": servers})
    assert answer.status_code == 200
    told = {entry["name"]: entry for entry in answer.json()["data"]}
    assert list(told) == list(servers)
    assert {name: entry["outcome"] for name, entry in told.items()} == {
        "Files": "created",
        "time": "skipped",
        "Tickets": "created",
        "Bad": "skipped",
    }
    assert (told["Files"]["kind"], told["Files"]["needs_install"]) == ("npm", True)
    assert told["time"]["remarks"]
    assert "s3cret" not in answer.text
    files = (await service.call("GET", "/v1/mcp-servers/files")).json()
    assert files.items() >= {"package": "@scope/files", "args": ["/srv"], "env": {"TOKEN": "[hidden]"}}.items()


@pytest.mark.parametrize("body", [{}, {"mcpServers": []}, {"mcpServers": {}, "theme": "dark"}, {"entries": {}}])
async def test_an_import_of_something_else_is_refused(service: Service, body: dict[str, object]) -> None:
    problem_of(await service.call("POST", "/v1/mcp-servers/import", json=body), 422, "body_invalid")
