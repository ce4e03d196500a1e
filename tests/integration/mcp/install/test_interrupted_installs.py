"""Installations that are cut short, by whatever: nothing of them stays, neither files nor
processes."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from application.mcp.installer import McpInstallFailureKind
from infrastructure.settings import installer_environment
from tests.integration.mcp.install.packages import npm_tarball, stand_in, wheel
from tests.integration.mcp.install.workshop import Workshop, npm, python
from tests.integration.mcp.parts import until

pytestmark = pytest.mark.usefixtures("patient_with_launchers")

SERVER = npm("some-server")
HANGING = """
trap '' TERM
mkdir -p node_modules/half
(trap '' TERM; sleep 600) &
echo $$ $! > "$HOME/pids"
echo "working"
wait
"""


def pids(directory: Path) -> list[int]:
    try:
        return [int(pid) for pid in (directory / "pids").read_text().split()]
    except FileNotFoundError:
        return []


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    return tmp_path / "tools"


@pytest.fixture
def workshop(tmp_path: Path, tools: Path) -> Workshop:
    """With an npm that hangs, ignores SIGTERM, and has a child that does."""
    return Workshop(tmp_path / "home", environment=stand_in(tools, HANGING))


@pytest.mark.requirement("B2")
async def test_a_cancelled_installation_leaves_nothing(workshop: Workshop, tools: Path) -> None:
    installing = asyncio.create_task(workshop.installer.install(SERVER, workshop.progress.append))
    await until(lambda: "working\n" in workshop.installer.log(SERVER))
    assert workshop.leftovers(SERVER) != []
    installing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await installing
    assert workshop.leftovers(SERVER) == []
    assert not [pid for pid in pids(tools) if is_alive(pid)]
    assert workshop.installer.log(SERVER).endswith("working\n[dragoman] stopped\n")


@pytest.mark.requirement("B2")
async def test_an_installer_that_is_killed_leaves_nothing(workshop: Workshop, tools: Path) -> None:
    failing = asyncio.create_task(workshop.failure_of(SERVER))
    await until(lambda: pids(tools))
    os.kill(pids(tools)[0], signal.SIGKILL)
    failure = await failing
    assert failure.kind is McpInstallFailureKind.FAILED
    assert "137" in failure.detail
    assert not [pid for pid in pids(tools) if is_alive(pid)]


@pytest.mark.requirement("B2")
async def test_an_installation_that_takes_too_long_is_stopped(tmp_path: Path, tools: Path) -> None:
    workshop = Workshop(tmp_path / "home", environment=stand_in(tools, HANGING), deadline_s=0.5)
    failure = await workshop.failure_of(SERVER)
    assert failure.kind is McpInstallFailureKind.TIMEOUT
    assert not [pid for pid in pids(tools) if is_alive(pid)]


@pytest.mark.requirement("B2")
async def test_a_killed_service_leaves_no_process_and_the_next_one_no_files(
    tmp_path: Path, workshop: Workshop, tools: Path
) -> None:
    program = Path(__file__).with_name("installing.py")
    service = subprocess.Popen(  # noqa: ASYNC220 (a spawn is short)
        [sys.executable, str(program), str(workshop.home), workshop.environment["PATH"]],
        env={**os.environ, "HOME": str(tools), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,
    )
    try:
        await until(lambda: pids(tools))
        os.killpg(service.pid, signal.SIGKILL)
        service.wait()
        await until(lambda: not [pid for pid in pids(tools) if is_alive(pid)])
        assert workshop.leftovers(SERVER) != []
        assert await workshop.installer.tidy() == ()
        assert workshop.leftovers(SERVER) == []
    finally:
        service.kill()
        service.wait()


@pytest.mark.requirement("B2")
async def test_what_is_complete_survives_the_start_and_what_is_half_removed_does_not(
    tmp_path: Path,
) -> None:
    workshop = Workshop(tmp_path / "home")
    whole = await workshop.install(python(str(wheel(tmp_path))))
    assert whole.installation is not None
    removed = workshop.directories.root / ".removed" / "org.mcp.ins"
    removed.mkdir(parents=True)
    (found,) = await workshop.installer.tidy()
    assert (found.organization_id, found.server_id, found.location) == (
        whole.organization_id,
        whole.id,
        whole.installation.location,
    )
    assert workshop.installer.has(whole.installation)
    assert not removed.exists()


@pytest.mark.requirement("B2")
async def test_a_killed_pip_leaves_nothing(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path / "home")
    server = python(str(wheel(tmp_path)))
    failing = asyncio.create_task(workshop.failure_of(server))
    while not failing.done():
        for pid in _installers(workshop.home):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await asyncio.sleep(0.01)
    assert (await failing).kind in (McpInstallFailureKind.FAILED, McpInstallFailureKind.RUNTIME_MISSING)
    assert _installers(workshop.home) == []


def _installers(home: Path) -> list[int]:
    """The processes that work below `home`, apart from their launchers."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.joinpath("cwd").readlink().is_relative_to(home) and " import launcher;" not in (
                process.joinpath("cmdline").read_text()
            ):
                found.append(int(process.name))
        except OSError:
            continue
    return found


async def test_an_installer_that_floods_its_output_fills_neither_memory_nor_disk(tmp_path: Path, tools: Path) -> None:
    flood = "head -c 20000000 /dev/zero | tr '\\0' 'x'; yes | head -c 5000000; printf '\\377\\033[2J bad\\n'; exit 7"
    workshop = Workshop(tmp_path / "home", environment=stand_in(tools, flood))
    failure = await workshop.failure_of(SERVER)
    assert failure.kind is McpInstallFailureKind.FAILED
    log = workshop.directories.log_path(SERVER.organization_id, SERVER.id)
    assert log.stat().st_size < 300_000
    assert "\033" not in workshop.installer.log(SERVER)


@pytest.mark.requirement("B12")
async def test_an_installer_sees_neither_the_services_secrets_nor_the_servers(
    tmp_path: Path, tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "DRAGOMAN_SECRET_KEY", "AWS_SECRET_ACCESS_KEY", "SOMETHING"):
        monkeypatch.setenv(name, "s3cret")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example.org")
    monkeypatch.setenv("npm_config_registry", "http://registry.example.org")
    environment = installer_environment() | stand_in(tools, 'env > "$HOME/env"; exit 1')
    server = npm("some-server", env={"TOKEN": "s3cret"})
    await Workshop(tmp_path / "home", environment=environment).failure_of(server)
    seen = (tools / "env").read_text()
    assert "s3cret" not in seen
    assert "HTTPS_PROXY=http://proxy.example.org" in seen
    assert "npm_config_registry=http://registry.example.org" in seen


async def test_without_node_the_failure_says_so(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    workshop = Workshop(tmp_path / "home", environment={"PATH": str(empty), "HOME": str(empty)})
    failure = await workshop.failure_of(npm(str(npm_tarball(tmp_path))))
    assert failure.kind is McpInstallFailureKind.RUNTIME_MISSING
    assert "Node.js" in failure.detail
