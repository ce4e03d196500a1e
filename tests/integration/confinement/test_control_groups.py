"""Control groups of started processes: entering and ending on a real kernel, limits and delegation
on directories that look like a group that systemd delegated (this needs a machine whose memory and
pids controllers are of version 2)."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from domain.mcp.network import ServerNetwork
from infrastructure.confinement.control_group import ControlGroup, end_group, with_group
from infrastructure.confinement.given_group import GivenGroup
from infrastructure.confinement.grants import Grants
from infrastructure.confinement.plan import LANDLOCK
from infrastructure.confinement.sandbox import Machine, Sandbox, SandboxMode
from infrastructure.container import Container
from infrastructure.lifecycle import open_service
from infrastructure.mcp.install.process import run_to_end
from infrastructure.mcp.transports.stdio_process import ServerProcess, StdioCommand
from infrastructure.settings import Settings
from tests.completeness import beyond
from tests.integration.confinement.test_ends import ESCAPING, all_end, options
from tests.integration.confinement.world import PROFILES, World, a_world, launched

pytestmark = pytest.mark.requirement("S2")
UNMARKED = """
import os, sys
if "again" not in sys.argv:
    os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", sys.orig_argv[4], "again"], {})
if os.fork() == 0:
    os.setsid()
    null = os.open("/dev/null", os.O_RDWR)
    os.write(1, str(os.getpid()).encode() + b"\\n")
    for descriptor in (0, 1, 2): os.dup2(null, descriptor)
while True: os.read(os.pipe()[0], 1)
"""
"""A process that has thrown away the mark by which leftovers are found, and one that it starts."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with a_world(tmp_path_factory.mktemp("world")) as world:
        yield world


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Path]:
    """A group of the kernel, without controllers."""
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    place = next((line.split(" ")[4] for line in mounts if " - cgroup2 " in line), None)
    made = None if place is None else Path(place) / f"dragoman-test-{os.getpid()}-{tmp_path.name}"
    try:
        if made is None:
            raise OSError
        made.mkdir()
        if not (made / "cgroup.kill").exists():
            raise OSError
    except OSError:
        pytest.skip(beyond("this machine lets us make no control group of version 2"))
    yield made
    for inner in filter(Path.is_dir, made.iterdir()):
        assert end_group(str(inner))
    assert end_group(str(made))


def processes(group: Path) -> list[int]:
    return [int(pid) for pid in (group / "cgroup.procs").read_text().split()]


@pytest.mark.parametrize("profile", PROFILES)
def test_a_confined_process_and_all_it_starts_are_in_its_group_and_end_with_it(
    profile: str, world: World, group: Path
) -> None:
    own = group / "started-test"
    command = (sys.executable, "-I", "-S", "-c", ESCAPING, "1")
    with launched((*options(world, profile), "--cgroup", str(own)), *command, cwd=world.own) as (process, lifeline):
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(3)] == [b"out\n"] * 3
        found = []
        for pid in processes(own):
            with suppress(ProcessLookupError):  # the middle one of two forks may just have ended
                found.append(os.pidfd_open(pid))
        assert len(found) >= 4
        assert process.pid not in processes(own)
        os.close(lifeline)
        assert all_end(found)
        process.wait(60)
    assert processes(own) == []
    own.rmdir()


def test_a_group_that_cannot_be_made_starts_nothing(world: World, group: Path) -> None:
    command = (sys.executable, "-I", "-S", "-c", "print('started')")
    with launched(("--cgroup", str(group / "none" / "started")), *command, cwd=world.own) as (process, _):
        output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (2, b"")
    assert b"dragoman launcher" in errors


@pytest.fixture
def without_namespaces(world: World) -> tuple[str, ...]:
    return options(world, LANDLOCK)


