"""What servers ask in the middle of a call, through the gateway: clients and servers of both
generations, each with each."""

import asyncio
import itertools
import json
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
    INVALID_PARAMS,
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

from tests.databases import PostgresDatabases
from tests.e2e.postgres import Cluster, cluster
from tests.e2e.processes import until
from tests.e2e.service import Json, Service, a_turn, serving
from tests.integration.mcp.parts import SERVERS, accepts, free_port

pytestmark = pytest.mark.timeout(300)

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
        async with asyncio.timeout(150), connected(opened(service), mode, person) as client:
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
        async with asyncio.timeout(150), connected(session, mode, person) as client:
            assert (await client.call_tool("imagine", {})).is_error
            assert (await client.call_tool("look", {})).is_error
        assert person.asked == []
        async with asyncio.timeout(150), connected(session, mode, None) as client:
            code = await refused(client, "paint", {"thing": "door"})
        assert code == (MISSING_REQUIRED_CLIENT_CAPABILITY if (mode, upstream) == ("auto", "modern") else None)


class Poster:
    """A client that speaks for itself: it calls at one process, and says what it has to say at
    another."""

    def __init__(self, http: httpx2.AsyncClient, here: str, there: str) -> None:
        self._http = http
        self._here = here
        self._there = there
        self._headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}

    async def shaken(self) -> None:
        params = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "c"}}
        message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        answer = await self._http.post(self._here, json=message, headers=self._headers)
        self._headers["mcp-session-id"] = answer.headers["mcp-session-id"]

    @asynccontextmanager
    async def called(self, tool: str, arguments: Json) -> AsyncIterator[AsyncIterator[Json]]:
        """What comes on the stream of a call with the id 1."""
        params = {"name": tool, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        async with self._http.stream("POST", self._here, json=message, headers=self._headers) as response:
            assert response.headers["content-type"] == "text/event-stream"
            yield _messages(response)

    async def say(self, message: Json) -> int:
        """The status with which the other process takes it."""
        told = await self._http.post(self._there, json={"jsonrpc": "2.0", **message}, headers=self._headers)
        return told.status_code


async def _messages(response: httpx2.Response) -> AsyncIterator[Json]:
    async for line in response.aiter_lines():
        if line.startswith("data: "):
            yield json.loads(line[len("data: ") :])


@pytest.fixture
def processes(tmp_path: Path, postgres_databases: PostgresDatabases) -> Iterator[Cluster]:
    with postgres_databases.fresh() as url, cluster(url, tmp_path) as prepared:
        yield prepared


@pytest.mark.requirement("F5", "E6")
async def test_an_answer_and_a_cancellation_are_posted_to_another_process(processes: Cluster) -> None:
    first, second = processes.serve("first"), processes.serve("second")
    with asking_server(first, "modern", **ALLOWED):
        session = opened(first)
        headers = {"Authorization": f"Bearer {session['token']}"}
        async with asyncio.timeout(150), httpx2.AsyncClient(headers=headers, timeout=60) as http:
            poster = Poster(http, f"{first.url}/mcp", f"{second.url}/mcp")
            await poster.shaken()
            async with poster.called("paint", {"thing": "door"}) as messages:
                question = await anext(messages)
                assert question["method"] == "elicitation/create"
                assert await poster.say({"id": "gwn_guessed", "result": {"action": "accept"}}) == 400
                answer = {"action": "accept", "content": {"colour": "red"}}
                assert await poster.say({"id": question["id"], "result": answer}) == 202
                told = await anext(messages)
                assert told["result"]["content"][0]["text"] == "door: red"
            assert await poster.say({"id": question["id"], "result": answer}) == 400
            async with poster.called("paint", {"thing": "gate"}) as messages:
                question = await anext(messages)
                taken_back = {"method": "notifications/cancelled", "params": {"requestId": 1}}
                assert await poster.say(taken_back) == 202
                news = [await anext(messages), await anext(messages)]
                assert news[0]["params"]["requestId"] == question["id"]
                assert "error" in news[1]


@pytest.mark.requirement("F5", "E6")
async def test_a_client_of_the_newer_generation_comes_back_to_another_process(processes: Cluster) -> None:
    first, second = processes.serve("first"), processes.serve("second")
    urls = itertools.cycle([f"{first.url}/mcp", f"{second.url}/mcp"])
    answers = {"Which colour for the garden?": {"colour": "red"}, "How many metres of red?": {"metres": 3}}
    with asking_server(first, "legacy", **ALLOWED):
        headers = {"Authorization": f"Bearer {opened(first)['token']}"}
        async with asyncio.timeout(150), httpx2.AsyncClient(headers=headers, timeout=60) as http:
            again: Json = {}
            for question, content in answers.items():
                told = (await modern_call(http, next(urls), again)).json()["result"]
                ((key, asked),) = told["inputRequests"].items()
                assert (told["resultType"], asked["params"]["message"]) == ("input_required", question)
                given = {key: {"action": "accept", "content": content}}
                again = {"requestState": told["requestState"], "inputResponses": given}
            told = (await modern_call(http, next(urls), again)).json()["result"]
            assert (told["resultType"], told["content"][0]["text"]) == ("complete", "garden: 3 m of red")
            used = await modern_call(http, next(urls), again)
            assert used.json()["error"]["code"] == INVALID_PARAMS


async def modern_call(http: httpx2.AsyncClient, url: str, again: Json) -> httpx2.Response:
    """A call of `fence` by a client that can fill in forms."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    }
    params = {"name": "fence", "arguments": {"thing": "garden"}, "_meta": meta, **again}
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "fence"}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return await http.post(url, json=message, headers={**headers, "accept": "application/json"})
