"""Secrets of each person on their way to real servers: whose the server gets, and what happens when
they change."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from application.mcp.ports import ConnectionScope, McpFailure, McpFailureKind, ServerState
from domain.ids import UserId
from domain.mcp.given_secrets import AccountOwner, GivenSecrets, binding_of_secrets
from domain.mcp.server import Credentials, Isolation, McpServer
from domain.secrets.secret import SecretRef
from infrastructure.mcp.connections.pool import SdkMcpConnections
from infrastructure.secrets.redaction import REDACTED, Redactor
from tests.builders import ORG, RUN, START, THREAD
from tests.doubles.person_secrets import InMemoryPersonSecretStore
from tests.doubles.state import InMemoryState
from tests.integration.mcp.parts import a_call, remote, sdk_connections, serving, text_of
from tests.integration.mcp.servers.http_server import result_of
from tests.people_builders import a_user

pytestmark = pytest.mark.requirement("P3")

ANN, BEN = UserId("usr_ann"), UserId("usr_ben")


@dataclass
class Protected:
    """An MCP server that knows people by `X-Token`, or by `key` in its URL, and says the name of
    who calls."""

    people: dict[str, str] = field(default_factory=dict)
    sent: list[str] = field(default_factory=list)

    async def answer(self, request: Request) -> Response:
        token = request.headers.get("x-token") or request.query_params.get("key", "")
        self.sent.append(token)
        if token not in self.people:
            return Response(status_code=401)
        if request.method != "POST":
            return Response(status_code=405)
        message = await request.json()
        if "id" not in message:
            return Response(status_code=202)
        result = result_of(message["method"], message.get("params", {}))
        if message["method"] == "tools/call":
            told = {"leak": f"leaked {token}", "guess": "tok-ann tok-ben"}.get(
                message["params"]["name"], self.people[token]
            )
            result = {"content": [{"type": "text", "text": told}]}
        reply = {"error": {"code": -32601, "message": "No."}} if result is None else {"result": result}
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], **reply})

    @property
    def app(self) -> Starlette:
        return Starlette(routes=[Route("/mcp", self.answer, methods=["GET", "POST", "DELETE"])])


@dataclass
class World:
    protected: Protected
    secrets: InMemoryPersonSecretStore
    state: InMemoryState
    connections: SdkMcpConnections
    server: McpServer
    redactor: Redactor

    async def give(self, person: UserId, token: str, *, server: McpServer | None = None) -> None:
        of = server or self.server
        given = GivenSecrets(
            binding=binding_of_secrets(of.config), revision=f"of {token}", given_at=START, values={"token": token}
        )
        assert await self.secrets.save(AccountOwner(ORG, of.id, person), lambda _: given)

    async def says(self, person: UserId | None, tool: str = "whoami", *, server: McpServer | None = None) -> str:
        scope = ConnectionScope(organization_id=ORG, thread_id=THREAD, run_id=RUN, person_id=person)
        return text_of(await self.connections.call_tool(server or self.server, scope, a_call(tool)))

    async def failure(self, person: UserId | None, *, server: McpServer | None = None) -> McpFailure:
        with pytest.raises(McpFailure) as failed:
            await self.says(person, server=server)
        return failed.value


@asynccontextmanager
async def a_world(isolation: Isolation = Isolation.SHARED, *, in_url: bool = False) -> AsyncIterator[World]:
    """Ann and Ben have accounts at the server; it knows them by `tok-ann` and `tok-ben`."""
    protected = Protected(people={"tok-ann": "Ann", "tok-ann-2": "Ann", "tok-ben": "Ben"})
    state, redactor = InMemoryState(), Redactor()
    secrets = InMemoryPersonSecretStore(state)
    for person in (ANN, BEN):
        state.users[person] = a_user(person, subject=person)
    async with (
        serving(protected.app) as url,
        sdk_connections(person_secrets=secrets, redactor=redactor) as connections,
    ):
        headers = {} if in_url else {"X-Token": SecretRef("person:token")}
        query = "?key=${secret:person:token}" if in_url else ""
        server = remote(
            f"{url}/mcp{query}",
            credentials=Credentials.PERSON,
            isolation=isolation,
            max_concurrency=50,
            headers=headers,
        )
        state.servers[server.id] = server
        yield World(
            protected=protected, secrets=secrets, state=state, connections=connections, server=server, redactor=redactor
        )


@pytest.mark.parametrize("isolation", list(Isolation))
@pytest.mark.parametrize("in_url", [False, True], ids=["header", "url"])
async def test_each_person_acts_with_their_own_secret_on_a_connection_of_their_own(
    isolation: Isolation, in_url: bool
) -> None:
    async with a_world(isolation, in_url=in_url) as world:
        await world.give(ANN, "tok-ann")
        await world.give(BEN, "tok-ben")
        assert [await world.says(person) for person in (ANN, BEN, ANN)] == ["Ann", "Ben", "Ann"]
        assert world.connections.connection_count == 2


async def test_without_a_secret_or_a_person_nothing_is_sent_and_the_server_is_not_in_trouble() -> None:
    async with a_world() as world:
        await world.give(ANN, "tok-ann")
        assert await world.says(ANN) == "Ann"
        sent = len(world.protected.sent)
        for person in (BEN, None):
            assert (await world.failure(person)).kind is McpFailureKind.NEEDS_AUTH
        assert len(world.protected.sent) == sent
        assert world.connections.status(world.server).state is ServerState.CONNECTED


async def test_an_answer_to_one_person_does_not_tell_the_secret_of_another() -> None:
    async with a_world() as world:
        await world.give(ANN, "tok-ann")
        await world.give(BEN, "tok-ben")
        for person in (ANN, BEN):
            await world.says(person)
        assert await world.says(ANN, "guess") == f"{REDACTED} tok-ben"
        assert await world.says(BEN, "guess") == f"tok-ann {REDACTED}"


async def test_a_replaced_secret_is_used_at_once_and_a_deleted_one_no_more() -> None:
    async with a_world() as world:
        await world.give(ANN, "tok-ann")
        await world.says(ANN)
        await world.give(ANN, "tok-ann-2")
        world.protected.sent.clear()
        assert await world.says(ANN) == "Ann"
        assert set(world.protected.sent) == {"tok-ann-2"}
        assert await world.secrets.remove(AccountOwner(ORG, world.server.id, ANN))
        assert (await world.failure(ANN)).kind is McpFailureKind.NEEDS_AUTH


async def test_a_deactivated_person_is_used_no_more() -> None:
    async with a_world() as world:
        await world.give(ANN, "tok-ann")
        await world.says(ANN)
        del world.state.users[ANN]
        assert (await world.failure(ANN)).kind is McpFailureKind.NEEDS_AUTH


async def test_a_secret_that_the_server_refuses_is_asked_for_again() -> None:
    async with a_world() as world:
        await world.give(ANN, "tok-old")
        assert (await world.failure(ANN)).kind is McpFailureKind.NEEDS_AUTH
        await world.give(ANN, "tok-ann")
        assert await world.says(ANN) == "Ann"


async def test_a_server_that_moved_gets_no_secret_that_was_given_for_its_former_address() -> None:
    async with a_world() as world, serving(Protected().app) as elsewhere:
        await world.give(ANN, "tok-ann")
        config = replace(world.server.config, url=f"{elsewhere}/mcp")
        moved = replace(world.server, version=2, config=config)
        assert (await world.failure(ANN, server=moved)).kind is McpFailureKind.NEEDS_AUTH


async def test_a_server_that_tells_the_secret_does_not_get_it_to_the_model_nor_to_logs() -> None:
    async with a_world() as world:
        await world.give(ANN, "tok-ann")
        assert await world.says(ANN, "leak") == f"leaked {REDACTED}"
        assert "tok-ann" not in world.redactor.redact("it said tok-ann")


async def test_interleaved_calls_of_many_people_mix_up_no_secrets() -> None:
    async with a_world() as world:
        people = [UserId(f"usr_{number:02}") for number in range(20)]
        for person in people:
            world.state.users[person] = a_user(person, subject=person)
            world.protected.people[f"tok-{person}"] = person
            await world.give(person, f"tok-{person}")
        calls = [people[number % len(people)] for number in range(400)]
        assert await asyncio.gather(*(world.says(person) for person in calls)) == calls
