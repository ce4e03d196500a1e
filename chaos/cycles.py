"""Connect, call, kill, over and over, against real servers in their own processes; and what that
leaves behind."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from application.mcp.ports import McpFailure
from domain.ids import McpServerId
from domain.mcp.server import Isolation, McpServer
from infrastructure.mcp.connections.pool import SdkMcpConnections
from tests.builders import ORG, numbered
from tests.integration.mcp.parts import (
    IN_RUN,
    ISOLATED_PYTHON,
    SERVERS,
    a_call,
    descendants,
    free_port,
    odd_server,
    remote,
    sdk_connections,
    text_of,
    until,
)

WARM_UP = 10
AT_ONCE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What this process holds. `types` counts the live objects of each of Dragoman's own types,
    `memory_kib` is resident memory."""

    processes: int
    descriptors: int
    tasks: int
    types: Counter[str]
    memory_kib: int

    @property
    def objects(self) -> int:
        return self.types.total()

    @staticmethod
    def now() -> "Resources":
        """Measured, after a garbage collection."""
        gc.collect()
        fields = Path("/proc/self/statm").read_text().split()
        return Resources(
            processes=len(descendants()),
            descriptors=len(os.listdir("/proc/self/fd")),
            tasks=len(asyncio.all_tasks()),
            types=Counter(
                type(one).__qualname__
                for one in gc.get_objects()
                if str(type(one).__module__).partition(".")[0] in OWN_PACKAGES
            ),
            memory_kib=int(fields[1]) * os.sysconf("SC_PAGE_SIZE") // 1024,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`cycles` cycles in `seconds`, with what was held after the first ten and after the last."""

    name: str
    cycles: int
    seconds: float
    before: Resources
    after: Resources

    @property
    def leaks(self) -> list[str]:
        """What there is more of than before, apart from memory, with the types of the objects."""
        return _growth(self.before, self.after)


COUNTED = ("processes", "descriptors", "tasks", "objects")
OWN_PACKAGES = frozenset({"domain", "application", "infrastructure"})
Cycle = Callable[[SdkMcpConnections, int], Awaitable[None]]


async def over_stdio(cycles: int) -> Outcome:
    """Each with its own started server, four at a time."""
    return await _repeated("stdio", _stdio_cycle, cycles, at_once=AT_ONCE)


async def over_http(cycles: int) -> Outcome:
    """All with one server, which is killed and started again on its port by every third."""
    server = _HttpServer()
    try:
        return await _repeated("streamable HTTP", server.cycle, cycles, at_once=1)
    finally:
        server.kill()


def _growth(before: Resources, after: Resources) -> list[str]:
    grown = [
        f"{name}: {getattr(before, name)} before, {getattr(after, name)} after"
        for name in COUNTED
        if getattr(after, name) > getattr(before, name)
    ]
    if after.objects > before.objects:
        grown.append(f"types of the objects: {dict(after.types - before.types)}")
    return grown


async def _settled(before: Resources) -> Resources:
    """What is held once what the last cycles began has ended, or after `until`'s patience."""
    with suppress(TimeoutError):
        await until(lambda: not _growth(before, Resources.now()))
    return Resources.now()


async def _repeated(name: str, cycle: Cycle, cycles: int, *, at_once: int) -> Outcome:
    """A leak grows with the cycles: what has grown must grow again in as many cycles more to
    count."""
    async with sdk_connections() as connections:

        async def some(numbers: range) -> None:
            for number in numbers:
                await cycle(connections, number)
            await until(lambda: connections.connection_count == 0)

        async def measured(first_number: int) -> Outcome:
            before, began = Resources.now(), time.monotonic()
            async with asyncio.TaskGroup() as group:
                for first in range(first_number, first_number + at_once):
                    group.create_task(some(range(first, first_number + cycles, at_once)))
            seconds = time.monotonic() - began
            return Outcome(name=name, cycles=cycles, seconds=seconds, before=before, after=await _settled(before))

        await some(range(WARM_UP))
        outcome = await measured(WARM_UP)
        return await measured(WARM_UP + cycles) if outcome.leaks else outcome


async def _pid(connections: SdkMcpConnections, server: McpServer) -> int:
    return int(text_of(await connections.call_tool(server, IN_RUN, a_call("pid"))))


async def _hang_and_leave(connections: SdkMcpConnections, server: McpServer) -> None:
    hanging = asyncio.create_task(connections.call_tool(server, IN_RUN, a_call("hang")))
    await asyncio.sleep(0.01)  # any moment of the call will do
    hanging.cancel()
    with suppress(asyncio.CancelledError, McpFailure):
        await hanging


async def _stdio_cycle(connections: SdkMcpConnections, number: int) -> None:
    server = odd_server(id=McpServerId(numbered("mcp", number)), isolation=Isolation.SHARED)
    pid = await _pid(connections, server)
    match number % 4:
        case 0:
            os.kill(pid, signal.SIGKILL)
        case 1:
            os.kill(_parent_of(pid), signal.SIGKILL)  # its launcher
        case 2:
            await _hang_and_leave(connections, server)
        case _:
            with suppress(McpFailure):
                await connections.call_tool(server, IN_RUN, a_call("exit"))
    await connections.forget(ORG, server.id)
    await until(lambda: not _is_alive(pid))


def _is_alive(pid: int) -> bool:
    """Whether it runs. One whose launcher was killed is init's to collect, which may take its
    time."""
    try:
        return _stat(pid)[0] not in ("Z", "X")
    except OSError:
        return False


def _parent_of(pid: int) -> int:
    return int(_stat(pid)[1])


def _stat(pid: int) -> list[str]:
    """From the state on (proc(5), /proc/pid/stat)."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


class _HttpServer:
    def __init__(self) -> None:
        self._port = free_port()
        self._process: subprocess.Popen[str] | None = None
        self._start()

    async def cycle(self, connections: SdkMcpConnections, number: int) -> None:
        server = remote(f"http://127.0.0.1:{self._port}/mcp", id=McpServerId(numbered("mcp", number)))
        before = await _pid(connections, server)
        match number % 3:
            case 0:
                self.kill()
                self._start()
                with suppress(McpFailure):  # the end of the kept connection may be noticed by the call alone
                    await _pid(connections, server)
                assert await _pid(connections, server) != before
            case 1:
                await _hang_and_leave(connections, server)
            case _:
                pass
        await connections.forget(ORG, server.id)
        await until(lambda: connections.connection_count == 0)

    def kill(self) -> None:
        """With SIGKILL, as a machine would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()

    def _start(self) -> None:
        command = [*ISOLATED_PYTHON, str(SERVERS / "http_server.py"), str(self._port)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self._process.stdout is not None
        self._process.stdout.readline()


def figures(outcome: Outcome) -> str:
    """The outcome as a line for people."""
    growth = outcome.after.memory_kib - outcome.before.memory_kib
    return (
        f"{outcome.name:<16} {outcome.cycles:>5} cycles in {outcome.seconds:6.1f} s   "
        f"processes left {outcome.after.processes - outcome.before.processes:+d}   "
        f"descriptors {outcome.before.descriptors} → {outcome.after.descriptors}   "
        f"tasks {outcome.before.tasks} → {outcome.after.tasks}   "
        f"memory {outcome.after.memory_kib / 1024:.1f} MiB ({growth:+d} KiB)"
    )


def python_version() -> str:
    """What the figures were measured with."""
    return f"Python {sys.version.split()[0]}"
