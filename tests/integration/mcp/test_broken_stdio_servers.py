"""Started servers that fail in every way: each is a clear failure in bounded time, and nothing of
it stays behind."""

import asyncio
import os
import shlex
import signal
import sys
import time
from pathlib import Path

import pytest

from application.mcp.ports import McpFailure, McpFailureKind, ServerState
from domain.ids import McpServerId
from domain.mcp.server import Isolation, McpServer
from infrastructure.mcp.connections.pool import SdkMcpConnections
from tests.builders import numbered
from tests.e2e.processes import resident_bytes
from tests.integration.mcp.parts import (
    IN_RUN,
    ISOLATED_PYTHON,
    PATIENCE_S,
    a_call,
    descendants,
    odd_server,
    plain_server,
    sdk_connections,
    started,
    text_of,
    time_passes,
    until,
)

pytestmark = pytest.mark.usefixtures("patient_with_launchers")

BOUND_S = 45.0
"""Bound on a call that fails at a deadline, on a busy machine too. Less than the deadlines that the
call does not reach."""
DEADLINE_S = 30.0
"""Of calls for which the time passes at once."""


async def failure_of(connections: SdkMcpConnections, server: McpServer, timeout_s: float = PATIENCE_S) -> McpFailure:
    async with asyncio.timeout(BOUND_S):
        with pytest.raises(McpFailure) as raised:
            await connections.call_tool(server, IN_RUN, a_call("echo", timeout_s=timeout_s))
    return raised.value


@pytest.mark.requirement("B3")
@pytest.mark.parametrize(
    ("server", "detail", "stderr"),
    [
        (started("no-such-command-anywhere"), "The command was not found.", "no-such-command-anywhere"),
        (started("/"), "The command cannot be run.", "/"),
        (
            started("sh", "-c", "echo out of cheese >&2; exit 3"),
            "The server's process exited with code 3 before it answered.",
            "out of cheese",
        ),
        (started("sh", "-c", "kill -KILL $$"), "The server's process was ended by SIGKILL before it answered.", ""),
        (started("sh", "-c", "echo rubbish"), "The server's process exited with code 0 before it answered.", "rubbish"),
    ],
    ids=["missing", "not a program", "exits", "killed", "rubbish and exits"],
)
async def test_a_server_that_does_not_stay_fails_the_call_with_how_it_ended(
    server: McpServer, detail: str, stderr: str
) -> None:
    before = descendants()
    async with sdk_connections() as connections:
        failure = await failure_of(connections, server)
        assert (failure.kind, failure.detail) == (McpFailureKind.NOT_CONNECTED, detail)
        assert stderr in failure.stderr
        assert stderr in connections.logs(server)
        assert connections.status(server).state is ServerState.ERROR
    await until(lambda: descendants() <= before)


@pytest.mark.requirement("B3")
@pytest.mark.parametrize(
    ("server", "lines", "detail"),
    [
        (started("sleep", "1000"), 0, "The server did not answer in time."),
        (odd_server("--silent"), 0, "The server did not answer in time."),
        (
            started("sh", "-c", "for i in 1 2 3; do echo rubbish; done; sleep 1000"),
            3,
            "The server did not answer in time. Lines of its standard output that are not MCP messages: 3.",
        ),
    ],
    ids=["deaf", "silent", "rubbish"],
)
async def test_a_server_that_never_answers_fails_the_call_at_its_deadline(
    server: McpServer, lines: int, detail: str
) -> None:
    before = descendants()
    async with sdk_connections() as connections:
        failing = asyncio.create_task(failure_of(connections, server, timeout_s=DEADLINE_S))
        await until(lambda: connections.status(server).state is ServerState.CONNECTING)
        await until(lambda: connections.logs(server).count("rubbish") == lines)
        time_passes(DEADLINE_S)
        failure = await failing
        assert (failure.kind, failure.detail) == (McpFailureKind.NOT_CONNECTED, detail)
    await until(lambda: descendants() <= before)


async def test_connecting_is_given_up_after_its_own_deadline() -> None:
    server = started("sleep", "1000")
    async with sdk_connections(connect_timeout_s=0.3) as connections:
        failure = await failure_of(connections, server)
        assert (failure.kind, failure.detail) == (McpFailureKind.NOT_CONNECTED, "The server did not answer in time.")
        assert connections.status(server).state is ServerState.ERROR


async def test_rubbish_before_the_protocol_does_no_harm() -> None:
    async with sdk_connections() as connections:
        reply = await connections.call_tool(odd_server("--rubbish"), IN_RUN, a_call("echo", text="hello"))
        assert text_of(reply) == '{"text": "hello"}'


