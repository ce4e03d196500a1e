"""What a confined server starts ends with it, whatever happens to launcher and service."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from infrastructure.confinement import leftovers
from infrastructure.confinement.plan import BUBBLEWRAP, LANDLOCK, NAMESPACES
from tests.completeness import beyond
from tests.integration.confinement.world import PATIENCE_S, PROFILES, World, a_world, held_here, launched

ESCAPING = """
import os, signal, sys, time
pipe = int(sys.argv[1])
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(number, signal.SIG_IGN)
            for target in (os.getppid(), 1):
                for number in (signal.SIGKILL, signal.SIGSTOP):
                    try:
                        os.kill(target, number)
                    except OSError:
                        pass
            os.write(1, b"out\\n")
            null = os.open("/dev/null", os.O_RDWR)
            for descriptor in (0, 1, 2): os.dup2(null, descriptor)
            while True: time.sleep(60)
        os._exit(0)
while True: time.sleep(60)
"""
"""Three processes with sessions of their own, adopted by whoever is above, deaf to polite
signals."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with a_world(tmp_path_factory.mktemp("world")) as world:
        yield world


def options(world: World, profile: str) -> tuple[str, ...]:
    if not held_here(profile):
        pytest.skip(beyond(f"this machine does not hold the profile {profile}"))
    return world.options(profile)


def escaped(process: "subprocess.Popen[bytes]", mark: str) -> list[int]:
    """Descriptors of the processes with the mark, once all three are out."""
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(3)] == [b"out\n"] * 3
    found = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if mark in _environment(pid)]
    opened = []
    for pid in found:
        with suppress(ProcessLookupError):  # the middle one of two forks may just have ended
            if pid != process.pid:
                opened.append(os.pidfd_open(pid))
    assert len(opened) >= 3
    return opened


def all_end(descriptors: list[int]) -> bool:
    try:
        return all(select.select([descriptor], [], [], PATIENCE_S)[0] for descriptor in descriptors)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _environment(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/environ").read_text(errors="replace")
    except OSError:
        return ""


@pytest.mark.requirement("S2")
@pytest.mark.parametrize("profile", PROFILES)
def test_the_end_of_the_service_ends_what_escaped(profile: str, world: World) -> None:
    mark = leftovers.new_mark()
    command = (sys.executable, "-I", "-S", "-c", ESCAPING, "1")
    with launched(options(world, profile), *command, cwd=world.own, environment=mark) as (process, lifeline):
        found = escaped(process, mark[leftovers.MARK])
        os.close(lifeline)
        assert all_end(found)


@pytest.mark.requirement("S2")
@pytest.mark.parametrize("profile", [NAMESPACES, BUBBLEWRAP])
@pytest.mark.parametrize("stops", [False, True])
def test_the_kernel_ends_what_escaped_with_a_killed_launcher(profile: str, stops: bool, world: World) -> None:
    mark = leftovers.new_mark()
    command = (sys.executable, "-I", "-S", "-c", ESCAPING, "1")
    with launched(options(world, profile), *command, cwd=world.own, environment=mark) as (process, _):
        found = escaped(process, mark[leftovers.MARK])
        if stops:
            process.send_signal(signal.SIGSTOP)
        process.kill()
        assert all_end(found)


@pytest.mark.requirement("S2")
def test_a_stopped_launcher_does_not_keep_what_escaped_alive(world: World) -> None:
    mark = leftovers.new_mark()
    command = (sys.executable, "-I", "-S", "-c", ESCAPING, "1")
    with launched(options(world, NAMESPACES), *command, cwd=world.own, environment=mark) as (process, lifeline):
        found = escaped(process, mark[leftovers.MARK])
        process.send_signal(signal.SIGSTOP)
        os.close(lifeline)
        assert all_end(found)
        process.send_signal(signal.SIGCONT)


@pytest.mark.requirement("S2")
@pytest.mark.parametrize("profile", [LANDLOCK, BUBBLEWRAP])
def test_leftovers_of_a_launcher_that_was_killed_are_found_by_their_mark(profile: str, world: World) -> None:
    mark = leftovers.new_mark()
    command = (sys.executable, "-I", "-S", "-c", ESCAPING, "1")
    with launched(options(world, profile), *command, cwd=world.own, environment=mark) as (process, _):
        found = escaped(process, mark[leftovers.MARK])
        process.kill()
        process.wait(PATIENCE_S)
        leftovers.end_marked(mark)
        assert all_end(found)


@pytest.mark.requirement("S2")
def test_the_next_start_ends_what_a_service_that_is_gone_has_left(world: World) -> None:
    script = """
import subprocess
from infrastructure.confinement.leftovers import new_mark
null = subprocess.DEVNULL
left = subprocess.Popen(["/bin/sleep", "600"], env=new_mark(), start_new_session=True, stdout=null, stderr=null)
print(left.pid, flush=True)
input()
"""
    service = [sys.executable, "-c", script]
    with subprocess.Popen(service, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=world.root) as gone:
        assert gone.stdout is not None
        # A service that starts elsewhere on this machine may end it as soon as its own is gone.
        left = os.pidfd_open(int(gone.stdout.readline()))
        gone.communicate(b"\n", timeout=PATIENCE_S)
    assert gone.returncode == 0
    ours = subprocess.Popen(["/bin/sleep", "3600"], env=leftovers.new_mark())
    try:
        leftovers.end_leftovers()
        assert all_end([left])
        assert ours.poll() is None
    finally:
        ours.kill()
        ours.wait()


BOMBS = {
    "processes": "import os, time\nwhile True:\n    if os.fork() == 0:\n        time.sleep(600)\n        os._exit(0)",
    "memory": "held = []\nwhile True: held.append(b'x' * 1_000_000)",
    "memory in many processes": "import os, time\nfor _ in range(8):\n    if os.fork() == 0: break\nheld = b'x' * 60_000_000\ntime.sleep(600)",
}


@pytest.mark.requirement("S1")
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_ends_and_takes_all_that_it_started_with_it(profile: str, bomb: str, world: World) -> None:
    mark = leftovers.new_mark()
    limits = ("--group", "processes=64", "--group", "memory=300000000", "--rlimit", "core=0")
    command = (sys.executable, "-I", "-S", "-c", BOMBS[bomb])
    with launched((*options(world, profile), *limits), *command, cwd=world.own, environment=mark) as (process, _):
        _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode != 0
    assert b"and was ended" in err or b"Resource temporarily unavailable" in err, err
    assert not [
        pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if mark[leftovers.MARK] in _environment(pid)
    ]


@pytest.mark.requirement("S1")
@pytest.mark.parametrize("profile", PROFILES)
def test_a_file_grows_to_its_limit_only(profile: str, world: World) -> None:
    script = "import os\nwith open('big', 'wb') as file:\n    while True: file.write(b'x' * 65536)"
    limits = ("--rlimit", "fsize=1000000", "--rlimit", "core=0")
    command = (sys.executable, "-I", "-S", "-c", script)
    with launched((*options(world, profile), *limits), *command, cwd=world.own) as (process, _):
        process.communicate(timeout=PATIENCE_S)
    assert process.returncode != 0
    assert (world.own / "big").stat().st_size <= 1_000_000
