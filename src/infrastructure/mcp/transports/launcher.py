"""Runs one stdio MCP server, and leaves no process behind when Dragoman, the server or its children
end.

A program by itself (`LAUNCHER`), with the standard library only, and without slow imports such as
typing or argparse, which would double its startup time. Above: ``stdio_process.py``. Below: the
server.

    LAUNCHER --lifeline FD [--environment FD] [--grace SECONDS] [--rlimit NAME=VALUE]... [--group
    NAME=VALUE]...
        [--cgroup DIRECTORY] [--profile NAME [--read PATH]... [--write PATH]... [--ports N,...]
        [--proxy FD]] -- COMMAND [ARGUMENT]...

- The server inherits stdin, stdout and stderr: the launcher is not in the data path.
- The server's environment is read from a descriptor, and is that of the server alone; without the
  option it is the launcher's. The launcher runs before confinement, and variables can name code.
- It ends every descendant (SIGTERM, after the grace SIGKILL) when the server exits, when the
  lifeline pipe closes (also by Dragoman's death), on SIGTERM, SIGINT or SIGHUP, or at once when
  they together exceed a limit of the group.
- With a control group, the server is started in one below it, which the kernel bounds and ends.
- With a profile, the server is confined (`infrastructure.confinement.plan`), or not started. With
  namespaces, a process of ours is the first one in them: the kernel ends all others with it.
- Exit code: the server's, 128 + N for signal N, 127 for an unknown command, 126 for one that cannot
  run, 2 for wrong usage. Linux only.
"""

import os
import resource
import select
import signal
import sys
import time
from collections.abc import Mapping

from infrastructure.confinement import landlock, namespaces, own_network
from infrastructure.confinement.control_group import OPTION, ControlGroup
from infrastructure.confinement.kernel import PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_SET_PDEATHSIG, prctl
from infrastructure.confinement.memory_files import close_inherited, read_environment
from infrastructure.confinement.plan import BUBBLEWRAP, NAMESPACES, Plan
from infrastructure.confinement.priority import LoweredSessions, lower
from infrastructure.confinement.process_group import GroupLimits, Process, below, children, descendants, send

LAUNCHER = (
    sys.executable,
    *("-I", "-S", "-c"),
    "import sys; sys.path.insert(0, sys.argv.pop(1));"
    " from infrastructure.mcp.transports import launcher; sys.exit(launcher.main(sys.argv[1:]))",
    __file__.removesuffix("/infrastructure/mcp/transports/launcher.py"),
)
"""The command that runs this module, without site-packages."""

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
EXIT_USAGE, EXIT_CANNOT_RUN, EXIT_NOT_FOUND = 2, 126, 127
FIRST_KILL_PAUSE_S, LAST_KILL_PAUSE_S = 0.02, 1.0
GROUP_CHECK_S = 0.5


Limits = dict[str, int]


class UsageError(Exception):
    """Invalid arguments of the launcher."""


class Options:
    def __init__(self, arguments: list[str]) -> None:
        self.lifeline = -1
        self.grace_s = 2.0
        self.limits: Limits = {}
        self.group = GroupLimits()
        self.plan: Plan | None = None
        self.control_group: ControlGroup | None = None
        self.group_path: str | None = None
        self.environment: Mapping[str, str] | None = None
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
            elif option == "--environment":
                self.environment = read_environment(int(value))
            elif option == "--grace":
                self.grace_s = float(value)
            elif option in ("--rlimit", "--group"):
                self._set_limit(*value.partition("=")[::2], of_group=option == "--group")
            elif option == OPTION:
                self.group_path = value
            else:
                self.plan = self.plan or Plan()
                if not self.plan.set(option, value):
                    raise UsageError(f"unknown option {option!r}")
        except ValueError as exc:
            raise UsageError(f"{option}: {value!r} is not a number") from exc

    def _set_limit(self, name: str, number: str, *, of_group: bool) -> None:
        if of_group:
            is_known = self.group.set(name, int(number))
        else:
            is_known = hasattr(resource, f"RLIMIT_{name.upper()}")
            self.limits[name] = int(number)
        if not is_known:
            raise UsageError(f"there is no limit named {name!r}")


