"""A HOME with keys, another server, sockets and a confined process among them, for tests of
confinement."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from domain.mcp.network import ServerNetwork
from infrastructure.confinement.grants import Grants, of_runtime, runtime_of
from infrastructure.confinement.plan import BUBBLEWRAP, LANDLOCK, NAMESPACES
from infrastructure.confinement.sandbox import Machine, Sandbox, SandboxMode, probe_machine
from infrastructure.mcp.transports.launcher import LAUNCHER

PROFILES = (LANDLOCK, NAMESPACES, BUBBLEWRAP)
MACHINE = probe_machine(LAUNCHER, search_path=os.environ["PATH"])
PROGRAMS = Path(__file__).parent
HOSTILE_PROGRAM = (
    sys.executable,
    *("-I", "-S", "-c"),
    """
import sys, types
for name in ("tests", "tests.integration", "tests.integration.confinement"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [sys.argv[1]]
from tests.integration.confinement import hostile_program
hostile_program.main(sys.argv[2:])
""",
    str(PROGRAMS),
)
"""The command that runs hostile_program.py where only its directory can be read."""
PATIENCE_S = 120.0


def held_here(profile: str) -> bool:
    """Whether this machine has what the profile needs."""
    return (
        bool(MACHINE.bubblewrap)
        if profile == BUBBLEWRAP
        else bool(MACHINE.landlock) and (profile == LANDLOCK or MACHINE.namespaces)
    )


def machine_of(profile: str) -> Machine:
    """This machine, with no more than the profile needs."""
    return Machine(
        landlock=MACHINE.landlock,
        namespaces=profile == NAMESPACES,
        bubblewrap=MACHINE.bubblewrap if profile == BUBBLEWRAP else None,
        networks=MACHINE.networks and profile != LANDLOCK,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """`own` is the directory of the confined process."""

    root: Path
    victim: int
    port: int
    abstract: str

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def own(self) -> Path:
        return self.home / "servers" / ".data" / "org_a" / "srv_a"

    @property
    def other(self) -> Path:
        return self.home / "servers" / ".data" / "org_b" / "srv_b"

    @property
    def user_home(self) -> Path:
        return self.root / "user"

    def options(
        self, profile: str, *, ports: tuple[int, ...] | None = None, network: ServerNetwork = ServerNetwork.FULL
    ) -> tuple[str, ...]:
        """The launcher's options as the service has them for a server in this world."""
        sandbox = Sandbox(
            mode=SandboxMode.AUTO,
            private=(self.home, self.home / "dragoman.db"),
            granted=Grants(),
            ports=ports,
            user_home=self.user_home,
            probe=lambda: machine_of(profile),
        )
        runtime = (*of_runtime(Path(sys.prefix)), *of_runtime(Path(sys.base_prefix)))
        programs = (*runtime_of(sys.executable, os.defpath), PROGRAMS)
        grants = Grants(readable=(*runtime, *programs), writable=(self.own,))
        return asyncio.run(sandbox.options(grants, network=network))

    def described(self, *attempts: str) -> str:
        """What a hostile program is told of this world."""
        paths = {"home": self.home, "own": self.own, "other": self.other, "user_home": self.user_home}
        return json.dumps(
            {name: str(path) for name, path in paths.items()}
            | {"temporary": str(self.root / "shared"), "socket": str(self.root / "socket"), "abstract": self.abstract}
            | {"service": os.getpid(), "victim": self.victim, "launcher": 0, "port": self.port, "attempts": attempts}
        )


@contextmanager
def a_world(root: Path) -> Iterator[World]:
    with ExitStack() as stack:
        abstract = f"dragoman-test-{os.getpid()}-{root.name}"
        for address in (str(root / "socket"), "\0" + abstract):
            listening = stack.enter_context(socket.socket(socket.AF_UNIX))
            listening.bind(address)
            listening.listen()
        port = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        victim = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", "input()"],
            stdin=subprocess.PIPE,
            env={"API_KEY": "of another organization"},
            start_new_session=True,
        )
        stack.callback(_end, victim)
        world = World(root=root, victim=victim.pid, port=port.getsockname()[1], abstract=abstract)
        for directory in (world.own, world.other, world.user_home / ".ssh", root / "shared"):
            directory.mkdir(parents=True)
        (root / "shared").rmdir()
        for name in ("admin.key", "secret.key", "dragoman.db"):
            (world.home / name).write_text("private")
        (world.home / "program").write_text("#!/bin/sh\n")
        (world.home / "program").chmod(0o700)
        (world.other / "data.json").write_text("private")
        (world.user_home / ".ssh" / "id_ed25519").write_text("private")
        yield world
        assert victim.poll() is None, "another server was ended"


def _end(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):
        process.kill()
    process.communicate()


@contextmanager
def launched(
    options: Sequence[str], *command: str, cwd: Path, environment: Mapping[str, str] | None = None
) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    """A launcher with its command, and the writing end of its lifeline, which is closed at the
    end."""
    end, lifeline = os.pipe()
    process = subprocess.Popen(
        [*LAUNCHER, "--lifeline", str(end), "--grace", "0.5", *options, "--", *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=(end,),
        cwd=cwd,
        env={"PATH": os.environ["PATH"], **(environment or {})},
    )
    os.close(end)
    with process:
        try:
            yield process, lifeline
        finally:
            with suppress(OSError):
                os.close(lifeline)
            process.wait(PATIENCE_S)
