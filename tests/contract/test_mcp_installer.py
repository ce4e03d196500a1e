"""The contract of `McpInstaller`: an installation is complete or not there at all."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import create_autospec

import pytest

from application.mcp.installer import McpInstaller, McpInstallFailure, McpInstallFailureKind
from application.mcp.ports import InstallProgress
from domain.ids import McpServerId
from domain.mcp.server import McpServer, McpServerConfig, McpServerKind
from infrastructure.mcp.containers.engine import ContainerEngine
from infrastructure.mcp.install.directories import InstallDirectories
from infrastructure.mcp.install.installer import LocalMcpInstaller
from infrastructure.mcp.install.launches import InstalledLaunches
from infrastructure.mcp.install.node import NodeRuntime
from infrastructure.mcp.install.npm import NpmPackages
from infrastructure.mcp.install.oci_images import OciImages
from infrastructure.mcp.install.python_packages import PythonPackages
from tests.builders import ORG, OTHER_ORG, a_server, numbered
from tests.doubles.mcp_installer import InMemoryMcpInstaller
from tests.doubles.surroundings import SequentialIds, StepClock


def in_memory(home: Path) -> McpInstaller:
    installer = InMemoryMcpInstaller(clock=StepClock(), ids=SequentialIds())
    installer.missing = str(home / "missing")
    return installer


def local(home: Path) -> McpInstaller:
    directories = InstallDirectories(home / "servers")
    node = NodeRuntime(search_path="", packaged=None, own_commands=home / "bin")
    launches = InstalledLaunches(directories=directories, node=node)
    return LocalMcpInstaller(
        directories=directories,
        npm=NpmPackages(node=node),
        python=PythonPackages(python=Path(sys.executable), has_pip=True, uv=None),
        images=OciImages(engine=create_autospec(ContainerEngine, instance=True)),
        launches=launches,
        environment={},
        home=home,
        clock=StepClock(),
        ids=SequentialIds(),
    )


@pytest.fixture(params=[in_memory, local], ids=["memory", "local"])
def installer(request: pytest.FixtureRequest, tmp_path: Path) -> McpInstaller:
    make: Callable[[Path], McpInstaller] = request.param
    return make(tmp_path / "home")


def a_copied_server(source: Path, number: int = 1, **owner: object) -> McpServer:
    config = McpServerConfig(slug="own", kind=McpServerKind.CUSTOM, path=str(source), command="sh")
    organization_id = OTHER_ORG if owner.get("other") else ORG
    return a_server(McpServerId(numbered("mcp", number)), organization_id=organization_id, config=config)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    directory = tmp_path / "source"
    directory.mkdir()
    (directory / "file").write_text("content")
    return directory


def nobody(_: InstallProgress) -> None:
    """Whom progress does not interest."""


@pytest.mark.requirement("B2")
async def test_what_is_installed_is_there_until_it_is_uninstalled(installer: McpInstaller, source: Path) -> None:
    server = a_copied_server(source)
    progress: list[InstallProgress] = []
    installation = await installer.install(server, progress.append)
    assert installer.has(installation)
    assert installation.version
    assert progress
    assert installer.log(server)

    await installer.uninstall(ORG, server.id)
    assert not installer.has(installation)
    assert await installer.tidy() == ()
    assert installer.log(server) == ""
    await installer.uninstall(ORG, server.id)


@pytest.mark.requirement("B2", "C6")
async def test_servers_are_installed_and_uninstalled_apart(installer: McpInstaller, source: Path) -> None:
    servers = [a_copied_server(source, 1), a_copied_server(source, 2), a_copied_server(source, 1, other=True)]
    installations = [await installer.install(server, nobody) for server in servers]
    assert len({installation.location for installation in installations}) == 3
    await installer.uninstall(ORG, servers[0].id)
    assert [installer.has(installation) for installation in installations] == [False, True, True]


@pytest.mark.requirement("B2")
async def test_all_that_is_installed_is_found_with_its_owner(installer: McpInstaller, source: Path) -> None:
    servers = [a_copied_server(source, 1), a_copied_server(source, 2, other=True)]
    installations = [await installer.install(server, nobody) for server in servers]
    found = {(entry.organization_id, entry.server_id, entry.location) for entry in await installer.tidy()}
    assert found == {
        (server.organization_id, server.id, installation.location)
        for server, installation in zip(servers, installations, strict=True)
    }
    assert all(installer.has(installation) for installation in installations)


async def test_one_of_several_installations_of_a_server_is_removed(installer: McpInstaller, source: Path) -> None:
    first = await installer.install(a_copied_server(source), nobody)
    second = await installer.install(a_copied_server(source), nobody)
    await installer.remove(first.location)
    assert (installer.has(first), installer.has(second)) == (False, True)
    await installer.remove(first.location)


@pytest.mark.requirement("B2")
async def test_a_failed_installation_leaves_nothing(installer: McpInstaller, tmp_path: Path) -> None:
    server = a_copied_server(tmp_path / "home" / "missing")
    with pytest.raises(McpInstallFailure) as failed:
        await installer.install(server, nobody)
    assert failed.value.kind is McpInstallFailureKind.SOURCE_UNUSABLE
    assert await installer.tidy() == ()


@pytest.mark.requirement("B2")
async def test_a_cancelled_installation_leaves_nothing(installer: McpInstaller, source: Path) -> None:
    installing = asyncio.create_task(installer.install(a_copied_server(source), nobody))
    await asyncio.sleep(0)
    installing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await installing
    assert await installer.tidy() == ()
