"""Runs one stdio MCP server and leaves no process behind, however Dragoman, the server or its children end.

A stand-alone script (``python -I -S launcher.py``, standard library only, and of that no slow import such
as typing or argparse: they would double its start-up time): above it is ``stdio_process.py``, below it the server.

    launcher.py --lifeline FD [--grace SECONDS] [--rlimit NAME=VALUE]... -- COMMAND [ARGUMENT]...

The server inherits stdin, stdout and stderr, so the launcher is not in the data path. It ends every descendant (SIGTERM,
after the grace SIGKILL) when the server exits, when the other end of the lifeline pipe is closed (also by Dragoman's death),
or when it gets SIGTERM, SIGINT or SIGHUP. Exit code: the server's, 128 + N if signal N ended it, 127 if the command
does not exist, 126 if it cannot be run, 2 for wrong usage. Linux only.
"""

import ctypes
import os
import resource
import select
import signal
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
EXIT_USAGE, EXIT_CANNOT_RUN, EXIT_NOT_FOUND = 2, 126, 127
FIRST_KILL_PAUSE_S, LAST_KILL_PAUSE_S = 0.02, 1.0

Limits = dict[str, int]
Process = tuple[int, bytes]
"""Process id and start time: together they name one process, also after the id is used again."""


class UsageError(Exception):
    """The launcher's own arguments are wrong."""


class Options:
    """The launcher's command line."""

    def __init__(self, arguments: list[str]) -> None:
        self.lifeline = -1
        self.grace_s = 2.0
        self.limits: Limits = {}
        rest = list(arguments)
        while rest and rest[0] != "--":
            option = rest.pop(0)
            if not rest:
                raise UsageError(f"{option} needs a value")
            self._set(option, rest.pop(0))
        self.command = rest[1:]
        if not self.command:
            raise UsageError("no command after --")
        if self.lifeline < 0:
            raise UsageError("--lifeline is missing")

    def _set(self, option: str, value: str) -> None:
        try:
            if option == "--lifeline":
                self.lifeline = int(value)
            elif option == "--grace":
                self.grace_s = float(value)
            elif option == "--rlimit":
                name, _, number = value.partition("=")
                if not hasattr(resource, f"RLIMIT_{name.upper()}"):
                    raise UsageError(f"there is no limit named {name!r}")
                self.limits[name] = int(number)
            else:
                raise UsageError(f"unknown option {option!r}")
        except ValueError as exc:
            raise UsageError(f"{option}: {value!r} is not a number") from exc


