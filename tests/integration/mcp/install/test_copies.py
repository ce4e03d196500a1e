"""Custom servers that are copied whole."""

import asyncio
import os
import shutil
import socket
import sys
from pathlib import Path

import pytest

from application.mcp.installer import McpInstallFailureKind
from application.mcp.ports import McpFailure, McpFailureKind
from infrastructure.mcp.install.copying import CopyLimits, CopyStopped, TreeCopy
from tests.builders import a_server
from tests.integration.mcp.install.workshop import Workshop, copied
from tests.integration.mcp.parts import IN_RUN, PATIENCE_S, SERVERS, a_call, sdk_connections, text_of


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path / "home")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A server in a directory: its start reads a file beside it, by a link."""
    source = tmp_path / "source"
    (source / "lib").mkdir(parents=True)
    shutil.copy(SERVERS / "plain_server.py", source / "lib" / "plain_server.py")
    (source / "server.py").symlink_to("lib/plain_server.py")
    start = source / "start.sh"
    start.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S server.py\n')
    start.chmod(0o755)
    return source


@pytest.mark.requirement("B1", "B2")
@pytest.mark.parametrize("command", ["start.sh", "./start.sh"])
async def test_a_directory_is_run_from_its_copy_when_the_original_is_gone(
    workshop: Workshop, source: Path, command: str
) -> None:
    server = await workshop.install(copied(source, command=command))
    shutil.rmtree(source)
    assert server.installation is not None
    assert server.installation.version.startswith("sha256:")
    async with sdk_connections(launch=workshop.launches.of) as connections:
        reply = await connections.call_tool(server, IN_RUN, a_call("echo", text="hello"))
    assert text_of(reply) == "hello"


@pytest.mark.requirement("B1")
async def test_a_command_of_the_machine_runs_in_the_copy(workshop: Workshop, source: Path) -> None:
    server = await workshop.install(copied(source, command=sys.executable, args=("-I", "-S", "server.py")))
    async with sdk_connections(launch=workshop.launches.of) as connections:
        catalog = await connections.discover(server, IN_RUN, timeout_s=PATIENCE_S)
    assert "echo" in {tool.name for tool in catalog.tools}


@pytest.mark.requirement("B1")
async def test_an_executable_file_is_copied_and_needs_no_command(workshop: Workshop, tmp_path: Path) -> None:
    script = tmp_path / "server"
    script.write_text(f"#!{sys.executable}\n" + (SERVERS / "plain_server.py").read_text())
    script.chmod(0o755)
    server = await workshop.install(copied(script))
    script.unlink()
    async with sdk_connections(launch=workshop.launches.of) as connections:
        catalog = await connections.discover(server, IN_RUN, timeout_s=PATIENCE_S)
    assert "echo" in {tool.name for tool in catalog.tools}


async def test_the_same_content_has_the_same_version_and_another_another(workshop: Workshop, source: Path) -> None:
    first = await workshop.install(copied(source, 1, command="start.sh"))
    second = await workshop.install(copied(source, 2, command="start.sh"))
    (source / "lib" / "plain_server.py").chmod(0o755)
    third = await workshop.install(copied(source, 3, command="start.sh"))
    versions = [server.installation.version for server in (first, second, third) if server.installation]
    assert versions[0] == versions[1] != versions[2]


async def test_a_copy_keeps_who_may_execute_and_is_nobody_elses(workshop: Workshop, source: Path) -> None:
    (source / "start.sh").chmod(0o6777)
    server = await workshop.install(copied(source, command="start.sh"))
    assert server.installation is not None
    content = workshop.directories.path(server.installation.location) / "content"
    assert {path.name: oct(path.stat().st_mode)[-4:] for path in content.iterdir() if not path.is_symlink()} == {
        "start.sh": "0700",
        "lib": "0700",
    }
    assert oct((content / "lib" / "plain_server.py").stat().st_mode)[-4:] == "0600"


@pytest.mark.parametrize(
    "target", ["/etc/hostname", "../outside", "lib/../../outside", "lib/away"], ids=["absolute", "up", "round", "twice"]
)
async def test_a_link_that_leads_out_is_refused(workshop: Workshop, source: Path, target: str) -> None:
    (source.parent / "outside").write_text("not yours")
    (source / "lib" / "away").symlink_to("../../outside")
    if target != "lib/away":
        (source / "lib" / "away").unlink()
    (source / "link").symlink_to(target)
    failure = await workshop.failure_of(copied(source, command="start.sh"))
    assert failure.kind is McpInstallFailureKind.SOURCE_UNUSABLE
    assert "leads out of it" in failure.detail


async def test_a_socket_or_a_pipe_is_refused_and_not_read(workshop: Workshop, source: Path) -> None:
    os.mkfifo(source / "pipe")
    assert (await workshop.failure_of(copied(source, command="start.sh"))).kind is McpInstallFailureKind.SOURCE_UNUSABLE
    (source / "pipe").unlink()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(source / "s"))
        failure = await workshop.failure_of(copied(source, command="start.sh"))
    assert failure.kind is McpInstallFailureKind.SOURCE_UNUSABLE


@pytest.mark.parametrize("limits", [CopyLimits(max_files=3), CopyLimits(max_bytes=100)], ids=["files", "bytes"])
async def test_a_server_that_is_too_large_is_refused(tmp_path: Path, source: Path, limits: CopyLimits) -> None:
    workshop = Workshop(tmp_path / "home", copy_limits=limits)
    failure = await workshop.failure_of(copied(source, command="start.sh"))
    assert failure.kind is McpInstallFailureKind.SOURCE_UNUSABLE


async def test_the_data_directory_with_its_keys_is_never_copied(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path / "home")
    (workshop.home / "sub").mkdir(parents=True)
    (tmp_path / "alias").symlink_to(workshop.home)
    for path in (workshop.home, workshop.home / "sub", tmp_path, tmp_path / "alias" / "sub"):
        failure = await workshop.failure_of(copied(path, command="start.sh"))
        assert failure.kind is McpInstallFailureKind.SOURCE_UNUSABLE


async def test_what_is_not_there_cannot_be_copied(workshop: Workshop, tmp_path: Path) -> None:
    failure = await workshop.failure_of(copied(tmp_path / "missing", command="start.sh"))
    assert failure.kind is McpInstallFailureKind.SOURCE_UNUSABLE


async def test_a_directory_needs_a_command_that_can_be_started(workshop: Workshop, source: Path) -> None:
    assert (await workshop.failure_of(copied(source))).kind is McpInstallFailureKind.COMMAND_MISSING
    (source / "start.sh").chmod(0o644)
    failure = await workshop.failure_of(copied(source, command="start.sh"))
    assert failure.kind is McpInstallFailureKind.COMMAND_MISSING


def test_a_copy_can_be_stopped(tmp_path: Path, source: Path) -> None:
    copy = TreeCopy(source, tmp_path / "copy", CopyLimits())
    copy.stop()
    with pytest.raises(CopyStopped):
        copy.run()


async def test_a_cancelled_copy_leaves_nothing(workshop: Workshop, source: Path) -> None:
    for number in range(2_000):
        (source / f"file-{number}").touch()
    server = copied(source, command="start.sh")
    installing = asyncio.create_task(workshop.installer.install(server, workshop.progress.append))
    while not workshop.progress:  # noqa: ASYNC110 (one turn of the loop at a time, bounded by the test's timeout)
        await asyncio.sleep(0)
    installing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await installing
    assert workshop.leftovers(server) == []


@pytest.mark.requirement("B14")
async def test_a_server_whose_files_are_gone_is_not_installed(workshop: Workshop, source: Path) -> None:
    server = await workshop.install(copied(source, command="start.sh"))
    assert server.installation is not None
    assert workshop.installer.has(server.installation)
    await workshop.installer.uninstall(server.organization_id, server.id)
    assert not workshop.installer.has(server.installation)
    async with sdk_connections(launch=workshop.launches.of) as connections:
        for missing in (server, a_server(config=server.config)):
            with pytest.raises(McpFailure) as failed:
                await connections.call_tool(missing, IN_RUN, a_call("echo", text="hello"))
            assert failed.value.kind is McpFailureKind.NOT_INSTALLED


@pytest.mark.requirement("B2")
async def test_each_installation_has_a_place_of_its_own(workshop: Workshop, source: Path) -> None:
    server = copied(source, command="start.sh")
    first, second = await workshop.install(server), await workshop.install(server)
    assert first.installation is not None
    assert second.installation is not None
    assert first.installation.location != second.installation.location
    await workshop.installer.remove(first.installation.location)
    assert not workshop.installer.has(first.installation)
    assert workshop.installer.has(second.installation)
