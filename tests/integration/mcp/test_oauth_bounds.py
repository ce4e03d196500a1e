"""Requests to authorization servers are held to the guard, to a size and to a time."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from infrastructure.http.egress import EgressPolicy
from infrastructure.mcp.faults import TransportFailedError
from infrastructure.mcp.oauth.requests import OAuthRequests
from infrastructure.mcp.transports.remote import RemoteClient
from tests.integration.webhooks.raw_servers import Silent, listening
from tests.integration.webhooks.receiver import receiving

pytestmark = pytest.mark.requirement("B16")


@asynccontextmanager
async def requests(*allowed: str, timeout_s: float = 60.0) -> AsyncIterator[OAuthRequests]:
    remote = RemoteClient(egress=EgressPolicy(allowed))
    try:
        yield OAuthRequests(remote=remote, timeout_s=timeout_s)
    finally:
        await remote.close()


async def test_a_private_authorization_server_is_asked_only_where_that_is_allowed() -> None:
    async with receiving(lambda _: web.json_response({"issuer": "x"})) as server:
        async with requests() as guarded:
            with pytest.raises(TransportFailedError):
                await guarded.get(server.url)
            with pytest.raises(TransportFailedError):
                await guarded.post_form(server.url, {"grant_type": "client_credentials"}, {})
        assert server.received == []
        async with requests("127.0.0.1") as open_to_it:
            assert (await open_to_it.get(server.url)).document == {"issuer": "x"}


async def test_a_redirect_inside_is_not_followed() -> None:
    async with receiving() as inside:
        location = inside.url.replace("127.0.0.1", "127.0.0.2")
        away = web.Response(status=302, headers={"location": location})
        async with receiving(lambda _: away) as server, requests("127.0.0.1") as guarded:
            with pytest.raises(TransportFailedError):
                await guarded.get(server.url)
        assert inside.received == []


async def test_a_document_of_megabytes_is_not_read() -> None:
    document = {"issuer": "x" * 2_000_000}
    async with receiving(lambda _: web.json_response(document)) as server, requests("127.0.0.1") as guarded:
        with pytest.raises(TransportFailedError):
            await guarded.get(server.url)


async def test_a_server_that_does_not_answer_is_given_up() -> None:
    with listening(Silent) as port:
        async with requests("127.0.0.1", timeout_s=0.2) as guarded:
            with pytest.raises(TransportFailedError):
                await guarded.get(f"http://127.0.0.1:{port}/")
