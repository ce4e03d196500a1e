"""Log messages of real servers: told to whoever makes the call that they are about, and to nobody
else."""

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from application.mcp.log_messages import LogTap, McpLogMessage
from domain.json_value import JsonValue
from domain.mcp.log_level import LogLevel
from domain.mcp.server import Isolation, McpServer
from infrastructure.mcp.connections.negotiation import Negotiate, negotiate_any, negotiate_handshake
from infrastructure.mcp.log_relay import MAX_DATA_BYTES, MAX_MESSAGES, LogRelay
from tests.integration.mcp.parts import (
    IN_RUN,
    ISOLATED_PYTHON,
    SERVERS,
    a_call,
    remote,
    sdk_connections,
    serving,
    started,
    text_of,
    until,
)
from tests.integration.mcp.servers.talking_server import talking_server

pytestmark = pytest.mark.requirement("F5")


@dataclass(slots=True)
class Ear:
    """Who wants to hear the messages of a call."""

    level: LogLevel = LogLevel.DEBUG
    heard: list[McpLogMessage] = field(default_factory=list)

    @property
    def tap(self) -> LogTap:
        async def tell(message: McpLogMessage) -> None:
            self.heard.append(message)

        return LogTap(level=self.level, tell=tell)

    @property
    def levels(self) -> list[str]:
        return [message.level.value for message in self.heard]


def logging_server(**settings: Any) -> McpServer:
    return started(*ISOLATED_PYTHON, str(SERVERS / "logging_server.py"), **settings)


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize("negotiate", [negotiate_any, negotiate_handshake])
async def test_over_http_messages_come_with_the_answer_that_they_belong_to(negotiate: Negotiate) -> None:
    mine, theirs, deaf = Ear(LogLevel.INFO), Ear(LogLevel.ERROR), Ear()
    async with serving(talking_server().streamable_http_app()) as url, sdk_connections(negotiate=negotiate) as sdk:
        server = remote(f"{url}/mcp")
        calls = [
            replace(a_call("work", say="mine"), logs=mine.tap),
            replace(a_call("work", say="theirs"), logs=theirs.tap),
            a_call("work", say="nobody's"),
        ]
        await asyncio.gather(*(sdk.call_tool(server, IN_RUN, call) for call in calls))

    assert [message.as_json() for message in mine.heard if message.data != "in general"] == [
        {"level": "info", "data": {"say": "mine"}, "logger": "w"},
        {"level": "error", "data": {"say": "mine"}, "logger": "w"},
    ]
    assert [message.data for message in theirs.heard if message.data != "in general"] == [{"say": "theirs"}]
    assert deaf.heard == []
    # What is said in general is of nobody, unless the protocol has it come with the answer.
    general = [message for message in (*mine.heard, *theirs.heard) if message.data == "in general"]
    assert len(general) == (2 if negotiate is negotiate_any else 0)


async def test_what_a_started_server_says_is_told_where_nobody_else_uses_it() -> None:
    ear = Ear(LogLevel.ERROR)
    async with sdk_connections() as sdk:
        server = logging_server()
        reply = await sdk.call_tool(server, IN_RUN, replace(a_call("work"), logs=ear.tap))
        assert ear.levels == ["error", "critical", "alert", "emergency"]
        assert text_of(reply) == '["error", 1]'

        # A server is told the least severe level that anybody wants, and each is told no more than
        # it asked for.
        again = Ear(LogLevel.EMERGENCY)
        await sdk.call_tool(server, IN_RUN, replace(a_call("work"), logs=again.tap))
        more = Ear(LogLevel.NOTICE)
        reply = await sdk.call_tool(server, IN_RUN, replace(a_call("work"), logs=more.tap))
        assert (again.levels, more.levels[0], text_of(reply)) == (["emergency"], "notice", '["notice", 2]')


async def test_what_a_started_server_says_while_it_has_several_calls_is_told_to_nobody() -> None:
    first, second = Ear(), Ear()
    async with sdk_connections() as sdk:
        server = logging_server()
        held = asyncio.create_task(sdk.call_tool(server, IN_RUN, replace(a_call("work", hold=True), logs=first.tap)))
        await until(lambda: len(first.heard) == 8)
        await sdk.call_tool(server, IN_RUN, replace(a_call("work"), logs=second.tap))
        await held
    assert (len(first.heard), second.heard) == (8, [])


async def test_what_a_shared_started_server_says_is_told_to_nobody() -> None:
    ear = Ear()
    async with sdk_connections() as sdk:
        server = logging_server(isolation=Isolation.SHARED)
        assert text_of(await sdk.call_tool(server, IN_RUN, replace(a_call("work"), logs=ear.tap))) == '["debug", 1]'
    assert ear.heard == []


async def test_a_message_of_a_server_does_not_tell_its_secrets() -> None:
    ear = Ear(LogLevel.EMERGENCY)
    async with sdk_connections() as sdk:
        server = logging_server(env={"TOKEN": "a-value-that-is-secret"})
        say: JsonValue = {"token": ["a-value-that-is-secret"], "bell": "\x07ding"}
        await sdk.call_tool(server, IN_RUN, replace(a_call("work", say=say), logs=ear.tap))
    [message] = ear.heard
    assert "a-value-that-is-secret" not in str(message.data)
    assert message.data["bell"] == "ding"  # type: ignore[index,call-overload]


async def test_messages_are_bounded_in_size_and_number() -> None:
    ear = Ear(LogLevel.INFO)
    relay = LogRelay(ear.tap)
    relay.put({"level": "info", "data": "x" * MAX_DATA_BYTES})
    for odd in ({"level": "loud", "data": 1}, {"level": "info"}, {"data": 1}, {"level": 3, "data": 1}):
        relay.put(odd)
    for number in range(2 * MAX_MESSAGES):
        relay.put({"level": "info", "data": number, "logger": "n" * 1_000})
    await relay.finish(10)

    assert len(ear.heard) == MAX_MESSAGES + 1
    assert str(ear.heard[0].data).startswith("(a message of 16386 bytes")
    assert len(ear.heard[1].logger or "") == 128
    assert (ear.heard[-1].level, ear.heard[-1].logger) == (LogLevel.WARNING, "dragoman")
