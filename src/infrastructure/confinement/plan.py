"""What one started process may use, applied by the launcher to the process before its program runs.

Standard library only. Above: the launcher. Who decides: `sandbox.py`, in the service.
"""

import os
from collections.abc import Mapping

from infrastructure.confinement import kernel, landlock, namespaces, seccomp, system_paths
from infrastructure.confinement.memory_files import memory_file

LANDLOCK, NAMESPACES, BUBBLEWRAP = "landlock", "namespaces", "bubblewrap"


class Plan:
    """- `profile`: `landlock`; `namespaces` (landlock, with its own process ids and /proc);
    `bubblewrap`.
    - `readable` and `writable` are paths besides the system's.
    - `ports` are the TCP ports to connect to: None for all, empty for no network at all.
    - `proxy` is a socket by which the service gets the listening socket of the only network that
      the process has (`own_network`); None for the machine's network.
    - `fixed_modes`: modes and owners of files cannot be changed by path, which Landlock does not
      restrict; in namespaces everything else is read-only.
    """

    def __init__(self) -> None:
        self.profile = LANDLOCK
        self.readable: list[str] = []
        self.writable: list[str] = []
        self.ports: tuple[int, ...] | None = None
        self.proxy: int | None = None
        self.fixed_modes = False
        self.bubblewrap = "bwrap"

    def set(self, option: str, value: str) -> bool:
        """Take an option of the launcher; False for an unknown one. Raises ValueError."""
        if option == "--profile" and value in (LANDLOCK, NAMESPACES, BUBBLEWRAP):
            self.profile = value
        elif option == "--read":
            self.readable.append(value)
        elif option == "--write":
            self.writable.append(value)
        elif option == "--ports":
            self.ports = tuple(int(port) for port in value.split(",") if port)
        elif option == "--proxy":
            self.proxy = int(value)
        elif option == "--modes" and value == "fixed":
            self.fixed_modes = True
        elif option == "--bubblewrap":
            self.bubblewrap = value
        else:
            return False
        return True

    def confine(
        self, command: list[str], environment: Mapping[str, str] | None, *, unreachable: tuple[int, ...]
    ) -> tuple[list[str], Mapping[str, str] | None]:
        """Confine this process for good; returns the command to execute, and its environment, None
        for ours: bubblewrap, which runs before it confines, has ours. `unreachable` are processes
        that it must not signal. Raises OSError if anything cannot be applied."""
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        version = landlock.abi()
        is_wrapped = self.profile == BUBBLEWRAP
        if not is_wrapped and version < landlock.TRUNCATE_SINCE:
            raise OSError("this kernel's Landlock does not keep files from being truncated")
        if self.ports and version < landlock.PORTS_SINCE:
            raise OSError("this kernel's Landlock does not restrict ports")
        if self.proxy is not None and self.profile == LANDLOCK:
            raise OSError("a profile without namespaces has no separate network")
        if self.proxy is not None and is_wrapped:
            namespaces.enter_network(self.proxy)
        rules = landlock.Ruleset(version=version, paths=not is_wrapped, ports=self.ports)
        if not is_wrapped:
            self._allow_paths(rules)
        rules.apply()
        filtered = seccomp.program(
            # Abstract sockets of the machine are in its network.
            unix_sockets=is_wrapped
            and (self.ports == () or self.proxy is not None or version >= landlock.SCOPES_SINCE),
            modes=not self.fixed_modes,
            network=self.ports is None or bool(self.ports),
            # Other processes are out of reach by namespace, or by Landlock where it has scopes.
            unreachable=() if self.profile != LANDLOCK or version >= landlock.SCOPES_SINCE else unreachable,
        )
        if not filtered:
            raise OSError("no seccomp filter for this architecture")
        if is_wrapped:
            return self._wrapped(command, environment, filtered), None
        kernel.give_up_capabilities()
        seccomp.install(filtered)
        return command, environment

    def _allow_paths(self, rules: landlock.Ruleset) -> None:
        own_proc = self.profile == NAMESPACES
        for path in (*system_paths.READABLE, *(("/proc",) if own_proc else system_paths.PROC_FILES), *self.readable):
            rules.allow_reading(path)
        for path in (*system_paths.DEVICES, *((system_paths.SHARED_MEMORY,) if own_proc else ()), *self.writable):
            rules.allow_writing(path)

    def _wrapped(self, command: list[str], environment: Mapping[str, str] | None, filtered: bytes) -> list[str]:
        """The command in bubblewrap, which has an empty file system but for what is named."""
        filter_fd = memory_file(filtered)
        os.set_inheritable(filter_fd, True)
        arguments = [self.bubblewrap, "--die-with-parent", "--seccomp", str(filter_fd), "--cap-drop", "ALL"]
        if environment is not None:
            arguments += ["--args", str(_variables(environment))]
        arguments += ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
        if self.ports == ():
            arguments.append("--unshare-net")
        arguments += ["--proc", "/proc", "--dev", "/dev"]
        for path in (system_paths.SHARED_MEMORY, system_paths.TEMPORARY):
            arguments += ["--size", str(system_paths.IN_MEMORY_BYTES), "--tmpfs", path]
        for path in _outermost((*system_paths.READABLE, *self.readable)):
            arguments += ["--ro-bind-try", path, path]
        for path in self.writable:
            arguments += ["--bind-try", path, path]
        # Directories on the way to these are of a file system in memory. /proc has parameters that
        # root may set.
        return [*arguments, "--remount-ro", "/", "--remount-ro", "/proc", "--", *command]


def _outermost(paths: tuple[str, ...]) -> list[str]:
    """Without those below others: where a directory is bound, its links are there too."""
    return [path for path in paths if not any(path.startswith(f"{other}/") for other in paths)]


def _variables(environment: Mapping[str, str]) -> int:
    """The descriptor of further arguments for bubblewrap: other users of the machine can read those
    of its command."""
    parts = ["--clearenv", *(part for variable in environment.items() for part in ("--setenv", *variable))]
    fd = memory_file(b"".join(os.fsencode(part) + b"\0" for part in parts))
    os.set_inheritable(fd, True)
    return fd
