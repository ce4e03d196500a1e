"""A started server with an allowlist of hosts: its launcher hands a listening socket over, and our
proxy serves it."""

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace

from infrastructure.confinement import own_network
from infrastructure.http.egress_proxy import EgressProxy
from infrastructure.mcp.transports.pipes import Descriptor, ReadPipe
from infrastructure.mcp.transports.started_server import StartedServer, StartServer
from infrastructure.mcp.transports.stdio_process import StdioCommand, start_process

logger = logging.getLogger(__name__)


def start_linked(command: StdioCommand, environment: Mapping[str, str], proxy: EgressProxy) -> StartServer:
    """Starts the command as `start_process` does, with the proxy as its only network."""

    async def start(*, kill_grace_s: float, on_exit: Callable[[], None]) -> StartedServer:
        link = EgressLink(proxy)
        options = (*command.confinement, *link.options)
        try:
            linked = replace(command, confinement=options, handed=(link.fd,))
            server = await start_process(linked, environment)(kill_grace_s=kill_grace_s, on_exit=on_exit)
        except BaseException:
            await link.close()
            raise
        link.begin()
        return _LinkedServer(server, link)

    return start


class EgressLink:
    """One life of a server's network. Create it, start the process with `options` and `fd`, then
    `begin`; `close` at the end, which also ends all connections."""

    def __init__(self, proxy: EgressProxy) -> None:
        """Raises OSError."""
        self._proxy = proxy
        self._ours, self.fd = own_network.link()
        self._serving: asyncio.Task[None] | None = None

    @property
    def options(self) -> tuple[str, ...]:
        """The launcher's options."""
        return "--proxy", str(self.fd)

    def begin(self) -> None:
        """Serve as soon as the launcher hands its socket over; the process has `fd` now."""
        self._close_theirs()
        asyncio.get_running_loop().add_reader(self._ours, self._receive)

    async def close(self) -> None:
        self._close_theirs()
        self._close_ours()
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.wait([self._serving])

    def _receive(self) -> None:
        found = None
        with suppress(OSError):
            found = own_network.received(self._ours)
        self._close_ours()
        if found is not None:
            self._serving = asyncio.create_task(self._serve(socket.socket(fileno=found)))
            self._serving.add_done_callback(_log_failure)

    async def _serve(self, listening: socket.socket) -> None:
        with listening:
            await self._proxy.serve(listening)

    def _close_ours(self) -> None:
        if self._ours >= 0:
            asyncio.get_running_loop().remove_reader(self._ours)
            os.close(self._ours)
            self._ours = -1

    def _close_theirs(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def _log_failure(serving: asyncio.Task[None]) -> None:
    """Serving ends by being cancelled only."""
    if not serving.cancelled():
        logger.error("the network of an MCP server has ended; restart the server", exc_info=serving.exception())


class _LinkedServer:
    """The server, whose network ends with it."""

    def __init__(self, server: StartedServer, link: EgressLink) -> None:
        self._server = server
        self._link = link

    @property
    def exit_status(self) -> int | None:
        return self._server.exit_status

    def describe_exit(self) -> str | None:
        return self._server.describe_exit()

    @property
    def stdin(self) -> Descriptor:
        return self._server.stdin

    def outputs(
        self, on_output: Callable[[bytes], None], on_log: Callable[[bytes], None], on_end: Callable[[], None]
    ) -> tuple[ReadPipe, ReadPipe]:
        return self._server.outputs(on_output, on_log, on_end)

    async def stop(self, *, close_grace_s: float, kill_grace_s: float) -> None:
        try:
            await self._server.stop(close_grace_s=close_grace_s, kill_grace_s=kill_grace_s)
        finally:
            await self._link.close()
