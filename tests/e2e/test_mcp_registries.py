"""Another Dragoman as the MCP registry that servers are added from, by the command line and the
API."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.dragoman_here import DragomanHere
from tests.e2e.processes import until
from tests.e2e.service import SERVERS, Service, serving
from tests.integration.mcp.parts import accepts, free_port

pytestmark = [pytest.mark.requirement("X6"), pytest.mark.timeout(400)]
NAMESPACE = "local.dragoman"


@contextmanager
def a_remote_server() -> Iterator[str]:
    port = free_port()
    command = [sys.executable, str(SERVERS / "reference_server.py"), str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: accepts(port), what="the remote server")
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(timeout=30)


@contextmanager
def an_upstream(home: Path, *servers: dict[str, object]) -> Iterator[Service]:
    """A Dragoman that everybody may read as a registry, with these servers."""
    with serving(home) as service:
        organization = str(service.call("GET", "/organization")["id"])
        for server in servers:
            service.call("POST", "/mcp-servers", server)
    with serving(home, DRAGOMAN_REGISTRY_ORGANIZATION=organization) as service:
        yield service


def test_a_server_of_another_dragoman_is_found_added_with_its_secret_and_works(tmp_path: Path) -> None:
    memory: dict[str, object] = {
        "slug": "memory",
        "kind": "npm",
        "package": "@modelcontextprotocol/server-memory",
        "version": "2026.8.31",
        "args": ["--fast"],
        "env": {"MEMORY_FILE_PATH": "/srv/memory.json"},
    }
    with a_remote_server() as url:
        remote: dict[str, object] = {"slug": "reference", "kind": "http", "url": url, "headers": {"X-Key": "upstream"}}
        with (
            an_upstream(tmp_path / "upstream", memory, remote) as upstream,
            serving(tmp_path / "home", DRAGOMAN_MCP_REGISTRIES=f"ours={upstream.url}") as service,
        ):
            cli = DragomanHere(tmp_path / "home")
            listing = cli.run("mcp", "search").out
            assert f"{NAMESPACE}/memory" in listing
            assert "npm" in listing
            assert "upstream" not in cli.run("mcp", "search", "--json").out
            assert f"{NAMESPACE}/reference" not in cli.run("mcp", "search", "memory").out

            refused = cli.run("mcp", "add-from", f"{NAMESPACE}/reference", exit_code=2)
            assert "It needs headers.X-Key (a secret)" in refused.err
            assert f"It sets url.url: {url}" in refused.err
            assert service.call("GET", "/mcp-servers")["data"] == []
            service.call("POST", "/secrets", {"name": "KEY", "value": "k-1"})
            cli.run("mcp", "add-from", f"{NAMESPACE}/reference", "--set-secret", "headers.X-Key=KEY")
            assert "tools" in cli.run("mcp", "test", "reference").out
            cli.run(
                "mcp", "add-from", f"{NAMESPACE}/memory@2026.8.31", "--slug", "notes", "--set", "env.MEMORY_FILE_PATH=x"
            )

            added = {server["slug"]: server for server in service.call("GET", "/mcp-servers")["data"]}
            assert added["reference"]["headers"] == {"X-Key": {"secret": "KEY"}}
            shown = {key: added["notes"][key] for key in ("kind", "package", "version", "args")}
            assert shown == {key: memory[key] for key in shown}
            assert "newer version" not in cli.run("mcp", "show", "reference").out
            upstream.call("PATCH", "/mcp-servers/memory", {"version": "2026.9.1"})
            assert "2026.9.1" in cli.run("mcp", "show", "notes").out
            path = f"/mcp-registries/ours/servers/{NAMESPACE}/memory"
            service.call("GET", f"{path}?version=1.0.0", expect=404)
            service.call("POST", path, {"slug": "notes", "inputs": {"env.MEMORY_FILE_PATH": "x"}}, expect=409)


def test_a_registry_that_is_away_is_told_and_nothing_is_added(tmp_path: Path) -> None:
    settings = {"DRAGOMAN_MCP_REGISTRIES": f"ours=http://127.0.0.1:{free_port()}"}
    with serving(tmp_path / "home", **settings) as service:
        cli = DragomanHere(tmp_path / "home")
        assert "'ours'" in cli.run("mcp", "search", exit_code=1).err
        service.call("GET", "/mcp-registries/ours/servers", expect=503)
        assert service.call("GET", "/mcp-registries")["data"] == [{"name": "ours"}]
