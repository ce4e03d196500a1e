"""Servers that are used up: connected, listed or read only in their pace, while others are
served."""

import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from application.mcp.ports import McpFailure, McpFailureKind, ServerState
from domain.ids import McpServerId
from domain.mcp.server import Isolation, McpServer, McpServerKind
from infrastructure.mcp.pace import BURST, DROPPED, FREE_BYTES, RATE, Pace, Paces
from infrastructure.mcp.transports.pipes import ReadPipe
from infrastructure.mcp.transports.stderr_log import StderrLog
from infrastructure.mcp.transports.stdio import StdioTransport
from tests.builders import ORG, SERVER
from tests.integration.mcp.parts import (
    IN_RUN,
    ISOLATED_PYTHON,
    a_call,
    descendants,
    plain_server,
    remote,
    sdk_connections,
    started,
    text_of,
    until,
)

pytestmark = pytest.mark.requirement("A5", "B3")

FLOODING = str(Path(__file__).parents[2] / "e2e" / "servers" / "flooding_server.py")
OTHER = McpServerId("mcp_other")


async def test_a_server_that_is_connected_again_and_again_waits_for_its_turn() -> None:
    paces = Paces()
    before = descendants()
    async with sdk_connections(paces=paces) as connections:
        paces.of(ORG, SERVER).charge_work(BURST + 1_000 * RATE)
        with pytest.raises(McpFailure) as raised:
            await connections.call_tool(plain_server(), IN_RUN, a_call("echo", 0.1, text="a"))
        assert raised.value.kind is McpFailureKind.BUSY  # no failure of the server
        assert raised.value.retry_after_s is not None
        assert raised.value.retry_after_s > 900
        assert descendants() <= before
        reply = await connections.call_tool(plain_server(id=OTHER), IN_RUN, a_call("echo", text="b"))
        assert text_of(reply) == "b"


async def test_tools_that_are_listed_all_the_time_are_refused_with_the_time_to_wait() -> None:
    paces = Paces()
    server = plain_server(isolation=Isolation.SHARED)
    async with sdk_connections(paces=paces) as connections:
        await connections.discover(server, IN_RUN, timeout_s=60)
        paces.of(ORG, SERVER).charge_work(BURST + 1_000 * RATE)
        with pytest.raises(McpFailure) as raised:
            await connections.discover(server, IN_RUN, timeout_s=60)
        assert raised.value.kind is McpFailureKind.BUSY
        assert raised.value.retry_after_s is not None
        assert raised.value.retry_after_s > 900
        assert text_of(await connections.call_tool(server, IN_RUN, a_call("echo", text="a"))) == "a"


@contextmanager
def flooding(transport: str) -> Iterator[McpServer]:
    if transport == "stdio":
        yield started(*ISOLATED_PYTHON, FLOODING, "changes", "stdio", isolation=Isolation.SHARED)
        return
    with subprocess.Popen([sys.executable, FLOODING, "changes", transport], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield remote(f"http://127.0.0.1:{int(process.stdout.readline())}/mcp", McpServerKind(transport))
        finally:
            process.kill()


@pytest.mark.parametrize("transport", ["stdio", "http", "sse"])
async def test_a_server_that_floods_is_disconnected_and_others_are_served(
    transport: str, caplog: pytest.LogCaptureFixture
) -> None:
    with flooding(transport) as server, caplog.at_level(logging.WARNING):
        async with sdk_connections(paces=Paces(flood_s=0.0)) as connections:
            await connections.discover(server, IN_RUN, timeout_s=60)
            call = asyncio.ensure_future(connections.call_tool(server, IN_RUN, a_call("flood")))
            other = plain_server(id=OTHER)
            assert text_of(await connections.call_tool(other, IN_RUN, a_call("echo", text="b"))) == "b"
            with pytest.raises(McpFailure) as raised:
                await call
            assert raised.value.kind is McpFailureKind.CONNECTION_LOST
            await until(lambda: connections.status(server).state is not ServerState.CONNECTED)
        said = [record for record in caplog.records if "without end" in record.message]
        assert {getattr(record, "server_id", None) for record in said} == {SERVER}


class OpenPipes:
    """A started server that is this test: it writes to `output`."""

    exit_status = None

    def __init__(self) -> None:
        self._read_stdout, self.output = os.pipe()
        self._read_stderr, self._stderr = os.pipe()
        self._theirs, stdin = os.pipe()
        self.stdin = open(stdin, "wb", buffering=0)  # noqa: SIM115 (the transport closes it)
        os.set_blocking(self.output, False)

    def describe_exit(self) -> str | None:
        return None

    def outputs(
        self, on_output: Callable[[bytes], None], on_log: Callable[[bytes], None], on_end: Callable[[], None]
    ) -> tuple[ReadPipe, ReadPipe]:
        stdout, stderr = (os.fdopen(fd, "rb", buffering=0) for fd in (self._read_stdout, self._read_stderr))
        return ReadPipe(stdout, on_output, on_end), ReadPipe(stderr, on_log, lambda: None)

    async def stop(self, *, close_grace_s: float, kill_grace_s: float) -> None:
        for descriptor in (self.output, self._stderr, self._theirs):
            os.close(descriptor)


async def accepted(server: OpenPipes, at_most: int) -> int:
    """How many bytes of a line without end are taken, until none is for a hundred turns of the
    event loop."""
    taken = blocked = 0
    while blocked < 100 and taken < at_most:
        try:
            taken += os.write(server.output, b"x" * 64 * 1024)
            blocked = 0
        except BlockingIOError:
            blocked += 1
        await asyncio.sleep(0)
    return taken


@pytest.mark.requirement("S3")
async def test_a_line_without_end_is_read_only_as_far_as_the_server_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    server = OpenPipes()
    loop = asyncio.get_running_loop()
    now = loop.time()

    async def start(*, kill_grace_s: float, on_exit: Callable[[], None]) -> OpenPipes:
        return server

    pace = Pace()
    burst = int(BURST * DROPPED * FREE_BYTES)
    async with StdioTransport(start, log=StderrLog(), pace=pace):
        with monkeypatch.context() as still:
            still.setattr(loop, "time", lambda: now)  # with time the server may be read further
            taken = await accepted(server, 4 * burst)
            assert pace.delay_s > 0
        assert burst / 2 < taken < 2 * burst