class Launcher:
    """Starts the server, waits for a reason to end, ends every descendant."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._child = 0
        self._child_status: int | None = None
        self._lifeline_open = True
        self._wakeup, wakeup_write = os.pipe()
        os.set_blocking(wakeup_write, False)
        os.set_blocking(self._wakeup, False)
        # Signals arrive as bytes on a pipe, so that one poll waits for them and the lifeline, with no handler logic.
        signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
        for number in (*STOP_SIGNALS, signal.SIGCHLD):
            signal.signal(number, _no_action)
        self._poll = select.poll()
        self._poll.register(self._wakeup, select.POLLIN)
        self._poll.register(options.lifeline, select.POLLIN)

    def run(self) -> int:
        """Runs the server to its end and returns the exit code for the launcher."""
        self._start_server()
        while self._reap() and self._child_status is None:
            stop_asked = self._wait(None)
            if stop_asked or not self._lifeline_open:
                break
        self._end_descendants()
        status = self._child_status or 0
        return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)

    def _start_server(self) -> None:
        os.set_inheritable(self._options.lifeline, False)
        # A signal between fork and exec would be taken by Python's handler in the child, and lost to the server.
        signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
        launcher = os.getpid()
        self._child = os.fork()
        if self._child == 0:
            _become_server(self._options.command, self._options.limits, launcher)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        # Without our copies, Dragoman sees the end of stdout, and the server's broken stdin, when they happen.
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        os.close(null)

    def _wait(self, timeout_s: float | None) -> bool:
        """Waits for a signal, the end of the lifeline or the timeout; returns whether a stop signal arrived."""
        ready = self._poll.poll(None if timeout_s is None else max(0, int(timeout_s * 1000)))
        stop_asked = False
        for fd, _ in ready:
            if fd == self._wakeup:
                arrived = os.read(self._wakeup, 4096)
                stop_asked = any(number in arrived for number in STOP_SIGNALS)
            elif not os.read(fd, 4096):
                self._lifeline_open = False
                self._poll.unregister(fd)
        return stop_asked

    def _reap(self) -> bool:
        """Collects ended children, adopted ones too; returns whether any child is left.

        As a subreaper the launcher adopts every orphan below it, so no child left means no descendant left.
        """
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._child:
                self._child_status = status

    def _end_descendants(self) -> None:
        """SIGTERM to each descendant once; SIGKILL to what is left after the grace, or after a further stop signal."""
        asked: set[Process] = set()
        kill_at = time.monotonic() + self._options.grace_s
        kill_pause_s = FIRST_KILL_PAUSE_S
        while self._reap():
            remaining_s = kill_at - time.monotonic()
            processes = descendants(os.getpid())
            if remaining_s > 0:
                for process in processes - asked:
                    # A stopped process acts on SIGTERM only once it is continued.
                    send(process, signal.SIGTERM)
                    send(process, signal.SIGCONT)
                asked |= processes
                if self._wait(remaining_s):
                    kill_at = time.monotonic()
                continue
            refused = [send(process, signal.SIGKILL) is False for process in processes]
            if refused and all(refused):
                complain(f"{len(refused)} processes may not be ended by this user and are left running")
                return
            self._wait(kill_pause_s)
            kill_pause_s = min(kill_pause_s * 2, LAST_KILL_PAUSE_S)


def _no_action(_number: int, _frame: object) -> None:
    """The wake-up pipe carries the signal; a handler must only exist."""


def _become_server(command: list[str], limits: Limits, launcher: int) -> None:
    """In the forked child, never returning: turns into the server, or writes one line to stderr and exits 126 or 127."""
    code = EXIT_CANNOT_RUN
    try:
        # Its own group: a server that signals its whole group ("kill 0" in shell scripts) must not hit the launcher.
        os.setsid()
        # If the launcher itself is killed the server goes with it, and its own children usually with the closed pipes.
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != launcher:
            return
        signal.set_wakeup_fd(-1)
        # Python ignores SIGPIPE and SIGXFSZ, and ignored signals would stay ignored in the server.
        # What whoever started Dragoman ignores (a shell does so for what it starts in the background) is no server's choice.
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            if signal.getsignal(number) != signal.SIG_DFL:
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        # The service keeps its own files to itself; what a server makes for people is not the service's.
        os.umask(0o022)
        for name, value in limits.items():
            set_limit(getattr(resource, f"RLIMIT_{name.upper()}"), value)
        os.execvp(command[0], command)  # noqa: S606 (no shell is the point)
    except (FileNotFoundError, NotADirectoryError) as exc:
        code = EXIT_NOT_FOUND
        complain(f"cannot run {command[0]!r}: {exc.strerror}")
    except (OSError, ValueError) as exc:
        complain(f"cannot run {command[0]!r}: {exc.strerror if isinstance(exc, OSError) else exc}")
    finally:
        os._exit(code)


def set_limit(limit: int, value: int) -> None:
    """Sets both bounds of a resource limit; a limit already tighter stays as it is."""
    _, hard = resource.getrlimit(limit)
    bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(limit, (bound, bound))


def descendants(root: int) -> set[Process]:
    """Every living process below root, by the parent ids in /proc; sessions and process groups do not matter."""
    children: dict[int, list[Process]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as stat:
                # The command name, in parentheses, may hold any character: fields count from the last parenthesis.
                fields = stat.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields and fields[0] not in (b"Z", b"X"):
            children.setdefault(int(fields[1]), []).append((int(name), fields[19]))
    found: set[Process] = set()
    parents = [root]
    while parents:
        below = children.get(parents.pop(), [])
        found.update(below)
        parents.extend(pid for pid, _ in below)
    return found


def send(process: Process, number: int) -> bool | None:
    """Sends a signal: True if sent, None if the process is gone, False if this user may not."""
    try:
        os.kill(process[0], number)
    except ProcessLookupError:
        return None
    except PermissionError:
        return False
    return True


def prctl(option: int, value: int) -> None:
    """prctl(2), which the standard library does not offer."""
    libc = ctypes.CDLL(None, use_errno=True)
    unused = ctypes.c_ulong(0)
    if libc.prctl(ctypes.c_int(option), ctypes.c_ulong(value), unused, unused, unused) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def complain(message: str) -> None:
    """One line on stderr, which Dragoman shows in the server's log; nobody may be reading it any more."""
    try:
        os.write(2, f"dragoman launcher: {message}\n".encode(errors="replace"))
    except OSError:
        return


def main(arguments: list[str]) -> int:
    """Runs the launcher and returns its exit code."""
    try:
        options = Options(arguments)
        os.fstat(options.lifeline)
        os.listdir("/proc/self")
        if os.getsid(0) != os.getpid():
            os.setsid()
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        launcher = Launcher(options)
    except (UsageError, OSError) as exc:
        complain(str(exc))
        return EXIT_USAGE
    return launcher.run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
