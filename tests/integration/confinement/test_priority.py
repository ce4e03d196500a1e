"""Confined servers get less processor time than the service, whatever sessions they begin."""

import os
import sys
from pathlib import Path

import pytest

from infrastructure.confinement import leftovers
from infrastructure.confinement.priority import NICENESS, OOM_SCORE
from tests.completeness import beyond
from tests.e2e.processes import until
from tests.integration.confinement.world import PROFILES, a_world, held_here, launched

pytestmark = pytest.mark.requirement("S3")

SESSIONS = """
import os, time
for _ in range(3):
    if os.fork() == 0: os.setsid(); break
os.write(1, b"out\\n")
time.sleep(600)
"""
"""A server with three children, each in a session that it began."""
_HIGHEST_NICENESS = 19


def of(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


@pytest.mark.parametrize("profile", PROFILES)
def test_sessions_of_a_confined_server_have_a_lower_priority(profile: str, tmp_path: Path) -> None:
    if not held_here(profile):
        pytest.skip(beyond(f"this machine does not hold the profile {profile}"))
    if not os.path.exists("/proc/self/autogroup"):
        pytest.skip(beyond("this kernel does not group processes by session"))
    marked = leftovers.new_mark()
    mark = marked[leftovers.MARK]
    command = (sys.executable, "-I", "-S", "-c", SESSIONS)
    with a_world(tmp_path) as world:
        options = ("--group", "processes=64", *world.options(profile))
        with launched(options, *command, cwd=world.own, environment=marked) as (launcher, _):
            assert launcher.stdout is not None
            assert [launcher.stdout.readline() for _ in range(4)] == [b"out\n"] * 4
            carrying = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if mark in of(pid, "environ")]
            servers = [pid for pid in carrying if SESSIONS in (said := of(pid, "cmdline")) and "--lifeline" not in said]
            servers = [pid for pid in servers if "bwrap" not in of(pid, "comm")]
            assert len(servers) == 4
            lowered = min(os.getpriority(os.PRIO_PROCESS, 0) + NICENESS, _HIGHEST_NICENESS)
            assert {os.getpriority(os.PRIO_PROCESS, pid) for pid in servers} == {lowered}
            assert {of(pid, "oom_score_adj").strip() for pid in servers} == {OOM_SCORE}
            until(lambda: all(of(pid, "autogroup").endswith(f"nice {NICENESS}\n") for pid in servers), what="sessions")
