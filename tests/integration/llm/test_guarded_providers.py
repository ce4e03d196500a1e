"""Where the model providers of organizations may be: the egress guard, over real sockets and the
system's resolver."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from application.models.ports import ModelError
from domain.model_providers.provider import ProviderKind
from infrastructure.http.client import HttpClients
from infrastructure.http.egress import EgressPolicy
from infrastructure.llm.provider_http import provider_http
from infrastructure.llm.provider_models import ProviderModels
from infrastructure.llm.providers import ProviderConfig
from tests.unit.llm.model_requests import a_request, all_events


class Door:
    """A port of this machine that closes on everyone, and counts who came."""

    def __init__(self) -> None:
        self.visits = 0
        self.port = 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Door"]:
        async def visited(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.visits += 1
            writer.close()

        server = await asyncio.start_server(visited, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self


async def failure(host: str, *, guarded: bool, allow: tuple[str, ...] = ()) -> tuple[ModelError, int]:
    """What asking a model there comes to, and how often the door was knocked at."""
    egress = EgressPolicy(allow)
    clients = HttpClients()
    models = ProviderModels(
        http=provider_http(clients), guarded_http=provider_http(clients, egress=egress), outbound=egress
    )
    async with Door().open() as door:
        provider = ProviderConfig(
            name="acme",
            kind=ProviderKind.OPENAI,
            base_url=f"http://{host}:{door.port}/v1",
            api_key="sk",
            guarded=guarded,
        )
        try:
            with pytest.raises(ModelError) as raised:
                await all_events(models.open(provider).stream(a_request("acme:m")))
        finally:
            await models.close()
        return raised.value, door.visits


@pytest.mark.requirement("B16", "C7", "S4")
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0x7f000001"])
async def test_an_organizations_provider_inside_is_not_asked_however_its_address_is_written(host: str) -> None:
    error, visits = await failure(host, guarded=True)
    assert (error.code, error.retryable, visits) == ("model_rejected", False, 0)
    assert "not public" in error.detail


@pytest.mark.requirement("B16", "C7", "S4")
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_what_the_operator_allows_is_reached(host: str) -> None:
    error, visits = await failure(host, guarded=True, allow=("127.0.0.0/8", "localhost"))
    assert (error.code, error.retryable) == ("model_unavailable", True)
    assert visits > 0


@pytest.mark.requirement("B16")
async def test_what_the_operator_set_up_is_not_held_to_the_guard() -> None:
    error, visits = await failure("127.0.0.1", guarded=False)
    assert error.code == "model_unavailable"
    assert visits > 0
