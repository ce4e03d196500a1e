"""The launcher of stdio servers, with real processes: whatever ends first, nothing is left
behind."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from infrastructure.confinement.process_group import descendants
from infrastructure.mcp.transports import launcher
from tests.e2e.processes import until

SERVERS = Path(__file__).with_name("servers")
FAMILY = (sys.executable, "-I", "-S", str(SERVERS / "family.py"))
EVERY_KIND = ("ordinary", "own_session", "daemon", "ignoring", "stopped")
POLITE = ("daemon", "own_session", "stopped")
"""SIGTERM is enough for these."""
ENDED, KILLED = 128 + signal.SIGTERM, 128 + signal.SIGKILL
DEADLINE_S = 60.0


def wait_until_gone(pid: int) -> None:
    """Waits for the end of any process, ours or not."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    ended = poll.poll(DEADLINE_S * 1000)
    os.close(pidfd)
    assert ended, f"process {pid} is still there"


@dataclass
class Launched:
    process: subprocess.Popen[bytes]
    lifeline: int

    def close_lifeline(self) -> None:
        if self.lifeline >= 0:
            os.close(self.lifeline)
            self.lifeline = -1

    def family(self) -> list[int]:
        """The ids a family.py wrote: itself first."""
        assert self.process.stdout is not None
        pids: list[int] = json.loads(self.process.stdout.readline())
        return pids

    def output(self) -> tuple[str, str]:
        out, err = self.process.communicate(timeout=DEADLINE_S)
        return out.decode(), err.decode()


@contextmanager
def launch(*command: str, options: tuple[str, ...] = ("--grace", "0.3")) -> Iterator[Launched]:
    end, lifeline = os.pipe()
    process = subprocess.Popen(
        [*launcher.LAUNCHER, "--lifeline", str(end), *options, "--", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=(end,),
    )
    os.close(end)
    launched = Launched(process, lifeline)
    with process:
        try:
            yield launched
        finally:
            launched.close_lifeline()
            process.wait(DEADLINE_S)


@pytest.mark.requirement("B3")
@pytest.mark.parametrize(
    ("kinds", "grace", "codes"),
    # A launcher that is held up for the grace kills even those that would have gone.
    [(EVERY_KIND, "0.3", (KILLED, ENDED)), (POLITE, "3600", (ENDED,))],
    ids=["every kind", "polite"],
)
def test_closing_the_lifeline_ends_every_descendant(kinds: tuple[str, ...], grace: str, codes: tuple[int, ...]) -> None:
    with launch(*FAMILY, *kinds, options=("--grace", grace)) as launched:
        pids = launched.family()
        assert len(pids) == 1 + len(kinds)

        launched.close_lifeline()

        assert launched.process.wait(DEADLINE_S) in codes
        for pid in pids:
            assert not Path(f"/proc/{pid}").exists()


@pytest.mark.requirement("B3")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_stop_signal_to_the_launcher_ends_every_descendant(number: signal.Signals) -> None:
    # SIGTERM is enough for these, a stopped one included: nothing waits for the end of the grace.
    with launch(*FAMILY, *POLITE, options=("--grace", "3600")) as launched:
        pids = launched.family()

        launched.process.send_signal(number)

        launched.process.wait(DEADLINE_S)
        for pid in pids:
            assert not Path(f"/proc/{pid}").exists()


@pytest.mark.requirement("B3")
def test_a_second_stop_signal_cuts_the_grace_short() -> None:
    with launch(*FAMILY, "ignoring", options=("--grace", "3600")) as launched:
        server, ignoring = launched.family()
        launched.process.terminate()
        wait_until_gone(server)

        launched.process.terminate()

        launched.process.wait(DEADLINE_S)
        assert not Path(f"/proc/{ignoring}").exists()


@pytest.mark.requirement("B3")
def test_what_a_server_leaves_behind_ends_with_it_and_its_exit_code_is_kept() -> None:
    with launch(*FAMILY, *EVERY_KIND, "leave") as launched:
        pids = launched.family()

        assert launched.process.wait(DEADLINE_S) == 5
        for pid in pids:
            assert not Path(f"/proc/{pid}").exists()


@pytest.mark.requirement("B3")
def test_a_killed_launcher_takes_the_server_with_it() -> None:
    with launch(*FAMILY) as launched:
        [server] = launched.family()

        launched.process.kill()

        wait_until_gone(server)


@pytest.mark.requirement("B3")
def test_orphans_a_healthy_server_leaves_do_not_stay_as_zombies() -> None:
    # cat keeps running while the subshell's orphan comes and goes; the launcher is whom it is
    # handed to.
    with launch("sh", "-c", "(sh -c 'echo $$' & ) ; exec cat") as launched:
        assert launched.process.stdout is not None
        orphan = int(launched.process.stdout.readline())

        wait_until_gone(orphan)
        until(lambda: not Path(f"/proc/{orphan}").exists(), what="the launcher to reap it")
        assert launched.process.poll() is None


@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", 0), ("exit 3", 3), ("kill -SEGV $$", 139), ("kill -9 $$", 137)]
)
def test_the_exit_code_is_the_servers(script: str, code: int) -> None:
    with launch("sh", "-c", script) as launched:
        assert launched.process.wait(DEADLINE_S) == code


