"""What servers ask in the middle of a call, through the gateway: clients and servers of both generations, each with each."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.session import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolResult,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    ListRootsResult,
    Root,
    TextContent,
)
from pydantic import FileUrl

from tests.e2e.processes import until
from tests.e2e.service import Json, Service, a_turn, serving
from tests.integration.mcp.parts import SERVERS, accepts, free_port

ASKING = SERVERS / "asking_server.py"
ALLOWED = {"elicitation": "ask", "sampling": "pass", "roots": "pass"}
CLIENTS, UPSTREAMS = ["legacy", "auto"], ["legacy", "modern"]


@dataclass(slots=True)
class Person:
    """Whoever is behind a client: what was asked, and what is answered to it."""

    action: str = "accept"
    asked: list[str] = field(default_factory=list)

    async def fill_in(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        self.asked.append(params.message)
        if self.action != "accept":
            return ElicitResult(action="decline")
        if not isinstance(params, ElicitRequestFormParams):
            return ElicitResult(action="accept")
        return ElicitResult(action="accept", content={"metres": 3} if "metres" in params.message else {"colour": "red"})

    async def think(self, context: ClientRequestContext, params: CreateMessageRequestParams) -> CreateMessageResult:
        self.asked.append("sampling")
        return CreateMessageResult(role="assistant", content=TextContent(type="text", text="blue"), model="mine")

    async def roots(self, context: ClientRequestContext) -> ListRootsResult:
        self.asked.append("roots")
        return ListRootsResult(roots=[Root(uri=FileUrl("file:///home/me"))])


@contextmanager
def asking_server(service: Service, generation: str, **settings: object) -> Iterator[None]:
    """The server `asking`, of one generation."""
    if generation == "modern":
        service.server("asking", sys.executable, str(ASKING), **settings)
        yield
        return
    port = free_port()
    process = subprocess.Popen([sys.executable, str(ASKING), str(port)], stderr=subprocess.DEVNULL)
    try:
        until(lambda: accepts(port), what="the asking server")
        body = {"slug": "asking", "kind": "sse", "url": f"http://127.0.0.1:{port}/sse", "isolation": "run", **settings}
        service.call("POST", "/mcp-servers", body)
        yield
    finally:
        process.kill()
        process.wait()


def opened(service: Service) -> Json:
    """A session with the tools of the server, under its own names."""
    service.agent("helper", service.script("helper", a_turn("Hello.")), mcp_servers=["asking"], tools=[])
    return service.call("POST", "/gateway-sessions", {"agent_id": "helper", "names": "original"})


@asynccontextmanager
async def connected(session: Json, mode: str, person: Person | None, url: str | None = None) -> AsyncIterator[Client]:
    """An official client; without a person it can be asked nothing."""
    headers = {"Authorization": f"Bearer {session['token']}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        transport = streamable_http_client(url or session["url"], http_client=http)
        if person is None:
            async with Client(transport, mode=mode) as client:
                yield client
            return
        async with Client(
            transport,
            mode=mode,
            elicitation_callback=person.fill_in,
            sampling_callback=person.think,
            list_roots_callback=person.roots,
        ) as client:
            yield client


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


async def refused(client: Client, tool: str, arguments: dict[str, object]) -> int | None:
    """The code of the error that a call is answered with; None for a result that says so."""
    try:
        answer = await client.call_tool(tool, arguments)
    except MCPError as error:
        return error.code
    assert answer.is_error
    return None


def asked_in_audit(service: Service) -> list[object]:
    """What the audit entries of calls say was asked, oldest first."""
    entries = service.call("GET", "/audit-events?limit=50")["data"]
    return [entry["details"]["asked"] for entry in reversed(entries) if "asked" in entry["details"]]


@pytest.mark.requirement("F5", "B4")
@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("mode", CLIENTS)
async def test_a_servers_questions_reach_the_client_of_the_call_and_its_answers_the_server(
    tmp_path: Path, mode: str, upstream: str
) -> None:
    person = Person()
    with serving(tmp_path / "home") as service, asking_server(service, upstream, **ALLOWED):
        async with asyncio.timeout(60), connected(opened(service), mode, person) as client:
            assert text_of(await client.call_tool("paint", {"thing": "door"})) == "door: red"
            assert text_of(await client.call_tool("fence", {"thing": "garden"})) == "garden: 3 m of red"
            assert "blue" in text_of(await client.call_tool("imagine", {}))
            assert "file:///home/me" in text_of(await client.call_tool("look", {}))
            person.action = "decline"
            declined = await client.call_tool("paint", {"thing": "door"})
            assert declined.is_error
        assert person.asked == [
            "Which colour for the door?",
            "Which colour for the garden?",
            "How many metres of red?",
            "sampling",
            "roots",
            "Which colour for the door?",
        ]
        assert asked_in_audit(service) == [
            [{"kind": "elicitation", "answer": "accept"}],
            [{"kind": "elicitation", "answer": "accept"}] * 2,
            [{"kind": "sampling", "answer": "given"}],
            [{"kind": "roots", "answer": "given"}],
            [{"kind": "elicitation", "answer": "decline"}],
        ]


@pytest.mark.requirement("F5")
@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("mode", CLIENTS)
async def test_a_client_that_cannot_be_asked_and_a_server_that_may_not_ask_are_told(
    tmp_path: Path, mode: str, upstream: str
) -> None:
    person = Person()
    with serving(tmp_path / "home") as service, asking_server(service, upstream, elicitation="ask"):
        session = opened(service)
        async with asyncio.timeout(60), connected(session, mode, person) as client:
            assert (await client.call_tool("imagine", {})).is_error
            assert (await client.call_tool("look", {})).is_error
        assert person.asked == []
        async with asyncio.timeout(60), connected(session, mode, None) as client:
            code = await refused(client, "paint", {"thing": "door"})
        assert code == (MISSING_REQUIRED_CLIENT_CAPABILITY if (mode, upstream) == ("auto", "modern") else None)
