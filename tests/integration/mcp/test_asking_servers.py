"""Servers of the official SDK that ask for input in the middle of a call, over stdio and HTTP, in
both generations."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from application.mcp.ports import (
    ConnectionScope,
    McpCall,
    McpConnections,
    McpFailure,
    McpFailureKind,
    McpInputRequired,
    McpReply,
)
from domain.json_value import JsonObject
from domain.mcp.behavior import ElicitationPolicy
from domain.mcp.server import Isolation, McpServer, McpServerKind
from infrastructure.mcp.connections.negotiation import Negotiate, negotiate_any, negotiate_handshake
from tests.builders import a_run_id
from tests.integration.mcp.parts import (
    EVERYTHING,
    IN_RUN,
    PATIENCE_S,
    SERVERS,
    everything,
    remote,
    scope,
    sdk_connections,
    serving,
    started,
    text_of,
)
from tests.integration.mcp.servers import asking_server

LATER = scope(run_id=a_run_id(2))
TRANSPORTS = ("stdio", "http")
GENERATIONS: dict[str, Negotiate] = {"modern": negotiate_any, "handshake": negotiate_handshake}


@asynccontextmanager
async def an_asking_server(
    transport: str, generation: str, policy: ElicitationPolicy = ElicitationPolicy.ASK
) -> AsyncIterator[tuple[McpConnections, McpServer]]:
    """The server, and connections to it that speak the generation."""
    async with sdk_connections(negotiate=GENERATIONS[generation]) as connections:
        if transport == "stdio":
            yield connections, started(sys.executable, str(SERVERS / "asking_server.py"), elicitation=policy)
            return
        async with serving(asking_server.server.streamable_http_app()) as url:
            yield connections, remote(f"{url}/mcp", isolation=Isolation.RUN, elicitation=policy)
            await connections.release(IN_RUN)
            await connections.release(LATER)


async def called(
    connections: McpConnections,
    server: McpServer,
    tool: str,
    *,
    answers: dict[str, JsonObject] | None = None,
    state: str | None = None,
    within: ConnectionScope = IN_RUN,
    thing: str | None = None,
) -> McpReply:
    asks = server.config.elicitation is ElicitationPolicy.ASK
    call = McpCall(
        tool_name=tool,
        arguments={} if thing is None else {"thing": thing},
        timeout_s=PATIENCE_S,
        accepts_input=asks,
        input_responses=answers,
        request_state=state,
    )
    return await connections.call_tool(server, within, call)


def asked(reply: McpReply) -> McpInputRequired:
    assert reply.input_required is not None
    return reply.input_required


async def refusal(connections: McpConnections, server: McpServer, tool: str) -> str:
    """What the server says of a call that it cannot finish, in whichever way it does."""
    try:
        reply = await called(connections, server, tool, thing="door" if tool == "paint" else None)
    except McpFailure as failure:
        return failure.detail if failure.kind is McpFailureKind.SERVER_ERROR else ""
    return text_of(reply) if reply.is_error and reply.input_required is None else ""


@pytest.mark.requirement("B4")
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("generation", GENERATIONS)
async def test_a_call_that_asks_is_answered_when_it_is_sent_again(transport: str, generation: str) -> None:
    async with an_asking_server(transport, generation) as (connections, server):
        first = asked(await called(connections, server, "paint", thing="door"))
        [question] = first.questions
        assert question.message == "Which colour for the door?"
        assert question.schema is not None
        assert question.schema["required"] == ["colour"]
        assert first.ended is (generation == "handshake")
        assert (first.request_state is None) is (generation == "handshake")
        # Servers of this SDK sign their state with a key of their process.
        later = IN_RUN if (transport, generation) == ("stdio", "modern") else LATER

        answers: dict[str, JsonObject] = {question.request_id: {"action": "accept", "content": {"colour": "red"}}}
        reply = await called(
            connections, server, "paint", answers=answers, state=first.request_state, within=later, thing="door"
        )
        assert reply.input_required is None
        assert text_of(reply) == "door: red"


@pytest.mark.requirement("B4")
@pytest.mark.parametrize("generation", GENERATIONS)
async def test_a_call_may_ask_again_after_an_answer(generation: str) -> None:
    async with an_asking_server("http", generation) as (connections, server):
        first = asked(await called(connections, server, "fence", thing="garden"))
        answers: dict[str, JsonObject] = {
            first.questions[0].request_id: {"action": "accept", "content": {"colour": "blue"}}
        }
        second = asked(
            await called(connections, server, "fence", answers=answers, state=first.request_state, thing="garden")
        )
        [question] = second.questions
        assert question.message == "How many metres of blue?"
        earlier = answers if second.ended else {}
        answers = {**earlier, question.request_id: {"action": "accept", "content": {"metres": 4}}}
        reply = await called(connections, server, "fence", answers=answers, state=second.request_state, thing="garden")
        assert text_of(reply) == "garden: 4 m of blue"


@pytest.mark.requirement("B4")
@pytest.mark.parametrize("generation", GENERATIONS)
async def test_a_declined_question_reaches_the_server_as_such(generation: str) -> None:
    async with an_asking_server("http", generation) as (connections, server):
        first = asked(await called(connections, server, "paint", thing="door"))
        answers: dict[str, JsonObject] = {first.questions[0].request_id: {"action": "decline"}}
        reply = await called(connections, server, "paint", answers=answers, state=first.request_state, thing="door")
        assert (reply.is_error, reply.input_required) == (True, None)
        assert "decline" in text_of(reply)


@pytest.mark.requirement("B4")
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize(
    ("tool", "policy"),
    [
        ("paint", ElicitationPolicy.DECLINE),
        ("imagine", ElicitationPolicy.DECLINE),
        ("imagine", ElicitationPolicy.ASK),
        ("look", ElicitationPolicy.ASK),
    ],
)
async def test_what_is_not_given_is_declined_and_the_connection_lives_on(
    transport: str, generation: str, tool: str, policy: ElicitationPolicy
) -> None:
    async with an_asking_server(transport, generation, policy) as (connections, server):
        for _ in range(2):
            assert await refusal(connections, server, tool)


@asynccontextmanager
async def an_everything_server(transport: str, policy: ElicitationPolicy) -> AsyncIterator[McpServer]:
    if transport == "stdio":
        yield started("node", EVERYTHING, "stdio", elicitation=policy)
        return
    path, kind = ("/mcp", McpServerKind.HTTP) if transport == "streamableHttp" else ("/sse", McpServerKind.SSE)
    async with everything(transport) as address:
        yield remote(address + path, kind, elicitation=policy)


@pytest.mark.requirement("B4")
@pytest.mark.parametrize("transport", ["stdio", "streamableHttp", "sse"])
async def test_a_real_server_of_the_older_generation_asks_and_is_answered(transport: str) -> None:
    tool = "trigger-elicitation-request"
    async with an_everything_server(transport, ElicitationPolicy.ASK) as server, sdk_connections() as connections:
        listed = await connections.discover(server, IN_RUN, timeout_s=PATIENCE_S)
        assert listed.find(tool) is not None, "it offers the tool to those who can be asked"
        first = asked(await called(connections, server, tool))
        [question] = first.questions
        assert question.schema is not None
        answers: dict[str, JsonObject] = {
            question.request_id: {"action": "accept", "content": {"name": "Ada of the tests"}}
        }
        reply = await called(connections, server, tool, answers=answers)
        assert reply.input_required is None
        assert "Ada of the tests" in text_of(reply)


@pytest.mark.requirement("B4")
async def test_a_real_server_does_not_offer_to_ask_where_nobody_is_asked() -> None:
    async with an_everything_server("stdio", ElicitationPolicy.DECLINE) as server, sdk_connections() as connections:
        listed = await connections.discover(server, IN_RUN, timeout_s=PATIENCE_S)
        assert [tool.name for tool in listed.tools if "elicitation" in tool.name or "sampling" in tool.name] == []
