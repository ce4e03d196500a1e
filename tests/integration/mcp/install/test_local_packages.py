"""Servers installed from package files: nothing is needed but npm and Python."""

import asyncio
import base64
import hashlib
import shutil
from pathlib import Path

import pytest

from application.mcp.installer import McpInstallFailureKind
from application.mcp.ports import InstallProgress, McpFailure, McpFailureKind
from domain.mcp.server import McpServer
from tests.integration.mcp.install.packages import npm_tarball, sdist, wheel
from tests.integration.mcp.install.workshop import Workshop, npm, python
from tests.integration.mcp.parts import IN_RUN, a_call, sdk_connections, text_of

pytestmark = pytest.mark.timeout(240)
needs_npm = pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm: `make node`")


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path / "home")


@pytest.fixture(scope="module")
def from_wheel(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workshop, McpServer]:
    """A server installed from a wheel that is gone, and what installed it."""
    directory = tmp_path_factory.mktemp("wheel")
    workshop = Workshop(directory / "home")
    file = wheel(directory)
    server = asyncio.run(workshop.install(python(str(file))))
    file.rename(directory / "moved.whl")
    return workshop, server


@needs_npm
@pytest.mark.requirement("B1", "B2")
async def test_an_npm_server_is_installed_from_a_file_and_runs_without_it(workshop: Workshop, tmp_path: Path) -> None:
    file = npm_tarball(tmp_path)
    integrity = base64.b64encode(hashlib.sha512(file.read_bytes()).digest()).decode()
    server = await workshop.install(npm(str(file)))
    file.unlink()
    assert server.installation is not None
    manifest = workshop.directories.manifest(server.installation.location)
    assert manifest is not None
    assert (manifest.packages, manifest.hashes) == (
        {"tiny-server": "1.2.3"},
        {"tiny-server": [f"sha512-{integrity}"]},
    )
    assert server.installation.version == "1.2.3"
    async with sdk_connections(launch=workshop.launches.of) as connections:
        reply = await connections.call_tool(server, IN_RUN, a_call("echo", text="hello"))
    assert text_of(reply).startswith("hello from node v")


@pytest.mark.requirement("B1", "B2")
async def test_a_python_server_is_installed_from_a_wheel_and_runs_without_it(
    from_wheel: tuple[Workshop, McpServer],
) -> None:
    workshop, server = from_wheel
    assert server.installation is not None
    assert server.installation.version == "1.2.3"
    async with sdk_connections(launch=workshop.launches.of) as connections:
        reply = await connections.call_tool(server, IN_RUN, a_call("echo", text="hello"))
    assert text_of(reply) == "hello"


@pytest.mark.requirement("B2")
def test_exact_versions_and_hashes_are_recorded_and_bytecode_is_compiled(
    from_wheel: tuple[Workshop, McpServer],
) -> None:
    workshop, server = from_wheel
    sha256 = hashlib.sha256((workshop.home.parent / "moved.whl").read_bytes()).hexdigest()
    assert server.installation is not None
    manifest = workshop.directories.manifest(server.installation.location)
    assert manifest is not None
    assert manifest.packages == {"tiny_server": "1.2.3"}
    assert manifest.hashes == {"tiny_server": [f"sha256:{sha256}"]}
    compiled = workshop.directories.path(server.installation.location).glob("venv/**/tiny_server.*.pyc")
    assert len(list(compiled)) == 1


@pytest.mark.requirement("B2")
def test_progress_names_the_steps_and_never_falls(from_wheel: tuple[Workshop, McpServer]) -> None:
    progress = from_wheel[0].progress
    percents = [entry.percent for entry in progress]
    assert percents == sorted(percents)
    assert list(dict.fromkeys(entry.step for entry in progress)) == ["preparing", "downloading", "checking"]
    assert progress[0] == InstallProgress(step="preparing", percent=0)


@pytest.mark.requirement("B2")
def test_what_the_installer_printed_is_in_the_servers_log(from_wheel: tuple[Workshop, McpServer]) -> None:
    workshop, server = from_wheel
    log = workshop.installer.log(server)
    assert "Successfully installed tiny" in log
    assert log.endswith("[dragoman] installed version 1.2.3\n")
    assert oct(workshop.directories.log_path(server.organization_id, server.id).stat().st_mode)[-3:] == "600"


@pytest.mark.requirement("B1")
async def test_a_python_server_is_installed_from_an_sdist_and_run_as_a_module(
    workshop: Workshop, tmp_path: Path
) -> None:
    server = await workshop.install(python(str(sdist(tmp_path)), args=("-m", "tiny_server")))
    async with sdk_connections(launch=workshop.launches.of) as connections:
        reply = await connections.call_tool(server, IN_RUN, a_call("echo", text="hello"))
    assert text_of(reply) == "hello"