@pytest.mark.requirement("B3")
def test_a_server_that_signals_its_own_group_does_not_take_the_launcher_with_it() -> None:
    with launch("sh", "-c", "kill -9 0") as launched:
        assert launched.process.wait(DEADLINE_S) == 128 + signal.SIGKILL


def test_a_missing_command_is_one_clear_line_and_127() -> None:
    with launch("no-such-command-here", "arg") as launched:
        out, err = launched.output()

    assert launched.process.returncode == 127
    assert out == ""
    assert err == "dragoman launcher: cannot run 'no-such-command-here': No such file or directory\n"


def test_a_file_that_is_no_program_is_one_clear_line_and_126(tmp_path: Path) -> None:
    plain = tmp_path / "plain.txt"
    plain.write_text("not a program")
    with launch(str(plain)) as launched:
        _, err = launched.output()

    assert launched.process.returncode == 126
    assert err == f"dragoman launcher: cannot run '{plain}': Permission denied\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "no command after --"),
        (("--lifeline", "0", "--"), "no command after --"),
        (("--", "true"), "--lifeline is missing"),
        (("--lifeline", "x", "--", "true"), "--lifeline: 'x' is not a number"),
        (("--rlimit", "cheese=1", "--", "true"), "there is no limit named 'cheese'"),
        (("--colour", "red", "--", "true"), "unknown option '--colour'"),
        (("--lifeline",), "--lifeline needs a value"),
    ],
)
def test_wrong_usage_is_one_clear_line_and_2(arguments: tuple[str, ...], complaint: str) -> None:
    done = subprocess.run(
        [*launcher.LAUNCHER, *arguments],
        capture_output=True,
        timeout=DEADLINE_S,
        check=False,
    )

    assert (done.returncode, done.stderr.decode()) == (2, f"dragoman launcher: {complaint}\n")


def test_limits_hold_for_the_server() -> None:
    options = ("--rlimit", "nofile=77", "--rlimit", "core=0")
    with launch("sh", "-c", "ulimit -n; ulimit -Hn; ulimit -c", options=options) as launched:
        assert launched.output()[0].split() == ["77", "77", "0"]


def test_the_server_gets_its_streams_and_nothing_else() -> None:
    script = "cat; echo to stderr >&2; ls /proc/self/fd; grep SigIgn /proc/self/status; grep SigBlk /proc/self/status"
    with launch("sh", "-c", script) as launched:
        out, err = launched.process.communicate(b"through stdin\n", timeout=DEADLINE_S)

    # 3 is the directory that ls itself reads; neither the lifeline nor the launcher's wake-up pipe
    # is there.
    *streams, _, ignored, _, blocked = out.decode().split()
    assert streams == ["through", "stdin", "0", "1", "2", "3"]
    # Signals 32 and 33 belong to the C library: no program can set them, and some hosts hand them
    # on as ignored.
    assert (int(ignored, 16) & ~(0b11 << 31), int(blocked, 16)) == (0, 0)
    assert err == b"to stderr\n"


@pytest.mark.requirement("B3")
def test_ten_servers_end_when_the_process_group_of_their_host_is_killed() -> None:
    host = subprocess.Popen([sys.executable, str(SERVERS / "host.py")], stdout=subprocess.PIPE, process_group=0)
    with host:
        try:
            assert host.stdout is not None
            servers = set(json.loads(host.stdout.readline()))
            below = {pid for pid, _ in descendants(host.pid)}
            assert len(servers) == 10
            assert servers < below
        finally:
            os.killpg(host.pid, signal.SIGKILL)

        for pid in below:
            wait_until_gone(pid)
