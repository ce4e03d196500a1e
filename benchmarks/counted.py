"""A service that counts what it executes: bytecode instructions, calls of C functions, statements
for SQLite, in all its threads.

Run as a process of its own: `python -m benchmarks.counted SOCKET` serves like `dragoman serve` and
answers each line on the Unix socket with the counts so far, the first one by beginning to count.
"""

import asyncio
import gc
import itertools
import json
import sqlite3
import sys
import threading
from collections.abc import Callable
from types import BuiltinFunctionType, FrameType
from typing import TypeAlias

import uvloop

from application.audit import seal_audit
from application.identity import key_uses
from application.runs.execution import recover_runs
from infrastructure.container import Container
from infrastructure.lifecycle import configure_logs
from infrastructure.settings import load_settings
from interfaces.asgi import create_app
from interfaces.http_server import HttpServer, listening
from interfaces.service import running

Traced: TypeAlias = "Callable[[FrameType, str, object], Traced] | None"
_STATEMENTS = {"execute", "executemany"}


class Counts:
    """Counts from `begin` on; each step of a counter is one C call, which no thread interrupts."""

    def __init__(self) -> None:
        self._counting = False
        self._counters = {name: itertools.count() for name in ("instructions", "c_calls", "statements")}
        self._instruction, self._c_call, self._statement = (counter.__next__ for counter in self._counters.values())

    def watch_threads(self) -> None:
        """To be called before threads are started."""
        threading.settrace(self._traced)
        threading.setprofile(self._profiled)

    def begin(self) -> None:
        """Count in this thread, and in those that were started since `watch_threads`."""
        self._counting = True
        sys.settrace(self._traced)
        sys.setprofile(self._profiled)

    def so_far(self) -> dict[str, int]:
        """What was counted. A counter shows where it stands only by what a copy would be made
        of."""
        return {name: int(counter.__reduce__()[1][0]) for name, counter in self._counters.items()}

    def _traced(self, frame: FrameType, event: str, argument: object) -> Traced:
        if not self._counting:
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return self._step

    def _step(self, frame: FrameType, event: str, argument: object) -> Traced:
        if event == "opcode":
            self._instruction()
        return self._step

    def _profiled(self, frame: FrameType, event: str, argument: object) -> None:
        if event != "c_call" or not self._counting:
            return
        self._c_call()
        if (
            isinstance(argument, BuiltinFunctionType)
            and argument.__name__ in _STATEMENTS
            and isinstance(argument.__self__, sqlite3.Cursor | sqlite3.Connection)
        ):
            self._statement()


async def serve(socket_path: str, counts: Counts) -> None:
    """The service, on uvloop and SQLite as it is meant to run, without collections of garbage at
    times of their own."""
    container = Container(settings=load_settings())
    configure_logs(container)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readline():
            writer.write(json.dumps(counts.so_far()).encode() + b"\n")
            counts.begin()
        writer.close()

    settings = container.settings()
    with listening(settings.host, settings.port, change="Set DRAGOMAN_PORT.") as listener:
        async with running(container), await asyncio.start_unix_server(answer, socket_path):
            server = HttpServer(create_app(container))
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            container.public_address().listening_on(url)
            with server.stopped_by_signals(), container.home().announced(url):
                await server.serve(sockets=[listener])


def put_off() -> None:
    """What the service does every now and then would be counted with some calls and not with
    others: sealing of the audit trail, looking for what other processes left, storing when keys
    were used."""
    seal_audit.SEAL_EVERY_S = recover_runs.SWEEP_EVERY_S = key_uses.STORE_EVERY_S = 3_600.0


def main() -> None:
    """Serve until told to stop."""
    gc.disable()
    put_off()
    counts = Counts()
    counts.watch_threads()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(sys.argv[1], counts))


if __name__ == "__main__":
    main()
