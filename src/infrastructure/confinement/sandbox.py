"""Decides how started processes are confined on this machine, and what each may use. Above:
transports and installers of MCP servers, the doctor. Below: the launcher, which applies it."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from domain.mcp.network import ServerNetwork
from infrastructure.confinement.control_group import OPTION
from infrastructure.confinement.grants import Grants, Protected
from infrastructure.confinement.landlock import PORTS_SINCE, TRUNCATE_SINCE
from infrastructure.confinement.plan import BUBBLEWRAP, LANDLOCK, NAMESPACES
from infrastructure.confinement.system_paths import READABLE

_PROBE_TIMEOUT_S = 20.0


class SandboxMode(StrEnum):
    """How started processes are confined. The values are those of `DRAGOMAN_MCP_SANDBOX`."""

    AUTO = "auto"
    LANDLOCK = "landlock"
    BUBBLEWRAP = "bubblewrap"
    CONTAINER = "container"
    OFF = "off"


class CannotConfineError(Exception):
    """This machine lacks what the mode requires. The message is safe to show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What this machine has: the version of Landlock (0 for none), namespaces for our user, a
    bubblewrap that works, and a network of a process alone."""

    landlock: int
    namespaces: bool
    bubblewrap: str | None
    networks: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """How processes are confined: a profile of the launcher, `container` for none that is started,
    or None. `words` describe it for operators."""

    profile: str | None
    words: str


class Sandbox:
    """- `private` are paths that nothing confined may reach: HOME, the database.
    - `granted` are paths that the operator opens for all.
    - `ports` are the TCP ports that may be connected to; None for all, empty for no network.
    - `group` is the control group in which each process gets one; None where there is none.
    """

    def __init__(
        self,
        *,
        mode: SandboxMode,
        private: tuple[Path, ...],
        granted: Grants,
        ports: tuple[int, ...] | None,
        user_home: Path | None,
        probe: Callable[[], Machine],
        group: Callable[[], Path | None] = lambda: None,
    ) -> None:
        self._mode = mode
        self._group = group
        self._private = private
        self._granted = granted
        self._ports = ports
        self._probe = probe
        self._machine: Machine | None = None
        self._probing = asyncio.Lock()
        self.protected = Protected(private, user_home=user_home)

    @property
    def writable(self) -> tuple[Path, ...]:
        """What every confined process may write."""
        return self._granted.writable

    @property
    def is_off(self) -> bool:
        return self._mode is SandboxMode.OFF

    def report(self) -> Held:
        """How processes are confined here. Blocks for the trial, unless it is done."""
        if self._machine is None and not self.is_off:
            self._machine = self._probe()
        return self.held(self._machine or Machine(landlock=0, namespaces=False, bubblewrap=None))

    @property
    def ports(self) -> tuple[int, ...] | None:
        """The TCP ports that may be connected to; None for all."""
        return self._ports

    async def describe(self) -> str:
        """How processes are confined here, in words."""
        async with self._probing:
            held = await asyncio.to_thread(self.report)
        bounded = "" if held.profile is None or self._group() is None else ", with a control group for each process"
        return held.words + bounded

    async def options(
        self, grants: Grants, *, changes_modes: bool = False, network: ServerNetwork = ServerNetwork.FULL
    ) -> tuple[str, ...]:
        """The launcher's options for a process; empty if the mode is off. `changes_modes`: whether
        it must be able to change modes of files by path, which Landlock does not restrict. For an
        allowlist, the caller adds the option `--proxy`. Raises CannotConfineError."""
        if self.is_off:
            return _unconfined(network)
        async with self._probing:
            held = await asyncio.to_thread(self.report)
        if held.profile is None or held.profile == SandboxMode.CONTAINER or self._machine is None:
            raise CannotConfineError(held.words)
        group = self._group()
        options = [] if group is None else [OPTION, str(group)]
        options += ["--profile", held.profile]
        if held.profile == BUBBLEWRAP and self._machine.bubblewrap is not None:
            options += ["--bubblewrap", self._machine.bubblewrap]
        if held.profile == LANDLOCK and not changes_modes:
            options += ["--modes", "fixed"]
        options += self._network_options(network, has_own=held.profile != LANDLOCK and self._machine.networks)
        for path in await asyncio.to_thread(self._harmless, (*self._granted.readable, *grants.readable)):
            options += ["--read", str(path)]
        for path in dict.fromkeys((*self._granted.writable, *grants.writable)):
            options += ["--write", str(path)]
        return tuple(options)

    def _network_options(self, network: ServerNetwork, *, has_own: bool) -> list[str]:
        """`has_own`: whether a process can have a network alone."""
        if network is ServerNetwork.ALLOWLIST:
            if not has_own:
                raise CannotConfineError(
                    "an allowlist of hosts needs namespaces of the network, which this machine does not let us have"
                )
            return []
        ports = () if network is ServerNetwork.NONE else self._ports
        return [] if ports is None else ["--ports", ",".join(map(str, ports))]

    def held(self, machine: Machine) -> Held:
        """How the mode is met on a machine."""
        if self.is_off:
            return Held(profile=None, words="started MCP servers are not confined (DRAGOMAN_MCP_SANDBOX=off)")
        if self._mode is SandboxMode.CONTAINER:
            words = "only servers of kind oci are started, in containers (DRAGOMAN_MCP_SANDBOX=container)"
            return Held(profile=SandboxMode.CONTAINER, words=words)
        exposed = self._exposed()
        if exposed is not None:
            return Held(
                profile=None, words=f"{exposed} is open to confined processes, and has HOME or the database in it"
            )
        if self._ports and machine.landlock < PORTS_SINCE:
            words = f"DRAGOMAN_MCP_PORTS names ports, for which Landlock's ABI {PORTS_SINCE} (Linux 6.7) is needed"
            return Held(profile=None, words=f"{words}: started MCP servers cannot be confined")
        if self._mode in (SandboxMode.AUTO, SandboxMode.BUBBLEWRAP) and machine.bubblewrap is not None:
            return Held(profile=BUBBLEWRAP, words=f"bubblewrap ({machine.bubblewrap}), seccomp and limits")
        if self._mode in (SandboxMode.AUTO, SandboxMode.LANDLOCK) and machine.landlock >= TRUNCATE_SINCE:
            if machine.namespaces:
                words = f"Landlock (ABI {machine.landlock}), namespaces of users and processes, seccomp and limits"
                return Held(profile=NAMESPACES, words=words)
            return Held(profile=LANDLOCK, words=f"Landlock (ABI {machine.landlock}), seccomp and limits")
        missing = {
            SandboxMode.LANDLOCK: f"the kernel has no Landlock of ABI {TRUNCATE_SINCE} (Linux 6.2)",
            SandboxMode.BUBBLEWRAP: "bubblewrap is missing, or may not create namespaces",
        }.get(
            self._mode,
            f"the kernel has no Landlock of ABI {TRUNCATE_SINCE} (Linux 6.2), and there is no bubblewrap that works",
        )
        return Held(profile=None, words=f"{missing}: started MCP servers cannot be confined")

    def _exposed(self) -> Path | None:
        """A directory with something private that every confined process would reach."""
        opened = (*map(Path, READABLE), *self._granted.readable, *self._granted.writable)
        harmless = set(self._harmless(opened))
        return next((path for path in opened if path not in harmless), None)

    def _harmless(self, paths: Iterable[Path]) -> list[Path]:
        """Those in which nothing private is, each once."""
        private = [path.resolve() for path in self._private]
        return [path for path in dict.fromkeys(paths) if not _is_above_any(path.resolve(), private)]


def _is_above_any(above: Path, paths: Iterable[Path]) -> bool:
    return any(path.is_relative_to(above) for path in paths)


def _unconfined(network: ServerNetwork) -> tuple[str, ...]:
    if network is not ServerNetwork.FULL:
        raise CannotConfineError(f"DRAGOMAN_MCP_SANDBOX=off holds no server to the network {network}")
    return ()


def probe_machine(launcher: tuple[str, ...], *, search_path: str) -> Machine:
    """Try what this machine has. Starts processes; takes some tens of milliseconds."""
    try:
        probed = subprocess.run(
            [*launcher, "--probe"], capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S, check=True, env={}
        )
        abi, namespaces, networks = map(int, probed.stdout.split())
    except (OSError, ValueError, subprocess.SubprocessError):
        abi = namespaces = networks = 0
    bubblewrap = shutil.which("bwrap", path=f"{search_path}{os.pathsep}{os.defpath}")
    if bubblewrap is not None and not _works(launcher, "--try", bubblewrap):
        bubblewrap = None
    if bubblewrap is not None and networks:
        networks = _works(launcher, "--try-network", bubblewrap)
    return Machine(landlock=abi, namespaces=bool(namespaces), bubblewrap=bubblewrap, networks=bool(networks))


def _works(launcher: tuple[str, ...], option: str, bubblewrap: str) -> bool:
    trial = (
        "--unshare-user",
        "--unshare-pid",
        "--ro-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--",
        "/bin/true",
    )
    try:
        # As the launcher starts it: one that needs the rights of its file's owner does not work
        # then.
        done = subprocess.run(
            [*launcher, option, bubblewrap, *trial],
            capture_output=True,
            timeout=_PROBE_TIMEOUT_S,
            check=False,
            env={},
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0
