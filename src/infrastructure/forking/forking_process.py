"""A process that forks a child for each job, so that libraries are loaded once and each job can be
killed. Linux only.

Above, in the service: `fork_server.py`. FD, an argument of the process, is a stream socket. The
process sends one byte when it is ready. Then each received byte carries the descriptor of a job's
socket. A child does one job and ends; it is killed when the other end of its socket is closed. When
the other end of FD is closed, also by the service's death, all processes end.
"""

import contextlib
import gc
import os
import resource
import select
import signal
import socket
from collections.abc import Callable

from infrastructure.confinement import landlock, seccomp
from infrastructure.confinement.kernel import PR_SET_NO_NEW_PRIVS, PR_SET_PDEATHSIG, prctl
from infrastructure.forking.wire import READY

POLLRDHUP = 0x2000
"""The other end was closed. The module `select` has no name for it."""


def run_forking(descriptor: int, load: Callable[[], None], serve: Callable[[socket.socket], None]) -> None:
    """Run until the service ends. `load` imports what children need, because they can open no
    files."""
    bound(resource.RLIMIT_CORE, 0)
    prefer_as_victim()
    # Output of libraries is discarded.
    null = os.open(os.devnull, os.O_RDWR)
    control = socket.socket(fileno=descriptor)
    load()
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    control.sendall(READY)
    gc.collect()
    gc.freeze()
    ForkingProcess(control, serve).run()


class ForkingProcess:
    """Forks a child for each job, and kills children of abandoned jobs. `serve` does a job in the
    child."""

    def __init__(self, control: socket.socket, serve: Callable[[socket.socket], None]) -> None:
        self._control = control
        self._serve = serve
        self._jobs: dict[int, tuple[int, socket.socket]] = {}
        """Process id and our copy of the socket, by descriptor of that copy."""
        self._wakeup, wakeup_write = os.pipe()
        os.set_blocking(wakeup_write, False)
        os.set_blocking(self._wakeup, False)
        signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _no_action)
        self._poll = select.poll()
        self._poll.register(self._wakeup, select.POLLIN)
        self._poll.register(control.fileno(), select.POLLIN)

    def run(self) -> None:
        """Run until the service closes its end."""
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor == self._wakeup:
                    os.read(self._wakeup, 4096)
                elif descriptor == self._control.fileno():
                    if not self._take():
                        self._end_all()
                        return
                elif descriptor in self._jobs:
                    self._end(descriptor)
            self._reap()

    def _take(self) -> bool:
        """Start the child of one job; False when no more will come."""
        data, descriptors, _, _ = socket.recv_fds(self._control, 1, 1)
        if not data:
            return False
        for descriptor in descriptors:
            job = socket.socket(fileno=descriptor)
            parent = os.getpid()
            pid = os.fork()
            if pid == 0:
                self._become_child(job, parent)
            self._jobs[descriptor] = (pid, job)
            self._poll.register(descriptor, POLLRDHUP)
        return True

    def _become_child(self, job: socket.socket, parent: int) -> None:
        """Run in the child; never returns."""
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() == parent:
                self._control.close()
                for _, other in self._jobs.values():
                    other.close()
                self._serve(job)
        finally:
            os._exit(0)

    def _end(self, descriptor: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._jobs[descriptor][0], signal.SIGKILL)
        self._poll.unregister(descriptor)

    def _reap(self) -> None:
        """Close our copies of the sockets of ended children, so that the service sees the end
        too."""
        while self._jobs:
            pid, _ = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            for descriptor, (child, job) in list(self._jobs.items()):
                if child == pid:
                    del self._jobs[descriptor]
                    with contextlib.suppress(KeyError):
                        self._poll.unregister(descriptor)
                    job.close()

    def _end_all(self) -> None:
        for pid, _ in self._jobs.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid, _ in self._jobs.values():
            os.waitpid(pid, 0)


def confine(*, max_memory_bytes: int, cpu_s: int) -> None:
    """Give up what a job does not need. Open descriptors stay usable; no new one can be opened.
    Landlock and the filter of system calls come on top, where the kernel has them."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    bound(resource.RLIMIT_AS, address_space() + max_memory_bytes)
    bound(resource.RLIMIT_CPU, cpu_s)
    bound(resource.RLIMIT_FSIZE, 0)
    bound(resource.RLIMIT_NPROC, 0)
    if version := landlock.abi():
        landlock.Ruleset(version=version, paths=True, ports=()).apply()
    if filtered := seccomp.program(unix_sockets=False, network=False, modes=False):
        seccomp.install(filtered)
    bound(resource.RLIMIT_NOFILE, 0)


def bound(limit: int, value: int) -> None:
    """Set both bounds of a limit; a tighter one stays."""
    _, hard = resource.getrlimit(limit)
    allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(limit, (allowed, allowed))


def address_space() -> int:
    """Bytes of address space in use. Mappings of the libraries are not charged to a job."""
    with open("/proc/self/statm", "rb") as statm:
        return int(statm.read().split()[0]) * resource.getpagesize()


def prefer_as_victim() -> None:
    """When memory runs out, the kernel ends these processes before the service."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
        score.write("800")


def _no_action(_number: int, _frame: object) -> None:
    """Only a handler must exist: the signal arrives through the wake-up pipe."""
