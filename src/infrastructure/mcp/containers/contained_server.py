"""The life of a server in a container. Above: the stdio transport. Below: the container engine."""

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from contextlib import suppress

import anyio

from application.system.ended import cancelled
from infrastructure.mcp.containers.engine import (
    Container,
    ContainerEnd,
    ContainerEngine,
    ContainerSpec,
    EngineError,
)
from infrastructure.mcp.containers.output_frames import OutputFrames
from infrastructure.mcp.transports.pipes import Descriptor, ReadPipe
from infrastructure.mcp.transports.started_server import describe_status
from infrastructure.mcp.transports.stdio_process import MARGIN_S

logger = logging.getLogger(__name__)

_ENGINE_STATUS = 125
_REMOVAL_S = 10.0


class ContainedServer:
    """The `StartedServer` of a container. One task waits for the container's end. A container that
    could not be removed is removed later by the engine's adapter, or at the next start of the
    service."""

    def __init__(self, container: Container, *, on_exit: Callable[[], None]) -> None:
        self._container = container
        self._on_exit = on_exit
        self._exit: ContainerEnd | None = None
        self._is_lost = False
        self._watching = asyncio.create_task(self._watch(), name="container")

    @classmethod
    async def start(
        cls, engine: ContainerEngine, spec: ContainerSpec, *, on_exit: Callable[[], None]
    ) -> "ContainedServer":
        """Completes under cancellation, which is raised once the container is removed. Raises
        EngineError."""
        starting = asyncio.create_task(engine.start(spec))
        interrupted = await _finished(starting)
        if interrupted is None:
            return cls(starting.result(), on_exit=on_exit)
        if starting.exception() is None:
            container = starting.result()
            container.attached.close()
            await _finished(asyncio.create_task(_removed(container)))
        raise interrupted

    @property
    def exit_status(self) -> int | None:
        """125 for one that was lost with its engine."""
        if self._is_lost:
            return _ENGINE_STATUS
        return None if self._exit is None else self._exit.status

    def describe_exit(self) -> str | None:
        if self._is_lost:
            return "was lost with its container engine"
        if self._exit is None:
            return None
        if self._exit.out_of_memory:
            return "was ended, having taken more memory than it may"
        return describe_status(self._exit.status)

    @property
    def stdin(self) -> Descriptor:
        return _WritingHalf(self._container.attached)

    def outputs(
        self, on_output: Callable[[bytes], None], on_log: Callable[[bytes], None], on_end: Callable[[], None]
    ) -> tuple[ReadPipe, ReadPipe]:
        reading = os.fdopen(os.dup(self._container.attached.fileno()), "rb", buffering=0)
        pipe = ReadPipe(reading, OutputFrames(on_output, on_log).feed, on_end)
        return pipe, pipe

    async def stop(self, *, close_grace_s: float, kill_grace_s: float) -> None:
        interrupted = await _finished(asyncio.create_task(self._stop(close_grace_s, kill_grace_s)))
        if interrupted is not None:
            raise interrupted

    async def _stop(self, close_grace_s: float, kill_grace_s: float) -> None:
        if not await self._exited_within(close_grace_s):
            with suppress(EngineError):
                await self._container.terminate()
                await self._exited_within(kill_grace_s)
        await _removed(self._container)
        await self._exited_within(MARGIN_S)
        await cancelled(self._watching)

    async def _exited_within(self, seconds: float) -> bool:
        await asyncio.wait([self._watching], timeout=seconds)
        return self._watching.done()

    async def _watch(self) -> None:
        try:
            self._exit = await self._container.ended()
        except EngineError:
            self._is_lost = True
        self._on_exit()


async def _removed(container: Container) -> None:
    try:
        async with asyncio.timeout(_REMOVAL_S):
            await container.remove()
    except (EngineError, TimeoutError) as exc:
        logger.warning("a container was not removed and will be later: %s", str(exc) or "the engine takes too long")


async def _finished(task: "asyncio.Task[object]") -> asyncio.CancelledError | None:
    """Wait for the end of a bounded task, also under cancellation, which is returned."""
    interrupted: asyncio.CancelledError | None = None
    with anyio.CancelScope(shield=True):
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError as exc:  # the scope shields from anyio's cancellation, not asyncio's
                interrupted = exc
    return interrupted


class _WritingHalf:
    """The half of a connection that ends the container's stdin when it closes."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    @property
    def closed(self) -> bool:
        return self._connection.fileno() < 0

    def fileno(self) -> int:
        return self._connection.fileno()

    def close(self) -> None:
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)
        self._connection.close()
