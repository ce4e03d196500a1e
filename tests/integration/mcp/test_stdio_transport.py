"""The stdio transport under the SDK's own client, against real server processes, well-behaved and
not."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

import anyio
import pytest
import uvloop
from mcp import Client, MCPError
from mcp.shared.message import SessionMessage
from mcp.types import CallToolResult, JSONRPCNotification, TextContent

from infrastructure.confinement.process_group import descendants
from infrastructure.mcp.faults import REPLY_TOO_LARGE, REPLY_UNREADABLE
from infrastructure.mcp.transports.stderr_log import StderrLog
from infrastructure.mcp.transports.stdio import StdioTransport
from infrastructure.mcp.transports.stdio_framing import UnreadableLineError
from infrastructure.mcp.transports.stdio_process import StdioCommand, start_process

SERVERS = Path(__file__).with_name("servers")
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nowhere", "SECRET": "not for servers", "SHELL": "() { :; }"}
DEADLINE_S = 60.0
MIB = 1024 * 1024

pytestmark = pytest.mark.usefixtures("patient_with_launchers")


def odd(*arguments: str) -> StdioCommand:
    return StdioCommand(command=sys.executable, args=("-I", "-S", str(SERVERS / "odd_server.py"), *arguments))


def shell(script: str, cwd: Path | None = None) -> StdioCommand:
    return StdioCommand(command="sh", args=("-c", script), cwd=cwd)


def transport_to(command: StdioCommand, log: StderrLog | None = None, *, close_grace_s: float = 0.5) -> StdioTransport:
    start = start_process(command, ENVIRONMENT)
    return StdioTransport(start, log=log or StderrLog(), close_grace_s=close_grace_s, kill_grace_s=0.3)


def text_of(result: CallToolResult) -> str:
    [block] = result.content
    assert isinstance(block, TextContent)
    return block.text


@asynccontextmanager
async def client_of(transport: StdioTransport) -> AsyncIterator[Client]:
    async with asyncio.timeout(DEADLINE_S), Client(transport, mode="legacy") as client:
        await client.list_tools()  # else the SDK lists behind the first call's back
        yield client


@dataclass(frozen=True)
class Footprint:
    """What this process holds: to compare before and after."""

    processes: frozenset[int]
    descriptors: frozenset[str]
    tasks: frozenset[asyncio.Task[object]]

    @classmethod
    def now(cls) -> Self:
        processes = frozenset(pid for pid, _ in descendants(os.getpid()))
        return cls(processes, frozenset(os.listdir("/proc/self/fd")), frozenset(asyncio.all_tasks()))


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


@pytest.mark.requirement("B3", "B4")
@pytest.mark.parametrize(("mode", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
async def test_a_third_party_server_works_in_both_generations(mode: Literal["auto", "legacy"], version: str) -> None:
    command = StdioCommand(command=sys.executable, args=("-m", "mcp_server_time"), env={"TZ": "UTC"})
    async with asyncio.timeout(DEADLINE_S), Client(transport_to(command), mode=mode) as client:
        assert client.protocol_version == version
        assert {tool.name for tool in (await client.list_tools()).tools} == {"get_current_time", "convert_time"}
        arguments = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}

        result = await client.call_tool("convert_time", arguments)

        assert json.loads(text_of(result))["target"]["datetime"].endswith("T21:00:00+09:00")


@pytest.mark.requirement("B3")
async def test_a_server_gets_its_own_environment_and_a_few_safe_names(tmp_path: Path) -> None:
    log = StderrLog()
    command = StdioCommand(command="sh", args=("-c", "env >&2; pwd >&2"), env={"TOKEN": "t"}, cwd=tmp_path)
    transport = transport_to(command, log)
    async with asyncio.timeout(DEADLINE_S), transport as (reader, _):
        with pytest.raises(anyio.EndOfStream):
            await reader.receive()

    lines = log.text().splitlines()
    assert {"TOKEN=t", "HOME=/nowhere", str(tmp_path)} < set(lines)
    assert not any(line.startswith(("SECRET", "SHELL")) for line in lines)


@pytest.mark.requirement("B3")
async def test_concurrent_calls_on_one_server_each_get_their_own_answer() -> None:
    async with client_of(transport_to(odd())) as client:
        # Together the requests are larger than a pipe: writers wait for room.
        sent = [{"number": number, "padding": "p" * 4096} for number in range(100)]
        results = await asyncio.gather(*(client.call_tool("echo", arguments) for arguments in sent))

    assert [json.loads(text_of(result)) for result in results] == sent


@pytest.mark.requirement("B3")
async def test_a_flood_on_stderr_blocks_nothing_and_only_its_end_is_kept() -> None:
    log = StderrLog()
    async with client_of(transport_to(odd("--flood"), log)) as client:
        assert text_of(await client.call_tool("echo", {"a": 1})) == '{"a": 1}'

    assert len(log.text()) <= 64 * 1024
    assert "the end of the flood" in log.text()
    assert log.text().count("63###") == 0  # the beginning of even the last line gave way


@pytest.mark.requirement("B3")
async def test_rubbish_on_stdout_is_counted_shown_and_survived() -> None:
    log = StderrLog()
    surfaced: list[object] = []

    async def surface(message: object) -> None:
        surfaced.append(message)

    transport = transport_to(odd("--rubbish"), log)
    async with asyncio.timeout(DEADLINE_S), Client(transport, mode="legacy", message_handler=surface) as client:
        assert text_of(await client.call_tool("echo", {"a": 1})) == '{"a": 1}'

    assert transport.unreadable_lines == 6 + 5000
    assert len([item for item in surfaced if isinstance(item, UnreadableLineError)]) == 20
    notes = [line for line in log.text().splitlines() if "not a JSON-RPC message" in line]
    assert notes[0] == "[dragoman] not a JSON-RPC message: Welcome to the odd server!"
    assert len(notes) == 5


@pytest.mark.requirement("B3")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_server_that_exits_at_once_fails_the_connection_and_says_why(mode: Literal["auto", "legacy"]) -> None:
    log = StderrLog()
    transport = transport_to(shell("echo 'no licence found' >&2; exit 3"), log)

    with pytest.raises((MCPError, ExceptionGroup)):
        async with asyncio.timeout(DEADLINE_S), Client(transport, mode=mode):
            pass

    assert transport.exit_status == 3
    assert transport.describe_exit() == "exited with code 3"
    assert log.tail(2) == "no licence found\n[dragoman] the server exited with code 3"


@pytest.mark.requirement("B3")
async def test_a_command_that_does_not_exist_fails_the_connection_with_127() -> None:
    log = StderrLog()
    transport = transport_to(StdioCommand(command="no-such-command-here"), log)

    with pytest.raises((MCPError, ExceptionGroup)):
        async with asyncio.timeout(DEADLINE_S), Client(transport):
            pass

    assert transport.exit_status == 127
    assert "cannot run 'no-such-command-here': No such file or directory" in log.text()


async def test_a_working_directory_that_does_not_exist_is_an_error_and_leaks_nothing(tmp_path: Path) -> None:
    before = Footprint.now()

    with pytest.raises(FileNotFoundError):
        await transport_to(shell("true", cwd=tmp_path / "missing")).__aenter__()

    assert Footprint.now() == before


@pytest.mark.requirement("B3")
async def test_a_server_that_dies_in_a_call_fails_the_call_and_says_how() -> None:
    log = StderrLog()
    transport = transport_to(odd(), log)
    async with client_of(transport) as client:
        with pytest.raises(MCPError, match="closed"):
            await client.call_tool("exit", {})

        assert transport.describe_exit() == "exited with code 9"
        assert "out of cheese" in log.text()
        with pytest.raises(MCPError, match="closed"):
            await client.call_tool("echo", {})


@pytest.mark.requirement("B3")
async def test_a_server_killed_by_a_signal_is_described_by_its_name() -> None:
    transport = transport_to(shell("kill -SEGV $$"))
    async with asyncio.timeout(DEADLINE_S), transport as (reader, _):
        with pytest.raises(anyio.EndOfStream):
            await reader.receive()

    assert transport.describe_exit() == "was ended by SIGSEGV"


@pytest.mark.requirement("B11")
@pytest.mark.parametrize("id_last", [False, True])
async def test_a_reply_above_the_limit_fails_its_call_with_its_size_and_no_other(id_last: bool) -> None:
    async with client_of(transport_to(odd())) as client:
        too_large, fine = await asyncio.gather(
            client.call_tool("big", {"size": 6 * MIB, "id_last": id_last}),
            client.call_tool("echo", {"a": 1}),
            return_exceptions=True,
        )
        just_fits = await client.call_tool("big", {"size": 4 * MIB - 200, "id_last": id_last})

    assert isinstance(too_large, MCPError)
    assert too_large.code == REPLY_TOO_LARGE
    size = too_large.data["size"]
    assert 6 * MIB < size < 6 * MIB + 200
    assert too_large.message == f"reply of {size} bytes exceeds the limit of {4 * MIB} bytes"
    assert isinstance(fine, CallToolResult)
    assert text_of(fine) == '{"a": 1}'
    assert len(text_of(just_fits)) == 4 * MIB - 200


@pytest.mark.requirement("B11")
async def test_invalid_text_in_a_reply_is_replaced() -> None:
    async with client_of(transport_to(odd())) as client:
        assert text_of(await client.call_tool("invalid_utf8", {})) == "caf\ufffd"
        assert text_of(await client.call_tool("half_surrogate", {})) == "cut \N{REPLACEMENT CHARACTER}"


async def test_a_reply_that_is_no_json_rpc_fails_its_call_at_once() -> None:
    async with client_of(transport_to(odd())) as client:
        with pytest.raises(MCPError) as failed:
            await client.call_tool("null_result", {})
        assert failed.value.code == REPLY_UNREADABLE
        assert text_of(await client.call_tool("echo", {"a": 1})) == '{"a": 1}'


@pytest.mark.requirement("B4")
async def test_a_batch_is_read_message_by_message() -> None:
    async with client_of(transport_to(odd())) as client:
        assert text_of(await client.call_tool("batched", {})) == "from a batch"


@pytest.mark.requirement("B3")
async def test_closing_ends_a_server_that_ignores_the_end_of_stdin_and_everything_it_started() -> None:
    before = Footprint.now()
    family = StdioCommand(
        command=sys.executable, args=("-I", "-S", str(SERVERS / "family.py"), "daemon", "ignoring", "own_session")
    )
    transport = transport_to(family)
    async with asyncio.timeout(DEADLINE_S), transport as (reader, _):
        started = await reader.receive()  # the list of process ids is no JSON-RPC message
        assert isinstance(started, UnreadableLineError)
        pids = json.loads(started.shown)

    assert len(pids) == 4
    assert alive(pids) == []
    assert Footprint.now() == before


@pytest.mark.requirement("B3")
async def test_a_polite_server_is_not_killed() -> None:
    transport = transport_to(shell("cat >/dev/null; exit 7"), close_grace_s=DEADLINE_S)
    async with asyncio.timeout(DEADLINE_S), transport:
        pass

    assert transport.exit_status == 7


@pytest.mark.requirement("B3")
async def test_a_server_that_never_reads_nor_stops_writing_is_closed_all_the_same() -> None:
    before = Footprint.now()
    async with asyncio.timeout(DEADLINE_S), transport_to(shell("exec yes")) as (reader, writer):
        message = JSONRPCNotification(jsonrpc="2.0", method="notifications/odd", params={"padding": "p" * MIB})
        await writer.send(SessionMessage(message))
        await reader.receive()

    assert Footprint.now() == before


@pytest.mark.requirement("B3")
@pytest.mark.parametrize("steps", [0, 1, 2, 3, 5, 8, 13, 50])
async def test_a_connect_cancelled_at_any_step_leaks_nothing(steps: int) -> None:
    before = Footprint.now()

    async def connect() -> None:
        async with Client(transport_to(odd("--silent")), mode="legacy"):
            raise AssertionError("a silent server was connected to")

    task = asyncio.create_task(connect())
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert Footprint.now() == before


@pytest.mark.requirement("B3")
async def test_a_connect_that_runs_into_a_deadline_leaks_nothing() -> None:
    before = Footprint.now()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1), Client(transport_to(odd("--silent"))):
            raise AssertionError("a silent server was connected to")
    with anyio.move_on_after(0.1) as scope:
        async with Client(transport_to(odd("--silent")), mode="legacy"):
            raise AssertionError("a silent server was connected to")

    assert scope.cancelled_caught
    assert Footprint.now() == before


@pytest.mark.requirement("B3")
async def test_closing_completes_when_it_is_cancelled_itself() -> None:
    before = Footprint.now()
    closing = asyncio.Event()

    async def connection() -> None:
        async with transport_to(shell("trap '' TERM; while :; do read x || sleep 1; done")):
            closing.set()

    task = asyncio.create_task(connection())
    await closing.wait()
    for _ in range(5):  # the first ones arrive while it waits for a polite exit
        await asyncio.sleep(0)
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert Footprint.now() == before


@pytest.mark.requirement("B8")
async def test_connections_come_and_go_without_a_trace() -> None:
    async with client_of(transport_to(odd())):
        pass
    before = Footprint.now()

    for _ in range(20):
        async with client_of(transport_to(odd())) as client:
            await client.call_tool("echo", {})

    assert Footprint.now() == before


def test_the_transport_works_on_uvloop() -> None:
    async def story() -> None:
        before = Footprint.now()
        transport = transport_to(odd())
        async with client_of(transport) as client:
            assert text_of(await client.call_tool("echo", {"padding": "p" * MIB}))
            with pytest.raises(MCPError, match="exceeds"):
                await client.call_tool("big", {"size": 5 * MIB, "id_last": True})
            with pytest.raises(MCPError, match="closed"):
                await client.call_tool("exit", {})
        assert transport.exit_status == 9
        assert Footprint.now() == before

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(story())


@pytest.mark.parametrize(
    "make",
    [
        lambda: StdioCommand(command=""),
        lambda: StdioCommand(command="a\0b"),
        lambda: StdioCommand(command="a", args=("\0",)),
        lambda: StdioCommand(command="a", env={"A=B": "c"}),
        lambda: StdioCommand(command="a", env={"": "c"}),
    ],
)
def test_a_command_that_cannot_be_passed_to_the_system_is_refused(make: Callable[[], StdioCommand]) -> None:
    with pytest.raises(ValueError, match=r"may not|is empty"):
        make()
