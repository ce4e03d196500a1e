"""What a confined process attempts and must not be able to do, on each profile that this machine
holds."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from infrastructure.confinement.plan import LANDLOCK
from tests.completeness import beyond
from tests.integration.confinement.attempts_on_kernel import OF_KERNEL
from tests.integration.confinement.hostile_program import NAMES
from tests.integration.confinement.world import (
    HOSTILE_PROGRAM,
    PATIENCE_S,
    PROFILES,
    World,
    a_world,
    held_here,
    launched,
)

Outcomes = dict[str, str]
NEEDS_A_NAMESPACE = "connect_to_a_port_that_is_not_allowed"


def outcomes(world: World, options: tuple[str, ...], *attempts: str) -> Outcomes:
    command = (*HOSTILE_PROGRAM, world.described(*attempts))
    with launched(options, *command, cwd=world.own) as (process, _):
        out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err.decode()
    return cast("Outcomes", json.loads(out))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with a_world(tmp_path_factory.mktemp("world")) as world:
        yield world


@pytest.fixture(scope="module", params=PROFILES)
def attempted(request: pytest.FixtureRequest, world: World) -> Outcomes:
    """The outcomes of all attempts on a profile, with one TCP port allowed."""
    profile = cast("str", request.param)
    if not held_here(profile):
        pytest.skip(beyond(f"this machine does not hold the profile {profile}"))
    return outcomes(world, world.options(profile, ports=(443,)))


@pytest.mark.requirement("S1")
@pytest.mark.parametrize("attempt", NAMES)
def test_a_confined_process_cannot(attempt: str, attempted: Outcomes) -> None:
    assert attempted[attempt].startswith("denied"), attempted[attempt]
    if attempt in OF_KERNEL:
        assert "Errno 1]" in attempted[attempt] or "Errno 38]" in attempted[attempt], attempted[attempt]


@pytest.mark.requirement("S1")
def test_the_attempts_succeed_where_nothing_confines(world: World) -> None:
    harmless = ("read_the_first_key", "read_the_database", "list_home", "read_a_file_of_another_server")
    processes = ("read_environ_of_the_victim", "connect_to_a_socket_of_the_machine", "connect_to_an_abstract_socket")
    found = outcomes(world, (), *harmless, *processes, NEEDS_A_NAMESPACE)
    assert [name for name, outcome in found.items() if not outcome.startswith("succeeded")] == []


@pytest.mark.requirement("S1")
@pytest.mark.parametrize("profile", PROFILES)
def test_what_servers_need_is_there(profile: str, world: World) -> None:
    if not held_here(profile):
        pytest.skip(beyond(f"this machine does not hold the profile {profile}"))
    script = """
import json, os, socket, ssl, subprocess, sys, tempfile, threading, time, sqlite3
open("written", "w").write("x"); os.rename("written", "renamed"); os.mkdir("below"); os.unlink("renamed"); os.rmdir("below")
with tempfile.NamedTemporaryFile() as file: file.write(b"x")
sqlite3.connect("data.db").execute("create table if not exists t (x)")
left, right = socket.socketpair(); left.send(b"x"); assert right.recv(1) == b"x"
assert subprocess.run(["/bin/sh", "-c", "echo $((6 * 7))"], capture_output=True, text=True).stdout == "42\\n"
thread = threading.Thread(target=time.time); thread.start(); thread.join()
with socket.create_server(("127.0.0.1", 0)) as server: socket.create_connection(server.getsockname()).close()
socket.getaddrinfo("localhost", 80); ssl.create_default_context()
time.strftime("%Z"); os.urandom(8); os.cpu_count(); open("/dev/null", "w").write("x")
os.kill(os.getpid(), 0)
child = subprocess.Popen(["/bin/sleep", "60"]); child.terminate(); child.wait()
print("ok")
"""
    environment = {"HOME": str(world.own), "TMPDIR": str(world.own)}
    with launched(world.options(profile), sys.executable, "-c", script, cwd=world.own, environment=environment) as (
        process,
        _,
    ):
        out, err = process.communicate(timeout=PATIENCE_S)
    assert (out, process.returncode) == (b"ok\n", 0), err.decode()


@pytest.mark.requirement("S1")
def test_on_an_older_landlock_the_filter_keeps_signals_from_launcher_and_service(world: World) -> None:
    if not held_here(LANDLOCK):
        pytest.skip(beyond("this machine does not hold the profile landlock"))
    script = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parents[3] / "src")!r})
from infrastructure.confinement import kernel, seccomp
kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
seccomp.install(seccomp.program(unix_sockets=False, network=True, unreachable=({os.getpid()}, os.getppid())))
import signal
for target in ({os.getpid()}, os.getppid(), -1, -os.getppid()):
    for send in (os.kill, lambda pid, number: os.close(os.pidfd_open(pid))):
        try:
            send(target, 0)
        except PermissionError:
            continue
        except OSError:
            assert target < 0 and send is not os.kill
            continue
        raise SystemExit(f"signalled {{target}}")
os.kill(os.getpid(), 0)
"""
    with launched((), sys.executable, "-c", script, cwd=world.own) as (process, _):
        _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err.decode()
