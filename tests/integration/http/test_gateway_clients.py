"""Clients of the older generation and the ids that their handshakes give them: any process knows
them by that, and nobody else can use it."""

from dataclasses import replace

import httpx
import pytest

from application.gateway.sessions.client_handshakes import ClientHandshakes
from domain.identity.role import Role
from domain.ids import GatewaySessionId
from infrastructure.secrets.secret_box import SecretBox
from tests.builders import ORG
from tests.composition import BOX_KEY
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.integration.http.gateway_caller import LEGACY, Caller, Json, an_agent, error_of, opened
from tests.integration.http.service import Service, token_of

PING: Json = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@pytest.fixture
async def caller(service: Service) -> Caller:
    """A client with a session over an agent that has one server."""
    await an_agent(service)
    return await opened(service)


async def shaken(caller: Caller, capabilities: Json | None = None) -> str:
    """The id that a handshake gives."""
    params = {"protocolVersion": LEGACY, "capabilities": capabilities or {}}
    hello = await caller.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    assert hello.status_code == 200
    return hello.headers["mcp-session-id"]


async def pinged(caller: Caller, sealed: str | None) -> httpx.Response:
    return await caller.send(PING, headers={"mcp-protocol-version": LEGACY, "mcp-session-id": sealed})


def another_process(service: Service) -> ClientHandshakes:
    """What another process of the service knows clients by."""
    return ClientHandshakes(
        clients=service.stores.gateway_clients,
        box=SecretBox([BOX_KEY]),
        clock=FixedClock(),
        ids=SequentialIds(),
        is_notified=lambda: False,
    )


@pytest.mark.requirement("F5")
async def test_a_handshake_gives_an_id_in_which_any_process_reads_what_the_client_can_do(
    service: Service, caller: Caller
) -> None:
    sealed = await shaken(caller, {"elicitation": {"form": {}}, "roots": {"listChanged": True}})
    assert sealed.isascii()
    assert sealed.isprintable()
    assert " " not in sealed
    assert (await pinged(caller, sealed)).json()["result"] == {}

    session = await service.stores.gateway_sessions.get(ORG, GatewaySessionId(caller.session_id))
    assert session is not None
    client = await another_process(service).of(session, sealed)
    assert (client.version, client.capabilities) == (
        LEGACY,
        {"elicitation": {"form": {}}, "roots": {"listChanged": True}},
    )
    assert caller.session_id not in sealed


@pytest.mark.requirement("F5")
async def test_a_client_that_is_done_is_refused_by_every_process(service: Service, caller: Caller) -> None:
    sealed, other = await shaken(caller), await shaken(caller)
    ended = await caller.send(b"", method="DELETE", headers={"mcp-session-id": sealed, "mcp-protocol-version": LEGACY})
    assert (ended.status_code, ended.content) == (204, b"")

    assert error_of(await pinged(caller, sealed)) == (404, -32600)
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert (await caller.send(note, headers={"mcp-session-id": sealed})).status_code == 404
    again = await caller.send(b"", method="DELETE", headers={"mcp-session-id": sealed})
    assert again.status_code == 404
    assert (await pinged(caller, other)).status_code == 200
    assert (await pinged(caller, None)).status_code == 200


@pytest.mark.requirement("F5", "C6")
async def test_an_id_that_was_changed_or_is_of_another_token_is_nobodys(service: Service, caller: Caller) -> None:
    sealed = await shaken(caller)
    stranger = await opened(service, agent_id="toolbox")
    box = SecretBox([BOX_KEY])
    forged = box.encrypt(b'{"purpose": "gateway request state", "holder": "x"}').decode()

    tampered = sealed[:-9] + ("A" if sealed[-9] != "A" else "B") + sealed[-8:]
    for wrong in (tampered, "nonsense", "", forged, "a" * 9_000):
        assert error_of(await pinged(caller, wrong)) == (404, -32600)
    assert error_of(await pinged(stranger, sealed)) == (404, -32600)
    assert (await pinged(caller, sealed)).status_code == 200


@pytest.mark.requirement("F5")
async def test_the_id_of_a_keys_own_client_is_good_beyond_the_day(service: Service) -> None:
    await an_agent(service)
    runner = Caller(service=service, token=token_of(Role.RUNNER), query="?agent=toolbox")
    sealed = await shaken(runner, {"sampling": {}})
    assert (await pinged(runner, sealed)).status_code == 200
    [stored] = [one.session for one in service.state.gateway_sessions.values()]
    tomorrow = replace(stored, id=GatewaySessionId("gws_of_tomorrow"))

    client = await another_process(service).of(tomorrow, sealed)
    assert (client.session_id, client.capabilities) == (tomorrow.id, {"sampling": {}})


async def test_capabilities_that_are_too_large_to_travel_are_kept_by_their_names(
    service: Service, caller: Caller
) -> None:
    sealed = await shaken(caller, {"elicitation": {"form": {}}, "experimental": {"x": "y" * 4_000}, "odd": 1})
    [stored] = [one.session for one in service.state.gateway_sessions.values()]
    client = await another_process(service).of(stored, sealed)
    assert client.capabilities == {"elicitation": {}, "experimental": {}}


async def test_only_a_client_that_says_which_it_is_can_be_done(caller: Caller) -> None:
    assert error_of(await caller.send(b"", method="DELETE")) == (400, -32600)
    assert (await caller.send(b"", method="PUT")).status_code == 405