async def test_what_threw_away_its_mark_ends_with_a_killed_launcher_without_namespaces(
    world: World, group: Path, without_namespaces: tuple[str, ...]
) -> None:
    ended = asyncio.Event()
    command = StdioCommand(
        command=sys.executable,
        args=("-I", "-S", "-c", UNMARKED),
        cwd=world.own,
        confinement=(*without_namespaces, "--cgroup", str(group)),
    )
    process = await ServerProcess.start(command, environment={}, kill_grace_s=0.1, on_exit=ended.set)
    stdin, stdout, stderr = process.pipes
    with stdin, stdout, stderr:
        line = await asyncio.to_thread(stdout.readline)
        [own] = filter(Path.is_dir, group.iterdir())
        assert len(processes(own)) == 2
        found = [os.pidfd_open(int(line))]
        process._process.kill()
        await ended.wait()
        assert await asyncio.to_thread(all_end, found)
        await process.stop(close_grace_s=0, kill_grace_s=0)
    await asyncio.get_running_loop().shutdown_default_executor()
    assert not own.exists()


def test_the_processes_of_a_service_move_below_and_what_another_service_left_is_ended(
    group: Path, tmp_path: Path
) -> None:
    left = group / "started-1-0-7"
    left.mkdir()
    with subprocess.Popen(["sleep", "600"]) as own, subprocess.Popen(["sleep", "600"]) as leftover:
        (group / "cgroup.procs").write_text(str(own.pid))
        (left / "cgroup.procs").write_text(str(leftover.pid))
        named = tmp_path / "own"
        named.write_text(f"1:name=systemd:/\n0::/{group.name}\n")
        given = GivenGroup(own=named, controllers=(), given=lambda _: True)
        assert given.take()
        assert given.path == group
        assert processes(group / "service") == [own.pid]
        assert leftover.wait(60) == -9
        assert not left.exists()
        own.kill()


# Directories that look like groups.


def a_delegated_group(root: Path, *, controllers: str = "cpu memory pids") -> Path:
    """What systemd makes for a unit with `Delegate=memory pids`, with this process in it."""
    made = root / "system.slice" / "dragoman.service"
    made.mkdir(parents=True)
    (made / "cgroup.controllers").write_text(f"{controllers}\n")
    (made / "cgroup.procs").write_text(f"{os.getpid()}\n")
    (made / "cgroup.subtree_control").write_text("\n")
    (made / "cgroup.kill").touch()
    (root / "own").write_text("0::/system.slice/dragoman.service\n")
    (root / "mounts").write_text(
        f"24 1 0:22 / /proc rw - proc proc rw\n30 1 0:26 / {root} rw,nosuid - cgroup2 none rw\n"
    )
    return made


def given_group(root: Path, *, given: bool = True) -> GivenGroup:
    return GivenGroup(own=root / "own", mounts=root / "mounts", given=lambda _: given)


def test_a_delegated_group_is_divided(tmp_path: Path) -> None:
    made = a_delegated_group(tmp_path)
    taken = given_group(tmp_path)
    assert [taken.path, taken.take(), taken.path] == [None, True, made]
    assert (made / "service" / "cgroup.procs").read_text() == str(os.getpid())
    assert (made / "cgroup.subtree_control").read_text() == "+memory +pids"


def test_a_process_that_was_moved_before_finds_the_same_group(tmp_path: Path) -> None:
    made = a_delegated_group(tmp_path)
    (tmp_path / "own").write_text("0::/system.slice/dragoman.service/service\n")
    taken = given_group(tmp_path)
    assert taken.take()
    assert taken.path == made


def test_a_group_that_nobody_delegated_is_left_as_it_is(tmp_path: Path) -> None:
    made = a_delegated_group(tmp_path)
    assert not given_group(tmp_path, given=False).take()
    assert not GivenGroup(own=tmp_path / "own", mounts=tmp_path / "mounts").take()
    assert not (made / "service").exists()