async def test_a_package_with_several_commands_needs_one_to_be_chosen(workshop: Workshop, tmp_path: Path) -> None:
    file = str(wheel(tmp_path, scripts=("one", "two")))
    failure = await workshop.failure_of(python(file))
    assert failure.kind is McpInstallFailureKind.COMMAND_MISSING
    assert "one, two" in failure.detail
    server = await workshop.install(python(file, command="two"))
    assert workshop.launches.of(server).command.endswith("/venv/bin/two")


async def test_a_package_without_the_command_asked_for_is_not_installed(workshop: Workshop, tmp_path: Path) -> None:
    failure = await workshop.failure_of(python(str(wheel(tmp_path)), command="three"))
    assert failure.kind is McpInstallFailureKind.COMMAND_MISSING
    assert "tiny-server" in failure.detail


@pytest.mark.requirement("B1")
async def test_where_dragoman_s_own_python_has_no_pip_the_environment_gets_one(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path / "home", has_pip=False)
    server = await workshop.install(python(str(wheel(tmp_path))))
    assert server.installation is not None
    manifest = workshop.directories.manifest(server.installation.location)
    assert manifest is not None
    assert manifest.packages.keys() > {"pip", "tiny_server"}
    # pip is no package of the server's, and came with the interpreter.
    assert manifest.hashes.keys() == {"tiny_server"}


@needs_npm
@pytest.mark.parametrize(
    ("bin", "command"),
    [
        ({"tiny-server": "server.js", "other": "package.json"}, None),
        ({"a": "server.js", "b": "./server.js"}, None),
        ({"a": "server.js", "b": "package.json"}, "a"),
    ],
    ids=["named like the package", "one program by two names", "chosen"],
)
async def test_the_command_of_an_npm_package_is_found(
    workshop: Workshop, tmp_path: Path, bin: object, command: str | None
) -> None:
    server = await workshop.install(npm(str(npm_tarball(tmp_path, bin=bin)), command=command))
    assert workshop.launches.of(server).args[0].endswith("/node_modules/tiny-server/server.js")


@needs_npm
@pytest.mark.parametrize("bin", [None, {"tiny-server": "../../../../../bin/sh"}, {"tiny-server": "missing.js"}])
async def test_an_npm_package_without_a_program_of_its_own_is_not_installed(
    workshop: Workshop, tmp_path: Path, bin: object
) -> None:
    failure = await workshop.failure_of(npm(str(npm_tarball(tmp_path, bin=bin))))
    assert failure.kind is McpInstallFailureKind.COMMAND_MISSING


@needs_npm
async def test_scripts_of_npm_packages_are_not_run(workshop: Workshop, tmp_path: Path) -> None:
    witness = tmp_path / "ran"
    scripts = dict.fromkeys(("preinstall", "install", "postinstall", "prepare"), f"touch {witness}")
    await workshop.install(npm(str(npm_tarball(tmp_path, scripts=scripts))))
    assert not witness.exists()


@pytest.mark.parametrize("suffix", ["tgz", "whl"])
async def test_a_file_that_is_not_there_is_said_to_be_missing(workshop: Workshop, tmp_path: Path, suffix: str) -> None:
    server = (npm if suffix == "tgz" else python)(str(tmp_path / f"missing.{suffix}"))
    assert (await workshop.failure_of(server)).kind is McpInstallFailureKind.SOURCE_UNUSABLE


@pytest.mark.parametrize("suffix", ["tgz", "whl"])
async def test_a_file_that_is_no_package_is_not_installed(workshop: Workshop, tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"tiny_server-1.2.3-py3-none-any.{suffix}"
    file.write_bytes(b"not an archive")
    server = (npm if suffix == "tgz" else python)(str(file))
    assert (await workshop.failure_of(server)).kind is McpInstallFailureKind.FAILED


@needs_npm
async def test_an_installation_that_lost_its_program_cannot_be_started(workshop: Workshop, tmp_path: Path) -> None:
    server = await workshop.install(npm(str(npm_tarball(tmp_path))))
    assert server.installation is not None
    shutil.rmtree(workshop.directories.path(server.installation.location) / "node_modules")
    async with sdk_connections(launch=workshop.launches.of) as connections:
        with pytest.raises(McpFailure) as failed:
            await connections.call_tool(server, IN_RUN, a_call("echo", text="hello"))
    assert failed.value.kind is McpFailureKind.NOT_CONNECTED
