"""Programs that are started in a thread, while the event loop goes on."""

import asyncio
import fcntl
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

from infrastructure.mcp.transports.spawn import Spawned, spawned

pytestmark = pytest.mark.requirement("S3")


async def ended(process: Spawned) -> int:
    while (code := process.poll()) is None:  # noqa: ASYNC110 (another process)
        await asyncio.sleep(0)
    return code


async def test_a_program_that_is_not_loaded_yet_does_not_hold_the_event_loop(tmp_path: Path) -> None:
    program = tmp_path / "program"
    shutil.copy("/bin/true", program)
    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGIO, asked.set)
    try:
        with program.open("rb") as file:
            # Executing the file waits until the lease is given up; its holder, this process, gets a
            # signal (fcntl(2)).
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            starting = asyncio.ensure_future(spawned([str(program)], environment={}, cwd=None, handed=()))
            await asked.wait()
            for _ in range(100):
                await asyncio.sleep(0)
            assert not starting.done()
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        process = await starting
        assert await ended(process) == 0
        process.abandon()
    finally:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGIO)


async def test_a_start_that_is_cancelled_leaves_no_process(tmp_path: Path) -> None:
    program = tmp_path / "program"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    with program.open("rb") as file:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        asked = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGIO, asked.set)
        starting = asyncio.ensure_future(spawned([str(program), "600"], environment={}, cwd=None, handed=()))
        await asked.wait()
        starting.cancel()
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    with pytest.raises(asyncio.CancelledError):
        await starting
    asyncio.get_running_loop().remove_signal_handler(signal.SIGIO)
    assert str(program) not in [program_of(pid) for pid in os.listdir("/proc") if pid.isdigit()]


async def test_a_start_that_is_cancelled_and_fails_is_cancelled(tmp_path: Path) -> None:
    starting = asyncio.ensure_future(spawned([str(tmp_path / "none")], environment={}, cwd=None, handed=()))
    await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError) as cancelled:
        await starting
    assert isinstance(cancelled.value.__cause__, FileNotFoundError)


def program_of(pid: str) -> str:
    """Empty for a process of others, and one that is gone."""
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


async def test_a_program_has_its_pipes_its_variables_its_directory_and_what_it_is_handed(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\n"
        "handed = int(sys.argv[1])\n"
        "assert os.getsid(0) == os.getpid()\n"
        "assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()\n"
        "sys.stderr.write('to the log')\n"
        "print(os.getcwd(), os.environ['NAME'], sys.stdin.read(), os.read(handed, 10))\n"
        "sys.exit(3)\n"
    )
    reading, writing = os.pipe()
    command = (sys.executable, "-I", "-S", "-c", script, str(reading))
    process = await spawned(command, environment={"NAME": "välue\n"}, cwd=tmp_path, handed=(reading,))
    os.write(writing, b"handed")
    process.stdin.write(b"said")
    process.stdin.close()
    assert await ended(process) == 3
    assert process.stdout.read() == f"{tmp_path} välue\n said b'handed'\n".encode()
    assert process.stderr.read() == b"to the log"
    process.abandon()
    for descriptor in (reading, writing):
        os.close(descriptor)


@pytest.mark.parametrize("cwd", [None, Path("/nowhere")])
async def test_what_cannot_be_started_is_an_error_and_leaves_no_descriptor(cwd: Path | None) -> None:
    command = "/nowhere/program" if cwd is None else "/bin/true"
    await asyncio.to_thread(os.getpid)
    before = os.listdir("/proc/self/fd")
    with pytest.raises(FileNotFoundError):
        await spawned([command], environment={}, cwd=cwd, handed=())
    assert os.listdir("/proc/self/fd") == before