def test_a_group_without_the_controllers_is_left_as_it_is(tmp_path: Path) -> None:
    made = a_delegated_group(tmp_path, controllers="cpu memory")
    assert not given_group(tmp_path).take()
    assert not (made / "service").exists()


def test_a_group_that_the_kernel_cannot_end_is_left_as_it_is(tmp_path: Path) -> None:
    made = a_delegated_group(tmp_path)
    (made / "cgroup.kill").unlink()
    assert not given_group(tmp_path).take()
    assert not (made / "service").exists()


@pytest.mark.parametrize("own", ["4:memory:/service\n", "", "0::/elsewhere\n"])
def test_a_process_without_a_group_of_version_2_has_none(tmp_path: Path, own: str) -> None:
    a_delegated_group(tmp_path)
    (tmp_path / "own").write_text(own)
    assert not given_group(tmp_path).take()


def test_the_kernel_is_told_the_limits(tmp_path: Path) -> None:
    ControlGroup(str(tmp_path / "started"), memory=300_000_000, processes=64)
    assert (tmp_path / "started" / "memory.max").read_text() == "300000000"
    assert (tmp_path / "started" / "pids.max").read_text() == "1024"


async def test_installers_and_servers_run_in_groups_with_their_limits(tmp_path: Path) -> None:
    lines: list[str] = []
    status = await run_to_end(
        "echo",
        ("installed",),
        cwd=tmp_path,
        environment={"PATH": os.environ["PATH"]},
        on_line=lines.append,
        confinement=("--cgroup", str(tmp_path)),
    )
    assert (status, lines) == (0, ["installed"])
    [group] = tmp_path.glob("started-*")
    assert (group / "cgroup.procs").read_text() == "0"
    assert (group / "cgroup.kill").read_text().startswith("1")
    assert int((group / "pids.max").read_text()) > 0


def test_what_the_kernel_ended_for_its_memory_is_said(tmp_path: Path) -> None:
    group = ControlGroup(str(tmp_path / "started"), memory=300 * 1024**2, processes=0)
    assert group.excess() is None
    events = tmp_path / "started" / "memory.events"
    events.write_text("low 0\nhigh 0\nmax 12\noom 1\noom_kill 0\n")
    assert group.excess() is None
    events.write_text("low 0\nhigh 0\nmax 12\noom 1\noom_kill 3\n")
    assert group.excess() == "more than 300 MiB of memory"


async def test_each_start_names_a_group_below_the_one_that_was_given(tmp_path: Path) -> None:
    sandbox = Sandbox(
        mode=SandboxMode.AUTO,
        private=(tmp_path,),
        granted=Grants(),
        ports=None,
        user_home=None,
        probe=lambda: Machine(landlock=7, namespaces=False, bubblewrap=None),
        group=lambda: Path("/sys/fs/cgroup/dragoman.service"),
    )
    given = await sandbox.options(Grants(readable=(), writable=()), network=ServerNetwork.FULL)
    made, named = with_group(given, "12:345:6")
    assert named == "/sys/fs/cgroup/dragoman.service/started-12-345-6"
    assert made[:2] == ("--cgroup", named)
    assert made[2:] == given[2:]
    assert with_group(given[2:], "12:345:6") == (given[2:], None)
    assert (await sandbox.describe()).endswith("with a control group for each process")


@pytest.fixture
def own_umask() -> Iterator[None]:
    """The service has another one."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("own_umask")
async def test_a_service_divides_its_group_before_it_starts_servers(tmp_path: Path) -> None:
    made = a_delegated_group(tmp_path)
    settings = Settings(home=tmp_path / "home", mcp_sandbox="auto")
    container = Container(settings=settings)
    container.override_providers(given_group=given_group(tmp_path))
    async with open_service(container):
        assert (made / "cgroup.subtree_control").read_text() == "+memory +pids"
        if container.sandbox().report().profile is not None:
            options = await container.sandbox().options(Grants(readable=(), writable=()))
            assert options[:2] == ("--cgroup", str(made))
