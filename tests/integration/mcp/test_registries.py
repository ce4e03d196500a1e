"""MCP registries over real HTTP: what is asked, what is kept, and how answers that are none are
told."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from application.mcp.registries import REGISTRY_UNAVAILABLE
from application.system.ports import Clock
from domain.errors import ServiceError
from infrastructure.http.egress import EgressPolicy
from infrastructure.mcp.registries import KEPT_S, MAX_BYTES, HttpMcpRegistries
from infrastructure.mcp.transports.remote import RemoteClient
from tests.doubles.surroundings import FixedClock, StepClock
from tests.integration.mcp.parts import Answer, answering, http

pytestmark = pytest.mark.requirement("X6")
NAME = "com.example/tickets"


@asynccontextmanager
async def reading(
    answer: bytes, *, allowed: str = "127.0.0.1", clock: Clock | None = None
) -> AsyncIterator[tuple[HttpMcpRegistries, list[str]]]:
    """Registries with one that always answers so, and the request lines that it got."""
    asked: list[str] = []

    async def respond(request: bytes) -> Answer:
        asked.append(request.split(b"\r\n", 1)[0].decode())
        return answer

    async with answering(respond) as url:
        registries = HttpMcpRegistries(
            urls={"ours": f"{url}/base"},
            remote=RemoteClient(egress=EgressPolicy([allowed])),
            clock=clock or FixedClock(),
        )
        try:
            yield registries, asked
        finally:
            await registries.close()


async def test_a_search_asks_for_the_latest_versions_once_in_five_minutes() -> None:
    async with reading(http("200 OK", "application/json", b'{"servers": []}')) as (registries, asked):
        for _ in range(3):
            assert await registries.search("ours", "a b", limit=5, cursor=None) == {"servers": []}
        await registries.search("ours", "a b", limit=5, cursor="x&y")
        await registries.version("ours", NAME, "1.0+1")
    assert asked == [
        "GET /base/v0.1/servers?search=a+b&version=latest&limit=5 HTTP/1.1",
        "GET /base/v0.1/servers?search=a+b&version=latest&limit=5&cursor=x%26y HTTP/1.1",
        "GET /base/v0.1/servers/com.example%2Ftickets/versions/1.0%2B1 HTTP/1.1",
    ]


async def test_an_old_answer_is_read_again() -> None:
    clock = StepClock(step_s=KEPT_S)
    async with reading(http("200 OK", "application/json", b"{}"), clock=clock) as (registries, asked):
        for _ in range(2):
            await registries.search("ours", "", limit=5, cursor=None)
            clock.now()  # takes the step
    assert len(asked) == 2


async def test_a_version_that_the_registry_lacks_is_none() -> None:
    async with reading(http("404 Not Found", "application/json", b"{}")) as (registries, _):
        assert await registries.version("ours", NAME, "9") is None


@pytest.mark.parametrize(
    "answer",
    [
        http("500 Internal Server Error", "application/json", b"{}"),
        http("302 Found", "text/plain", b"", "location: http://169.254.169.254/"),
        http("200 OK", "application/json", b"[1]"),
        http("200 OK", "text/html", b"<html>"),
        http("200 OK", "application/json", b"[" * 100_000),
        http("200 OK", "application/json", b" " * (MAX_BYTES + 1)),
        b"rubbish\r\n\r\n",
    ],
    ids=["failure", "redirect", "list", "page", "nested", "large", "rubbish"],
)
async def test_an_answer_that_is_no_registrys_is_told_with_the_registrys_name(answer: bytes) -> None:
    async with reading(answer) as (registries, _):
        with pytest.raises(ServiceError) as raised:
            await registries.search("ours", "", limit=5, cursor=None)
    assert raised.value.code == REGISTRY_UNAVAILABLE
    assert "'ours'" in raised.value.detail
    assert "169.254" not in raised.value.detail


async def test_an_address_that_egress_does_not_permit_is_not_asked() -> None:
    async with reading(http("200 OK", "application/json", b"{}"), allowed="10.0.0.1") as (registries, asked):
        with pytest.raises(ServiceError) as raised:
            await registries.search("ours", "", limit=5, cursor=None)
    assert raised.value.code == REGISTRY_UNAVAILABLE
    assert asked == []
