"""Servers that were installed on another machine of the same database: they are installed here at
their first start."""

import asyncio
from pathlib import Path

import pytest

from application.mcp.ports import McpFailure, McpFailureKind
from domain.mcp.server import McpServer
from infrastructure.mcp.install.restoring import RestoredInstallations
from infrastructure.settings import installer_environment
from tests.integration.mcp.install.packages import library, wheel
from tests.integration.mcp.install.workshop import Workshop, copied, python
from tests.integration.mcp.parts import IN_RUN, a_call, sdk_connections, text_of

pytestmark = [pytest.mark.timeout(400), pytest.mark.requirement("B2", "E6")]

INSTALLED_S = 180.0
"""A busy machine has installed a package by then."""


def restored_by(workshop: Workshop) -> RestoredInstallations:
    return RestoredInstallations(workshop.installer.restore, wait_s=INSTALLED_S)


async def first_calls(workshop: Workshop, server: McpServer, *, count: int = 1) -> set[str]:
    """What calls of the server say that are the first ones on the workshop's machine, at once."""
    async with sdk_connections(
        launch=workshop.launches.of, restored=restored_by(workshop), connect_timeout_s=INSTALLED_S
    ) as connections:
        call = a_call("echo", INSTALLED_S, text="hello")
        calls = [connections.call_tool(server, IN_RUN, call) for _ in range(count)]
        return {text_of(reply) for reply in await asyncio.gather(*calls)}


def packages_of(workshop: Workshop, server: McpServer) -> dict[str, str]:
    assert server.installation is not None
    manifest = workshop.directories.manifest(server.installation.location)
    assert manifest is not None
    return manifest.packages


async def test_a_package_comes_in_the_same_versions_whatever_has_been_published_since(tmp_path: Path) -> None:
    index = tmp_path / "index"
    index.mkdir()
    wheel(index, requires="tiny-helper")
    library(index, "1.0.0")
    environment = {**installer_environment(), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index)}
    here, there = (Workshop(tmp_path / name, environment=environment) for name in ("here", "there"))
    server = await here.install(python("tiny-server"))
    library(index, "2.0.0")

    assert await first_calls(there, server, count=2) == {"hello"}

    assert packages_of(there, server) == packages_of(here, server) == {"tiny_helper": "1.0.0", "tiny_server": "1.2.3"}


async def test_a_copied_server_comes_from_the_same_path_with_the_same_content(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "server").write_text("anything")
    here, there = Workshop(tmp_path / "here"), Workshop(tmp_path / "there")
    server = await here.install(copied(source, command="sh"))
    assert server.installation is not None
    await restored_by(there).ready(server)
    assert there.installer.has(server.installation)

    await there.installer.uninstall(server.organization_id, server.id)
    (source / "server").write_text("something else")
    with pytest.raises(McpFailure) as failed:
        await restored_by(there).ready(server)
    assert failed.value.kind is McpFailureKind.NOT_INSTALLED
    assert server.installation.version in failed.value.detail
    assert there.leftovers(server) == []


async def test_an_installation_is_made_by_one_process_of_a_machine_at_a_time(tmp_path: Path) -> None:
    file = str(wheel(tmp_path))
    here, there = Workshop(tmp_path / "here"), Workshop(tmp_path / "there")
    server = await here.install(python(file))
    assert server.installation is not None
    location = server.installation.location
    with there.directories.building(location):
        unfinished = there.directories.create(location)
        with pytest.raises(McpFailure) as failed:
            await restored_by(there).ready(server)
        assert failed.value.kind is McpFailureKind.NOT_CONNECTED
        assert await there.installer.tidy() == ()
        assert unfinished.is_dir(), "a start leaves alone what another process is making"

    assert await first_calls(there, server) == {"hello"}


async def test_what_a_killed_process_left_unfinished_is_removed(tmp_path: Path) -> None:
    there = Workshop(tmp_path / "there")
    unfinished = there.directories.create("org_1/mcp_1/ins_1")
    assert await there.installer.tidy() == ()
    assert not unfinished.exists()
