"""Adapters that end their process at a chosen boundary of a step: wrapped around the real ones, in
a container's place.

A boundary is passed before, inside and after each transaction that writes, and before, during and
after each call of a tool or a model. It is named by what happens there and how often that was so
far, such as `SqlRunJournal.commit inside #3`.
"""

import asyncio
import os
import signal
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

from sqlalchemy import Connection

from application.mcp.ports import ConnectionScope, McpCall, McpReply, ProgressCallback
from application.models.ports import FallbackModels, ModelEvent, ModelRequest, TextDelta
from application.tools.ports import NativeTool, NativeToolContext, NativeToolOutput
from domain.json_value import JsonObject
from domain.mcp.server import McpServer
from domain.tools.capabilities import ToolType
from domain.tools.tool import Tool
from infrastructure.container import Container
from infrastructure.mcp.wrappers.supervised_connections import SupervisedConnections
from infrastructure.persistence.engine.database import Database, Scope, Unit
from infrastructure.persistence.engine.staged import Staged, Stages

T = TypeVar("T")


class Boundaries:
    """Every boundary that this process passes is a line of the file `trace`; at the one called
    `fatal` it kills itself. `#7` is the seventh, whatever its name."""

    def __init__(self, trace: Path, *, fatal: str | None) -> None:
        self._trace = os.open(trace, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._fatal = fatal
        self._passed: Counter[str] = Counter()
        self._counting = threading.Lock()  # transactions run in threads

    def reach(self, what: str) -> None:
        """Pass a boundary, or end there."""
        with self._counting:
            self._passed[what] += 1
            label = f"{what} #{self._passed[what]}"
            os.write(self._trace, f"{label}\n".encode())
            if self._fatal in (label, f"#{self._passed.total()}"):
                os.kill(os.getpid(), signal.SIGKILL)


class DeadlyDatabase:
    """The `Database` interface: transactions are named after the method that makes them."""

    def __init__(self, database: Database, boundaries: Boundaries) -> None:
        self._database = database
        self._boundaries = boundaries

    async def start(self) -> None:
        await self._database.start()

    async def stop(self) -> None:
        await self._database.stop()

    async def write(
        self,
        unit: Unit[T],
        *,
        scope: Scope,
        after_commit: Callable[[T], None] | None = None,
    ) -> T:
        named = unit.begin if isinstance(unit, Staged) else unit
        name = getattr(named, "__qualname__", type(named).__name__).partition(".<locals>")[0]

        def watched(connection: Connection) -> T:
            result = unit(connection)
            self._boundaries.reach(f"{name} inside")
            return result

        def stages(begin: Callable[[Connection], Stages[T]], connection: Connection) -> Stages[T]:
            result = yield from begin(connection)
            self._boundaries.reach(f"{name} inside")
            return result

        def committed(result: T) -> None:
            self._boundaries.reach(f"{name} committed")
            if after_commit is not None:
                after_commit(result)

        self._boundaries.reach(f"{name} before")
        result = await self._database.write(
            Staged(partial(stages, unit.begin)) if isinstance(unit, Staged) else watched,
            scope=scope,
            after_commit=committed,
        )
        self._boundaries.reach(f"{name} after")
        return result

    async def read(self, unit: Unit[T], *, scope: Scope) -> T:
        return await self._database.read(unit, scope=scope)


class DeadlyConnections:
    """MCP connections. A call is under way once the server has written it down in its log."""

    def __init__(self, connections: SupervisedConnections, boundaries: Boundaries, log: Path) -> None:
        self._connections = connections
        self._boundaries = boundaries
        self._log = log

    async def call_tool(
        self, server: McpServer, scope: ConnectionScope, call: McpCall, on_progress: ProgressCallback | None = None
    ) -> McpReply:
        self._boundaries.reach(f"{call.tool_name} before the send")
        calling = asyncio.ensure_future(self._connections.call_tool(server, scope, call, on_progress))
        try:
            told = f"called {call.tool_name} {call.arguments.get('text', '')}"
            while not calling.done() and told not in lines_of(self._log):  # noqa: ASYNC110  # another process writes it
                await asyncio.sleep(0.001)
            self._boundaries.reach(f"{call.tool_name} under way")
            reply = await calling
        finally:
            calling.cancel()
        self._boundaries.reach(f"{call.tool_name} answered")
        return reply

    async def release(self, scope: ConnectionScope) -> None:
        self._boundaries.reach("release before")
        await self._connections.release(scope)
        self._boundaries.reach("release after")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connections, name)


class DeadlyModels:
    """The `FallbackModels` port."""

    def __init__(self, models: FallbackModels, boundaries: Boundaries) -> None:
        self._models = models
        self._boundaries = boundaries

    async def stream(self, request: ModelRequest, fallbacks: tuple[str, ...]) -> AsyncIterator[ModelEvent]:
        self._boundaries.reach("model before the send")
        stream = cast("Any", self._models.stream(request, fallbacks))
        async with aclosing(stream) as events:
            async for event in events:
                self._boundaries.reach("model says" if isinstance(event, TextDelta) else "model answered")
                yield event


class LoggedTool:
    """A native tool whose calls stand in the log of the tool server too."""

    def __init__(self, tool: NativeTool, boundaries: Boundaries | None, log: Path) -> None:
        self._tool = tool
        self._boundaries = boundaries
        self._log = log

    @property
    def tool(self) -> Tool:
        return self._tool.tool

    async def run(self, arguments: JsonObject, context: NativeToolContext) -> NativeToolOutput:
        name = self.tool.name
        self._reach(f"{name} before the send")
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"called {name} {arguments['code']}\n")
        self._reach(f"{name} under way")
        output = await self._tool.run(arguments, context)
        self._reach(f"{name} answered")
        return output

    def _reach(self, what: str) -> None:
        if self._boundaries is not None:
            self._boundaries.reach(what)


def watch_over(container: Container, log: Path, boundaries: Boundaries | None = None) -> None:
    """Put the wrappers into a container that has built nothing yet. Without boundaries only native
    calls are logged."""
    code = ToolType.CODE_EXECUTION
    if boundaries is not None:
        container.database.override(DeadlyDatabase(container.database(), boundaries))
        container.connections.override(DeadlyConnections(container.connections(), boundaries, log))
        container.models.override(DeadlyModels(container.models(), boundaries))
    native: Mapping[ToolType, NativeTool] = container.native_tools()
    container.native_tools.override({**native, code: LoggedTool(native[code], boundaries, log)})


def lines_of(log: Path) -> list[str]:
    """The whole lines of a log that may not be there yet."""
    return log.read_text(encoding="utf-8").splitlines() if log.exists() else []
