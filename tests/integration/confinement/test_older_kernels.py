"""What an older kernel or a special bubblewrap lacks is not promised, and is refused by other means
where there are any."""

import json
import sys
from pathlib import Path

import pytest

from infrastructure.confinement.grants import Grants
from infrastructure.confinement.plan import BUBBLEWRAP, LANDLOCK, NAMESPACES
from infrastructure.confinement.sandbox import Machine, Sandbox, SandboxMode, probe_machine
from infrastructure.mcp.transports.launcher import LAUNCHER
from tests.completeness import beyond
from tests.integration.confinement.world import HOSTILE_PROGRAM, PATIENCE_S, a_world, held_here, launched

pytestmark = pytest.mark.requirement("S1")


def profile_on(
    machine: Machine, *, ports: tuple[int, ...] | None = None, mode: SandboxMode = SandboxMode.AUTO
) -> str | None:
    sandbox = Sandbox(
        mode=mode,
        private=(Path("/nowhere/home"),),
        granted=Grants(),
        ports=ports,
        user_home=None,
        probe=lambda: machine,
    )
    return sandbox.report().profile


@pytest.mark.parametrize("mode", [SandboxMode.AUTO, SandboxMode.LANDLOCK])
@pytest.mark.parametrize(
    ("abi", "namespaces", "profile"), [(1, False, None), (2, True, None), (3, False, LANDLOCK), (3, True, NAMESPACES)]
)
def test_a_landlock_that_lets_files_be_truncated_holds_nothing(
    abi: int, namespaces: bool, profile: str | None, mode: SandboxMode
) -> None:
    machine = Machine(landlock=abi, namespaces=namespaces, bubblewrap=None)
    assert profile_on(machine, mode=mode) == profile


@pytest.mark.parametrize("bubblewrap", [None, "/usr/bin/bwrap"])
def test_ports_that_the_kernel_cannot_restrict_are_not_ignored(bubblewrap: str | None) -> None:
    machine = Machine(landlock=3, namespaces=True, bubblewrap=bubblewrap)
    held = BUBBLEWRAP if bubblewrap else NAMESPACES
    assert profile_on(machine, ports=(443,)) is None
    assert profile_on(machine, ports=()) == held
    assert profile_on(machine, ports=None) == held


def test_a_bubblewrap_that_needs_rights_of_its_file_is_not_used(tmp_path: Path) -> None:
    special = tmp_path / "bwrap"
    special.write_text("#!/bin/sh\nexec grep -q '^NoNewPrivs:.0' /proc/self/status\n")
    special.chmod(0o700)
    assert probe_machine(LAUNCHER, search_path=str(tmp_path)).bubblewrap is None


CONFINED_WITHOUT_SCOPES = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from infrastructure.confinement import landlock, plan
landlock.abi = lambda: 5
confined, options = plan.Plan(), json.loads(sys.argv[2])
for option, value in zip(options[::2], options[1::2]):
    assert confined.set(option, value)
command, environment = confined.confine(sys.argv[3:], {"PATH": os.defpath}, unreachable=())
assert environment is None
os.execv(command[0], command)
"""


def test_bubblewrap_reaches_no_abstract_socket_where_landlock_does_not_keep_it_from_them(tmp_path: Path) -> None:
    if not held_here(BUBBLEWRAP):
        pytest.skip(beyond("this machine does not hold the profile bubblewrap"))
    attempt = "connect_to_an_abstract_socket"
    with a_world(tmp_path) as world:
        source, options = str(Path(__file__).parents[3] / "src"), json.dumps(world.options(BUBBLEWRAP))
        confined = (sys.executable, "-I", "-S", "-c", CONFINED_WITHOUT_SCOPES, source, options)
        command = (*confined, *HOSTILE_PROGRAM, world.described(attempt))
        with launched((), *command, cwd=world.own) as (process, _):
            out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err.decode()
    assert json.loads(out)[attempt].startswith("denied")


@pytest.mark.parametrize("profile", [NAMESPACES, BUBBLEWRAP])
def test_file_systems_in_memory_are_bounded(profile: str, tmp_path: Path) -> None:
    if not held_here(profile):
        pytest.skip(beyond(f"this machine does not hold the profile {profile}"))
    script = """from os import W_OK, access, statvfs
for path in ("/dev/shm", "/tmp"):
    found = statvfs(path)
    if access(path, W_OK): print(path, found.f_blocks * found.f_frsize)
"""
    with (
        a_world(tmp_path) as world,
        launched(world.options(profile), sys.executable, "-I", "-S", "-c", script, cwd=world.own) as (process, _),
    ):
        out, err = process.communicate(timeout=PATIENCE_S)
    sizes = dict(line.split() for line in out.decode().splitlines())
    assert "/dev/shm" in sizes, err.decode()
    assert all(int(size) <= 512 * 1024**2 for size in sizes.values()), sizes
