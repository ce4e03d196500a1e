"""The hostile MCP servers of the tests, each with what an organization does that uses one."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum

from tests.e2e.servers import flooding_server, heavy_server
from tests.e2e.service import ISOLATED_PYTHON, ROOT, SERVERS, Json
from tests.integration.confinement.test_ends import BOMBS, ESCAPING
from tests.integration.confinement.world import HOSTILE_PROGRAM

ODD = str(ROOT / "tests" / "integration" / "mcp" / "servers" / "odd_server.py")
LIMITS = "core=0,nofile=4096,data=1073741824,fsize=104857600,memory=300000000,processes=64"
"""Of started servers: a bomb reaches them soon, and leaves the machine its memory."""
_BUSY = "import os\nfor _ in range(16):\n    if os.fork() == 0: break\nwhile True: pass"
_FILLS = "while True:\n    with open('big', 'wb') as file:\n        for _ in range(90): file.write(b'x' * 1_000_000)"


class Act(StrEnum):
    """What the organization does again and again."""

    CALL = "call"
    CONNECT = "connect"
    REFRESH = "refresh"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostileServer:
    """`command` starts it, or serves it if it is `remote` (`http` or `sse`) and prints its port.
    `tool` is called with `arguments`."""

    name: str
    command: tuple[str, ...]
    act: Act = Act.CALL
    tool: str = ""
    arguments: Mapping[str, object] = field(default_factory=dict)
    remote: str | None = None

    @contextmanager
    def settings(self) -> Iterator[Json]:
        """How it is registered, while it can be reached."""
        if self.remote is None:
            yield {"kind": "custom", "command": self.command[0], "args": list(self.command[1:])}
            return
        with subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT) as process:
            try:
                assert process.stdout is not None
                yield {"kind": self.remote, "url": f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"}
            finally:
                process.kill()


def hostile_servers(world: Json | None) -> tuple[HostileServer, ...]:
    """All of them. `world` names what a hostile program is after; None leaves out those that need
    confinement."""
    return (*_floods(), *_heavy(), *_odd(), *_large(), *(_confined(world) if world is not None else ()))


def _floods() -> Iterator[HostileServer]:
    program = str(SERVERS / "flooding_server.py")
    for transport in ("stdio", "http", "sse"):
        python = ISOLATED_PYTHON if transport == "stdio" else (sys.executable,)
        remote = None if transport == "stdio" else transport
        for kind in flooding_server.KINDS:
            command = (*python, program, kind, transport)
            yield HostileServer(name=f"flood of {kind}, {transport}", command=command, tool="flood", remote=remote)


def _heavy() -> Iterator[HostileServer]:
    for kind in heavy_server.KINDS:
        command = (*ISOLATED_PYTHON, str(SERVERS / "heavy_server.py"), kind)
        yield HostileServer(name=f"2 MB of {kind}", command=command, tool="go")


def _odd() -> Iterator[HostileServer]:
    python = (*ISOLATED_PYTHON, ODD)
    for act, option, name in (
        (Act.CONNECT, "--rubbish", "rubbish before the protocol"),
        (Act.CONNECT, "--flood", "4 MB of error output"),
        (Act.CONNECT, "--silent", "no answer at all"),
        (Act.REFRESH, "--many", "10,000 tools"),
        (Act.REFRESH, "--renewed", "10,000 tools, other ones each time"),
        (Act.REFRESH, "--hostile-schemas", "hostile schemas"),
    ):
        yield HostileServer(name=name, command=(*python, option), act=act)
    for tool, name in (
        ("exit", "ends in each call"),
        ("hang", "hangs in each call"),
        ("change", "new tools each call"),
    ):
        yield HostileServer(name=name, command=python, tool=tool)
    too_large = {"size": 6 * 1024 * 1024, "id_last": True}
    yield HostileServer(name="reply over the limit, stdio", command=python, tool="big", arguments=too_large)


def _large() -> Iterator[HostileServer]:
    for way, remote in (("json", "http"), ("events", "http"), ("legacy", "sse")):
        command = (sys.executable, "-m", "chaos.large_replies", way)
        arguments = {"megabytes": 100}
        yield HostileServer(
            name=f"reply of 100 MB, {way}", command=command, tool="size", arguments=arguments, remote=remote
        )


def _confined(world: Json) -> Iterator[HostileServer]:
    python = (sys.executable, "-I", "-S", "-c")
    for name, script in BOMBS.items():
        yield HostileServer(name=f"bomb: {name}", command=(*python, script), act=Act.CONNECT)
    for name, script in (("busy processes", _BUSY), ("files without end", _FILLS)):
        yield HostileServer(name=name, command=(*python, script), act=Act.CONNECT)
    yield HostileServer(name="escaping processes", command=(*python, ESCAPING, "1"), act=Act.CONNECT)
    attempts = (*HOSTILE_PROGRAM, json.dumps(world), "serve")
    yield HostileServer(name="attempts at everything else", command=attempts, act=Act.CONNECT)


def world_of(service: int, victim: int, home: str, own: str) -> Json:
    """What a hostile program of `own` is told: the processes of the service and of another server,
    and paths."""
    return {
        "home": home,
        "own": own,
        "other": f"{own}/../other",
        "user_home": os.path.expanduser("~"),
        "temporary": f"{home}/../shared",
        "socket": f"{home}/../none",
        "abstract": "none",
        "service": service,
        "victim": victim,
        "launcher": 0,
        "port": 1,
        "attempts": [],
    }
