"""Secrets of each person in the processes of a started server: whose secret each process has, and
what others notice of it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from application.mcp.ports import ConnectionScope, McpCall, McpFailure, McpFailureKind, ServerState
from domain.ids import UserId
from domain.mcp.given_secrets import AccountOwner, GivenSecrets, binding_of_secrets
from domain.mcp.restarts import RestartLimit
from domain.mcp.server import Credentials, Isolation, McpServer
from domain.secrets.secret import SecretRef
from infrastructure.mcp.connections.pool import SdkMcpConnections
from infrastructure.secrets.redaction import REDACTED, Redactor
from tests.builders import ORG, OTHER_ORG, RUN, START, THREAD
from tests.doubles.person_secrets import InMemoryPersonSecretStore
from tests.doubles.state import InMemoryState
from tests.integration.mcp.parts import (
    ISOLATED_PYTHON,
    PATIENCE_S,
    SERVERS,
    sdk_connections,
    started,
    text_of,
    until,
)
from tests.people_builders import a_user

pytestmark = pytest.mark.requirement("P3")

ANN, BEN = UserId("usr_ann"), UserId("usr_ben")


def person_server(*, isolation: Isolation = Isolation.SHARED, **settings: Any) -> McpServer:
    settings = {"env": {"TOKEN": SecretRef("person:token")}, "max_concurrency": 50, **settings}
    command = (*ISOLATED_PYTHON, str(SERVERS / "person_server.py"))
    return started(*command, credentials=Credentials.PERSON, isolation=isolation, **settings)


@dataclass
class World:
    secrets: InMemoryPersonSecretStore
    state: InMemoryState
    connections: SdkMcpConnections
    server: McpServer
    redactor: Redactor

    async def give(self, person: UserId, token: str) -> None:
        given = GivenSecrets(
            binding=binding_of_secrets(self.server.config),
            revision=token[::-1],
            given_at=START,
            values={"token": token},
        )
        assert await self.secrets.save(AccountOwner(ORG, self.server.id, person), lambda _: given)

    async def remove(self, person: UserId) -> None:
        assert await self.secrets.remove(AccountOwner(ORG, self.server.id, person))

    async def says(
        self, person: UserId | None, tool: str = "whoami", *, server: McpServer | None = None, **arguments: str
    ) -> str:
        scope = ConnectionScope(organization_id=ORG, thread_id=THREAD, run_id=RUN, person_id=person)
        return text_of(
            await self.connections.call_tool(
                server or self.server, scope, McpCall(tool_name=tool, arguments={**arguments}, timeout_s=PATIENCE_S)
            )
        )

    async def failure(
        self, person: UserId | None, tool: str = "whoami", *, server: McpServer | None = None
    ) -> McpFailure:
        with pytest.raises(McpFailure) as failed:
            await self.says(person, tool, server=server)
        return failed.value


@asynccontextmanager
async def a_world(isolation: Isolation = Isolation.SHARED, **options: Any) -> AsyncIterator[World]:
    """Ann has given `tok-ann`, Ben `tok-ben`."""
    state, redactor = InMemoryState(), Redactor()
    secrets = InMemoryPersonSecretStore(state)
    async with sdk_connections(person_secrets=secrets, redactor=redactor, **options) as connections:
        server = person_server(isolation=isolation)
        state.servers[server.id] = server
        world = World(secrets=secrets, state=state, connections=connections, server=server, redactor=redactor)
        for person, token in ((ANN, "tok-ann"), (BEN, "tok-ben")):
            state.users[person] = a_user(person, subject=person)
            await world.give(person, token)
        yield world


@pytest.mark.parametrize("isolation", list(Isolation))
async def test_each_person_has_a_process_of_their_own_with_their_own_secret(isolation: Isolation) -> None:
    async with a_world(isolation) as world:
        said = [await world.says(person) for person in (ANN, BEN, ANN)]
        assert said == ["nna-kot", "neb-kot", "nna-kot"]
        pids = [await world.says(person, "pid") for person in (ANN, BEN, ANN, BEN)]
        assert (pids[0], pids[1]) == (pids[2], pids[3])
        assert pids[0] != pids[1]
        assert world.connections.connection_count == 2


async def test_without_a_secret_or_a_person_no_process_is_started() -> None:
    async with a_world() as world:
        await world.remove(BEN)
        for person in (BEN, None):
            assert (await world.failure(person)).kind is McpFailureKind.NEEDS_AUTH
        assert world.connections.connection_count == 0
        assert world.connections.status(world.server).state is ServerState.DISCONNECTED


async def test_interleaved_calls_of_many_people_mix_up_no_processes() -> None:
    async with a_world() as world:
        people = [UserId(f"usr_{number:02}") for number in range(12)]
        for person in people:
            world.state.users[person] = a_user(person, subject=person)
            await world.give(person, f"tok-{person}")
        calls = [people[number % len(people)] for number in range(240)]
        said = await asyncio.gather(*(world.says(person) for person in calls))
        assert said == [f"tok-{person}"[::-1] for person in calls]
        assert world.connections.connection_count == len(people)


async def test_processes_of_people_are_bounded_as_all_of_the_organization() -> None:
    async with a_world(max_processes=1) as world:
        for person, said in ((ANN, "nna-kot"), (BEN, "neb-kot"), (ANN, "nna-kot")):
            assert await world.says(person) == said
            assert world.connections.connection_count <= 2  # one is ending
            await until(lambda: world.connections.connection_count == 1)


async def test_an_idle_process_of_a_person_ends() -> None:
    async with a_world() as world:
        world.server = replace(world.server, config=replace(world.server.config, idle_timeout_s=0.05))
        await world.says(ANN)
        await until(lambda: world.connections.connection_count == 0)


async def test_a_replaced_secret_is_in_the_next_process_and_the_former_one_ends_with_its_calls() -> None:
    async with a_world() as world:
        former, of_ben = await world.says(ANN, "pid"), await world.says(BEN, "pid")
        await world.give(ANN, "new-ann")
        assert await world.says(ANN) == "nna-wen"
        assert world.connections.connection_count == 3
        world.connections.accounts_changed(ORG)
        await until(lambda: world.connections.connection_count == 2)
        assert await world.says(ANN, "pid") != former
        assert await world.says(BEN, "pid") == of_ben


async def test_a_deleted_secret_and_an_inactive_person_end_their_processes_only() -> None:
    async with a_world() as world:
        await world.says(ANN)
        of_ben = await world.says(BEN, "pid")
        await world.remove(ANN)
        world.connections.accounts_changed(OTHER_ORG)
        world.connections.accounts_changed(None)
        await until(lambda: world.connections.connection_count == 1)
        assert (await world.failure(ANN)).kind is McpFailureKind.NEEDS_AUTH
        assert await world.says(BEN, "pid") == of_ben
        del world.state.users[BEN]
        world.connections.accounts_changed(ORG)
        await until(lambda: world.connections.connection_count == 0)
        assert (await world.failure(BEN)).kind is McpFailureKind.NEEDS_AUTH


async def test_a_process_shows_its_secret_neither_to_models_nor_to_operators() -> None:
    async with a_world() as world:
        for person in (ANN, BEN):
            assert await world.says(person, "leak") == f"leaked {REDACTED}"
        await until(lambda: world.connections.logs(world.server).count(f"leaked {REDACTED}") == 2)
        for token in ("tok-ann", "tok-ben"):
            assert token not in world.connections.logs(world.server)
            assert token not in world.redactor.redact(f"it said {token}")


async def test_an_answer_to_one_person_does_not_tell_the_secret_of_another() -> None:
    async with a_world() as world:
        for person in (ANN, BEN):
            await world.says(person)
        assert await world.says(ANN, "guess", text="tok-ann tok-ben") == f"{REDACTED} tok-ben"


async def test_a_process_that_one_persons_secret_breaks_is_no_trouble_of_others() -> None:
    async with a_world(restart_limit=RestartLimit(crashes=3)) as world:
        await world.give(ANN, "bad-secret")
        of_ben = await world.says(BEN, "pid")
        for _ in range(3):
            failed = await world.failure(ANN)
            assert (failed.kind, failed.retry_after_s) == (McpFailureKind.NOT_CONNECTED, None)
            assert "bad-secret" not in failed.stderr
        assert (await world.failure(ANN)).retry_after_s  # the cool-down of this process only
        status = world.connections.status(world.server)
        assert (status.state, status.last_error) == (ServerState.CONNECTED, None)
        assert await world.says(BEN, "pid") == of_ben
        await world.give(ANN, "good-secret")
        assert await world.says(ANN) == "terces-doog"


async def test_a_process_that_ends_in_a_call_leaves_the_server_well_for_others() -> None:
    async with a_world() as world:
        await world.says(BEN)
        assert (await world.failure(ANN, "end")).kind is McpFailureKind.CONNECTION_LOST
        await until(lambda: world.connections.connection_count == 1)
        assert world.connections.status(world.server).state is ServerState.CONNECTED
        assert await world.says(ANN) == "nna-kot"


@pytest.mark.parametrize(
    "changed",
    [
        {"args": ("-c", "print()")},
        {"command": "/bin/other"},
        {"env": {"TOKEN": SecretRef("person:token"), "HOST": "h"}},
    ],
    ids=["arguments", "command", "variables"],
)
async def test_another_program_gets_no_secret_that_was_given_for_the_former_one(changed: dict[str, Any]) -> None:
    async with a_world() as world:
        edited = replace(world.server, version=2, config=replace(world.server.config, **changed))
        assert (await world.failure(ANN, server=edited)).kind is McpFailureKind.NEEDS_AUTH
        assert world.connections.connection_count == 0


async def test_tools_are_listed_with_the_account_of_who_lists_them() -> None:
    async with a_world() as world:
        scope = ConnectionScope(organization_id=ORG, person_id=ANN)
        catalog = await world.connections.discover(world.server, scope, timeout_s=PATIENCE_S)
        assert "whoami" in [tool.name for tool in catalog.tools]
        with pytest.raises(McpFailure) as failed:
            await world.connections.discover(world.server, ConnectionScope(organization_id=ORG), timeout_s=PATIENCE_S)
        assert failed.value.kind is McpFailureKind.NEEDS_AUTH