class Launcher:
    """Starts the server, waits for an end condition, ends every descendant."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._child = 0
        self._child_status: int | None = None
        self._lifeline_open = True
        self._sessions = LoweredSessions()
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
        grace_s = self._options.grace_s
        while self._reap() and self._child_status is None:
            stop_asked = self._wait(GROUP_CHECK_S if self._options.group else None)
            if stop_asked or not self._lifeline_open:
                break
            if self._options.group and (excess := self._check_group()) is not None:
                complain(f"the server used {excess} and was ended")
                self._child_status, grace_s = signal.SIGKILL, 0.0
        self._end_descendants(grace_s)
        status = self._child_status or 0
        return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)

    def _check_group(self) -> str | None:
        """What the server and its descendants have too much of; their new sessions are lowered."""
        found = below(os.getpid())
        if self._options.plan is not None:
            self._sessions.lower(found)
        return self._options.group.excess(found)

    def _start_server(self) -> None:
        os.set_inheritable(self._options.lifeline, False)
        # A signal between fork and exec would reach Python's handler in the child, and be lost.
        signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
        launcher, service = os.getpid(), os.getppid()
        self._child = os.fork()
        if self._child == 0:
            _become_server(self._options, launcher, service)
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

    def _end_descendants(self, grace_s: float) -> None:
        """SIGTERM each descendant once; SIGKILL the rest after the grace, or after a further stop
        signal."""
        profile = None if self._options.plan is None else self._options.plan.profile
        asked: set[Process] = set()
        kill_at = time.monotonic() + grace_s
        kill_pause_s = FIRST_KILL_PAUSE_S
        while self._reap():
            remaining_s = kill_at - time.monotonic()
            processes = descendants(os.getpid())
            if remaining_s <= 0 and profile == NAMESPACES:
                return  # the end of the first process of a namespace ends all others
            if remaining_s > 0:
                if profile == BUBBLEWRAP:
                    asked |= self._of_bubblewrap(processes)
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

    def _of_bubblewrap(self, processes: set[Process]) -> set[Process]:
        """The two processes of bubblewrap itself, which end with the server. SIGTERM would end
        them, and all at once with them."""
        own = {self._child, *children(self._child)}
        return {process for process in processes if process[0] in own}


def _no_action(_number: int, _frame: object) -> None:
    """The wake-up pipe delivers the signal, but requires a handler."""


def _become_server(options: Options, launcher: int, service: int) -> None:
    """In the forked child, never returning: execute the server, or write one line to stderr and
    exit with 126 or 127."""
    code = EXIT_CANNOT_RUN
    command, environment = options.command, options.environment
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
        _bound(options)
        if options.plan is not None:
            command, environment = options.plan.confine(command, environment, unreachable=(launcher, service))
        if environment is None:
            os.execvp(command[0], command)  # noqa: S606 (no shell is the point)
        os.execvpe(command[0], command, environment)  # noqa: S606
    except (FileNotFoundError, NotADirectoryError) as exc:
        code = EXIT_NOT_FOUND
        complain(f"cannot run {command[0]!r}: {exc.strerror}")
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else exc
        complain(f"cannot run {command[0]!r}: {reason}")
    finally:
        os._exit(code)


def _bound(options: Options) -> None:
    """Resource limits. The number of processes is counted by the kernel where it counts those of
    the server alone."""
    if options.control_group is not None:
        options.control_group.enter()
    for name, value in options.limits.items():
        set_limit(getattr(resource, f"RLIMIT_{name.upper()}"), value)
    if options.plan is None:
        return
    if options.plan.profile == NAMESPACES and options.group.processes:
        set_limit(resource.RLIMIT_NPROC, options.group.processes)
    lower()


def set_limit(limit: int, value: int) -> None:
    """Set both bounds of a resource limit; a tighter limit stays."""
    _, hard = resource.getrlimit(limit)
    bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(limit, (bound, bound))


def complain(message: str) -> None:
    """Write one line to stderr, for the server's log; a closed stderr is ignored."""
    try:
        os.write(2, f"dragoman launcher: {message}\n".encode(errors="replace"))
    except OSError:
        return


def run(options: Options) -> int:
    """Run the server to its end, in a control group if there is one."""
    if options.group_path is None:
        return _run(options)
    limits = options.group
    group = options.control_group = ControlGroup(options.group_path, memory=limits.memory, processes=limits.processes)
    try:
        return _run(options)
    finally:
        if excess := group.excess():
            complain(f"the server used {excess} and was ended")
        group.end()


def _run(options: Options) -> int:
    """Run the server in this process; with namespaces, in the first process in them."""
    if options.plan is None or options.plan.profile != NAMESPACES:
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        return Launcher(options).run()
    namespaces.enter(proxy=options.plan.proxy)
    first = os.fork()
    if first:
        return _stand_by(first)
    code = EXIT_CANNOT_RUN
    try:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        namespaces.mount_own(options.plan.writable)
        code = Launcher(options).run()
    except OSError as exc:
        complain(str(exc))
    finally:
        os._exit(code)


def _stand_by(first: int) -> int:
    """Outside of the namespaces: pass stop signals on, and return the exit code."""
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(null, standard)
    for number in STOP_SIGNALS:
        signal.signal(number, lambda number, _: os.kill(first, number))
    code = os.waitstatus_to_exitcode(os.waitpid(first, 0)[1])
    return code if code >= 0 else 128 - code


def main(arguments: list[str]) -> int:
    if arguments == ["--probe"]:
        found = landlock.abi(), namespaces.hold(), namespaces.hold_network()
        sys.stdout.write(" ".join(map(str, map(int, found))) + "\n")
        return 0
    if arguments[:1] in (["--try"], ["--try-network"]):
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        if arguments[0] == "--try-network":
            namespaces.enter_network(own_network.link()[1])
        os.execv(arguments[1], arguments[1:])  # noqa: S606 (no shell is the point)
    try:
        options = Options(arguments)
        os.fstat(options.lifeline)
        close_inherited(except_for=(options.lifeline, None if options.plan is None else options.plan.proxy))
        if os.getsid(0) != os.getpid():
            os.setsid()
        return run(options)
    except (UsageError, OSError) as exc:
        complain(str(exc))
        return EXIT_USAGE
