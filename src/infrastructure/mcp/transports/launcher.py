"""Runs one stdio MCP server, and leaves no process behind when Dragoman, the server or its children
end.

A stand-alone script (``python -I -S launcher.py``), with the standard library only, and without
slow imports such as typing or argparse, which would double its startup time. Above:
``stdio_process.py``. Below: the server.

    launcher.py --lifeline FD [--grace SECONDS] [--rlimit NAME=VALUE]... -- COMMAND [ARGUMENT]...

- The server inherits stdin, stdout and stderr: the launcher is not in the data path.
- It ends every descendant (SIGTERM, after the grace SIGKILL) when the server exits, when the
  lifeline pipe closes (also by Dragoman's death), or on SIGTERM, SIGINT or SIGHUP.
- Exit code: the server's, 128 + N for signal N, 127 for an unknown command, 126 for one that cannot
  run, 2 for wrong usage. Linux only.
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
"""Process id and start time, which identify a process even after the id is reused."""


class UsageError(Exception):
    """Invalid arguments of the launcher."""


class Options:
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
    """Starts the server, waits for an end condition, ends every descendant."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._child = 0
        self._child_status: int | None = None
        self._lifeline_open = True
        self._wakeup, wakeup_write = os.pipe()
        os.set_blocking(wakeup_write, False)
        os.set_blocking(self._wakeup, False)
        # Signals arrive as bytes on a pipe, so that one poll waits for them and the lifeline,
        # without handlers.
        signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
        for number in (*STOP_SIGNALS, signal.SIGCHLD):
            signal.signal(number, _no_action)
        self._poll = select.poll()
        self._poll.register(self._wakeup, select.POLLIN)
        self._poll.register(options.lifeline, select.POLLIN)

    def run(self) -> int:
        """Run the server to its end; returns the launcher's exit code."""
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
        # A signal between fork and exec would reach Python's handler in the child, and be lost.
        signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
        launcher = os.getpid()
        self._child = os.fork()
        if self._child == 0:
            _become_server(self._options.command, self._options.limits, launcher)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        # Without these copies, Dragoman sees the end of stdout, and the server its broken stdin, at
        # once.
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        os.close(null)

    def _wait(self, timeout_s: float | None) -> bool:
        """Wait for a signal, the end of the lifeline, or the timeout; returns whether a stop signal
        arrived."""
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
        """Collect ended children; returns whether any child is left. As a subreaper the launcher
        adopts every orphan below it, so no child left means no descendant left."""
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
        """SIGTERM each descendant once; SIGKILL the rest after the grace, or after a further stop
        signal."""
        asked: set[Process] = set()
        kill_at = time.monotonic() + self._options.grace_s
        kill_pause_s = FIRST_KILL_PAUSE_S
        while self._reap():
            remaining_s = kill_at - time.monotonic()
            processes = descendants(os.getpid())
            if remaining_s > 0:
                for process in processes - asked:
                    # A stopped process handles SIGTERM only after SIGCONT.
                    send(process, signal.SIGTERM)
                    send(process, signal.SIGCONT)
                asked |= processes
                if self._wait(remaining_s):
                    kill_at = time.monotonic()
                continue
            refused = [send(process, signal.SIGKILL) is False for process in processes]
            if refused and all(refused):
                complain(f"{len(refused)} processes cannot be ended by this user and keep running")
                return
            self._wait(kill_pause_s)
            kill_pause_s = min(kill_pause_s * 2, LAST_KILL_PAUSE_S)


def _no_action(_number: int, _frame: object) -> None:
    """The wake-up pipe delivers the signal, but requires a handler."""


def _become_server(command: list[str], limits: Limits, launcher: int) -> None:
    """In the forked child, never returning: execute the server, or write one line to stderr and
    exit with 126 or 127."""
    code = EXIT_CANNOT_RUN
    try:
        # Its own session: a server that signals its whole group ("kill 0" in shell scripts) must
        # not reach the launcher.
        os.setsid()
        # Ends the server with a killed launcher, and usually its children with the closed pipes.
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != launcher:
            return
        signal.set_wakeup_fd(-1)
        # Signals ignored by Python (SIGPIPE, SIGXFSZ) or by the starter of Dragoman (a shell's
        # background job) would stay ignored in the server.
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            if signal.getsignal(number) != signal.SIG_DFL:
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        # The service's umask protects its own files; files of the server are not the service's.
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
    """Set both bounds of a resource limit; a tighter limit stays."""
    _, hard = resource.getrlimit(limit)
    bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(limit, (bound, bound))


def descendants(root: int) -> set[Process]:
    """Every living process below root, by the parent ids in /proc, in any session or process group."""
    children: dict[int, list[Process]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as stat:
                # The command name, in parentheses, may hold any character: fields count from the
                # last parenthesis.
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
    """Send a signal: True if sent, None if the process is gone, False without permission."""
    try:
        os.kill(process[0], number)
    except ProcessLookupError:
        return None
    except PermissionError:
        return False
    return True


def prctl(option: int, value: int) -> None:
    """prctl(2), which the standard library lacks."""
    libc = ctypes.CDLL(None, use_errno=True)
    unused = ctypes.c_ulong(0)
    if libc.prctl(ctypes.c_int(option), ctypes.c_ulong(value), unused, unused, unused) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def complain(message: str) -> None:
    """Write one line to stderr, for the server's log; a closed stderr is ignored."""
    try:
        os.write(2, f"dragoman launcher: {message}\n".encode(errors="replace"))
    except OSError:
        return


def main(arguments: list[str]) -> int:
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