@pytest.mark.requirement("B3", "B7")
async def test_a_server_that_dies_in_a_call_loses_the_call_and_is_started_again_by_the_next() -> None:
    server = odd_server()
    async with sdk_connections() as connections:
        with pytest.raises(McpFailure) as raised:
            await connections.call_tool(server, IN_RUN, a_call("exit"))
        failure = raised.value
        assert failure.kind is McpFailureKind.CONNECTION_LOST
        assert failure.detail == "The server's process exited with code 9 before it answered."
        assert "out of cheese" in failure.stderr
        await until(lambda: connections.status(server).state is ServerState.UNHEALTHY)
        assert connections.status(server).last_error == failure.detail
        assert text_of(await connections.call_tool(server, IN_RUN, a_call("echo"))) == "{}"
        assert connections.status(server).state is ServerState.CONNECTED


async def test_a_server_killed_between_calls_is_started_again_by_the_next() -> None:
    server = odd_server()
    async with sdk_connections() as connections:
        first = int(text_of(await connections.call_tool(server, IN_RUN, a_call("pid"))))
        os.kill(first, signal.SIGKILL)
        await until(lambda: connections.status(server).state is ServerState.UNHEALTHY)
        assert int(text_of(await connections.call_tool(server, IN_RUN, a_call("pid")))) != first


@pytest.mark.requirement("B11")
@pytest.mark.parametrize("id_last", [False, True])
async def test_a_reply_over_the_limit_says_its_size_and_the_connection_goes_on(id_last: bool) -> None:
    server = odd_server()
    async with sdk_connections() as connections:
        with pytest.raises(McpFailure) as raised:
            await connections.call_tool(server, IN_RUN, a_call("big", size=6 * 1024 * 1024, id_last=id_last))
        assert raised.value.kind is McpFailureKind.TOO_LARGE
        assert "exceeds the limit of 4194304 bytes" in raised.value.detail
        assert "629" in raised.value.detail
        assert text_of(await connections.call_tool(server, IN_RUN, a_call("echo"))) == "{}"


@pytest.mark.requirement("B11")
@pytest.mark.parametrize(
    ("tool", "text"),
    [("half_surrogate", "cut \N{REPLACEMENT CHARACTER}"), ("invalid_utf8", "caf\N{REPLACEMENT CHARACTER}")],
)
async def test_text_that_is_not_valid_is_mended(tool: str, text: str) -> None:
    async with sdk_connections() as connections:
        reply = await connections.call_tool(odd_server(), IN_RUN, a_call(tool))
        assert text_of(reply) == text


@pytest.mark.requirement("B7", "B9")
async def test_tools_whose_schemas_cannot_be_used_are_skipped_with_the_reason_and_their_siblings_stand() -> None:
    async with sdk_connections() as connections:
        catalog = await connections.discover(odd_server("--hostile-schemas"), IN_RUN, timeout_s=60)
        reasons = {tool.name: tool.reason for tool in catalog.skipped}
        assert "leads out of the schema, and nothing is fetched" in reasons["remote"]
        assert "leads out of the schema, and nothing is fetched" in reasons["file"]
        assert "multiply into too many checks" in reasons["doubling"]
        assert "nested deeper than 64 levels" in reasons["deep"]
        assert "leads back to itself" in reasons["circular"]
        assert "no such type" in reasons["wrong"]
        assert not {tool.name for tool in catalog.tools} & reasons.keys()
        reply = await connections.call_tool(odd_server("--hostile-schemas"), IN_RUN, a_call("echo"))
        assert text_of(reply) == "{}"


@pytest.mark.requirement("B6", "B8")
async def test_a_server_with_ten_thousand_tools_is_listed_and_used() -> None:
    server = odd_server("--many")
    async with sdk_connections() as connections:
        catalog = await connections.discover(server, IN_RUN, timeout_s=60)
        assert (len(catalog.tools), catalog.skipped) == (10_000, ())
        assert text_of(await connections.call_tool(server, IN_RUN, a_call("tool_9989", a=1))) == '{"a": 1}'


@pytest.mark.requirement("B11")
async def test_a_reply_of_a_hundred_megabytes_fails_its_call_without_being_held_in_memory() -> None:
    server = odd_server()
    async with sdk_connections() as connections:
        await connections.call_tool(server, IN_RUN, a_call("echo"))
        before = resident_bytes(os.getpid(), peak=True)
        with pytest.raises(McpFailure) as raised:
            await connections.call_tool(server, IN_RUN, a_call("big", 120.0, size=100_000_000, id_last=False))
        assert raised.value.kind is McpFailureKind.TOO_LARGE
        assert "100000" in raised.value.detail
        assert resident_bytes(os.getpid(), peak=True) - before < 30_000_000
        assert text_of(await connections.call_tool(server, IN_RUN, a_call("echo"))) == "{}"


