"""A server's variables act on the server alone: what starts it, outside of its confinement, never
has them."""

import asyncio
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from infrastructure.confinement import leftovers
from infrastructure.mcp.transports.stdio_process import ServerProcess, StdioCommand
from tests.completeness import beyond
from tests.integration.confinement.world import PATIENCE_S, PROFILES, World, a_world, held_here

pytestmark = pytest.mark.requirement("S1")


async def output(command: StdioCommand, *, on_started: Callable[[], None] = lambda: None) -> str:
    """What the program writes until its end."""
    ended = asyncio.Event()
    process = await ServerProcess.start(
        command, environment={"PATH": os.environ["PATH"]}, kill_grace_s=0.5, on_exit=ended.set
    )
    on_started()
    stdin, stdout, stderr = process.pipes
    with stdin, stdout, stderr:
        try:
            async with asyncio.timeout(PATIENCE_S):
                found = await asyncio.to_thread(stdout.read)
                await ended.wait()
        finally:
            await process.stop(close_grace_s=0, kill_grace_s=0.5)
        assert process.exit_status == 0, stderr.read()
    return found.decode()


async def confined(world: World, profile: str, script: str, **env: str) -> StdioCommand:
    if not held_here(profile):
        pytest.skip(beyond(f"this machine does not hold the profile {profile}"))
    options = await asyncio.to_thread(world.options, profile)
    return StdioCommand(command="sh", args=("-c", script), env=env, cwd=world.own, confinement=options)


@pytest.mark.parametrize("profile", PROFILES)
async def test_variables_of_the_dynamic_linker_do_not_act_before_confinement(profile: str, tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        outside = tmp_path / "outside"
        outside.mkdir()
        # The linker of each program that has these variables writes a file there, if it can.
        variables = {"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(outside / "written")}
        script = "cat /proc/$PPID/environ 2>/dev/null; echo has $LD_DEBUG"
        found = await output(await confined(world, profile, script, **variables))
    assert "has files\n" in found
    assert "LD_DEBUG=" not in found
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("profile", PROFILES)
async def test_values_of_a_servers_variables_are_in_no_arguments(profile: str, tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        script = 'echo "$TOKEN"; exec cat'
        command = await confined(world, profile, script, TOKEN="a-value-that-nobody-sees=1\nsecond line")
        process = await ServerProcess.start(
            command, environment={"PATH": os.environ["PATH"]}, kill_grace_s=0.5, on_exit=lambda: None
        )
        stdin, stdout, stderr = process.pipes
        with stdin, stdout, stderr:
            try:
                assert await asyncio.to_thread(stdout.readline) == b"a-value-that-nobody-sees=1\n"
                assert not [pid for pid in filter(str.isdigit, os.listdir("/proc")) if b"nobody-sees" in arguments(pid)]
            finally:
                await process.stop(close_grace_s=0, kill_grace_s=0.5)


def arguments(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_server_cannot_replace_the_mark_by_which_it_is_ended(profile: str, tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        command = await confined(world, profile, f'echo "${leftovers.MARK}"', **{leftovers.MARK: "none"})
        assert (await output(command)).startswith(f"{os.getpid()}:")


@pytest.mark.parametrize("value", ["²:1:1", "9" * 5000 + ":1:1", "-1:1:1", ":", ""])
def test_a_mark_that_is_not_ours_does_not_stop_the_service_from_starting(value: str) -> None:
    process = subprocess.Popen(["/bin/sleep", "600"], env={leftovers.MARK: value})
    try:
        leftovers.end_leftovers()
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