async def test_a_result_that_is_none_is_an_invalid_reply() -> None:
    async with sdk_connections() as connections:
        with pytest.raises(McpFailure) as raised:
            await connections.call_tool(odd_server(), IN_RUN, a_call("null_result"))
        assert raised.value.kind is McpFailureKind.INVALID_REPLY


async def test_a_broken_server_is_not_started_over_and_over(tmp_path_factory: pytest.TempPathFactory) -> None:
    starts = tmp_path_factory.mktemp("starts") / "starts"
    server = started("sh", "-c", f"echo started >> {starts}; exit 1", max_concurrency=50)
    async with sdk_connections() as connections:
        for _ in range(2):
            results = await asyncio.gather(
                *(connections.call_tool(server, IN_RUN, a_call("echo")) for _ in range(50)), return_exceptions=True
            )
            assert all(isinstance(result, McpFailure) for result in results)
    assert len(starts.read_text().splitlines()) == 2


@pytest.mark.requirement("B3")
async def test_an_unused_connection_ends_and_the_next_call_opens_another() -> None:
    server = odd_server(idle_timeout_s=0.1)
    async with sdk_connections() as connections:
        first = text_of(await connections.call_tool(server, IN_RUN, a_call("pid")))
        await until(lambda: connections.connection_count == 0)
        assert connections.status(server).state is ServerState.DISCONNECTED
        assert text_of(await connections.call_tool(server, IN_RUN, a_call("pid"))) != first


@pytest.mark.requirement("B3")
async def test_a_server_in_use_is_forgotten_only_when_its_call_is_done() -> None:
    server = plain_server()
    async with sdk_connections() as connections:
        hanging = asyncio.create_task(connections.call_tool(server, IN_RUN, a_call("hang")))
        await until(lambda: "hanging" in connections.logs(server))
        await connections.forget(server.organization_id, server.id)
        assert connections.connection_count == 1
        time_passes(PATIENCE_S)
        with pytest.raises(McpFailure) as raised:
            await hanging
        assert raised.value.kind is McpFailureKind.TIMEOUT
        await until(lambda: connections.connection_count == 0)


@pytest.mark.requirement("B3")
async def test_closing_ends_all_servers_at_once_even_those_that_ignore_it() -> None:
    before = descendants()
    stubborn = "trap '' TERM INT; echo deaf >&2; while :; do sleep 1000; done"
    servers = [started("sh", "-c", stubborn, id=McpServerId(numbered("mcp", 10 + number))) for number in range(10)]
    async with sdk_connections() as connections:
        await asyncio.gather(*(failure_of(connections, server, timeout_s=0.3) for server in servers))
        await until(lambda: all("deaf" in connections.logs(server) for server in servers))
        assert connections.connection_count == 10
        fine = plain_server()
        await connections.call_tool(fine, IN_RUN, a_call("echo", text="hello"))
        began = time.monotonic()
        await connections.close()
        # One after the other they would take three seconds each, by the two graces.
        assert time.monotonic() - began < 25
        with pytest.raises(McpFailure) as raised:
            await connections.call_tool(fine, IN_RUN, a_call("echo", text="hello"))
        assert raised.value.kind is McpFailureKind.NOT_CONNECTED
    await until(lambda: descendants() <= before)


async def test_a_caller_cancelled_while_connecting_leaves_the_connection_to_others(tmp_path: Path) -> None:
    go, program = tmp_path / "go", shlex.join((sys.executable, *odd_server().config.args))
    slow = started("sh", "-c", f"until [ -e {go} ]; do sleep 0.05; done; exec {program}")
    async with sdk_connections() as connections:
        first = asyncio.create_task(connections.call_tool(slow, IN_RUN, a_call("echo")))
        second = asyncio.create_task(connections.call_tool(slow, IN_RUN, a_call("echo")))
        await until(lambda: connections.status(slow).state is ServerState.CONNECTING)
        first.cancel()
        await asyncio.sleep(0)
        go.touch()
        assert text_of(await second) == "{}"
        assert connections.connection_count == 1


@pytest.mark.requirement("A5", "B3")
async def test_a_server_that_leaves_unread_what_it_is_sent_is_ended_with_the_reason() -> None:
    before = descendants()
    flooding = str(Path(__file__).parents[2] / "e2e" / "servers" / "flooding_server.py")
    server = started(*ISOLATED_PYTHON, flooding, "unread", "stdio", timeout_s=0.3, isolation=Isolation.SHARED)
    async with sdk_connections(write_timeout_s=0.3) as connections:
        await connections.discover(server, IN_RUN, timeout_s=60)
        await until(lambda: connections.status(server).state is ServerState.UNHEALTHY)
        reason = "The server does not read its input and was stopped."
        assert connections.status(server).last_error == reason
        assert "[dragoman] the server has not read its input for 0.3 s" in connections.logs(server)
        await until(lambda: descendants() <= before)
