"""The client of the service: what goes wrong on the way is one line with the address."""

from collections.abc import Callable
from contextlib import aclosing

import httpx
import pytest

from interfaces.cli.api import ServerEvent, listed, path_to
from interfaces.cli.failures import ApiProblem, BadUsage, ConnectionLost, ServiceUnreachable, UnexpectedAnswer
from interfaces.cli.service_client import ServiceClient
from tests.unit.interfaces.cli.fake_service import FakeService, event, problem, stream_of


def client_of(handler: Callable[[httpx.Request], httpx.Response]) -> ServiceClient:
    return ServiceClient(address="http://service.test", api_key="dgm_k", transport=httpx.MockTransport(handler))


async def test_requests_carry_the_key_and_json() -> None:
    service = FakeService().on("POST", "/v1/agents", {"id": "agt_1"})
    async with aclosing(service.client()) as client:
        await client.post("/v1/agents", {"name": "ü"}, headers={"Idempotency-Key": "k"})
    (request,) = service.requests
    assert request.headers["authorization"] == "Bearer dgm_test"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["idempotency-key"] == "k"
    assert service.sent("POST", "/v1/agents") == [{"name": "ü"}]


@pytest.mark.parametrize(
    ("status", "exit_code"), [(400, 2), (413, 2), (422, 2), (401, 1), (403, 1), (404, 1), (409, 1), (503, 1)]
)
async def test_a_problem_becomes_its_detail_with_every_violation(status: int, exit_code: int) -> None:
    answer = problem(status, "agent_invalid", "The agent is not valid.", model="is required", name="must not be empty")
    async with aclosing(client_of(lambda _: answer)) as client:
        with pytest.raises(ApiProblem) as caught:
            await client.get("/v1/agents")
    assert caught.value.message == "The agent is not valid.\n  model: is required\n  name: must not be empty"
    assert (caught.value.code, caught.value.status, caught.value.exit_code) == ("agent_invalid", status, exit_code)


async def test_a_service_that_is_not_there_is_named_by_its_address() -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("[Errno 111] foreign text", request=request)

    async with aclosing(client_of(refuse)) as client:
        with pytest.raises(ServiceUnreachable) as caught:
            await client.get("/v1/agents")
    assert "http://service.test" in caught.value.message
    assert "foreign text" not in caught.value.message


@pytest.mark.parametrize("fault", [httpx.ReadError, httpx.RemoteProtocolError, httpx.ReadTimeout])
async def test_a_stream_that_breaks_is_a_lost_connection(fault: type[httpx.TransportError]) -> None:
    def broken(request: httpx.Request) -> httpx.Response:
        raise fault("broken", request=request)

    async with aclosing(client_of(broken)) as client:
        with pytest.raises(ConnectionLost):
            [found async for found in client.events("/v1/runs/run_1/stream")]


async def test_a_refused_stream_is_a_problem() -> None:
    async with aclosing(FakeService().client()) as client:
        with pytest.raises(ApiProblem):
            [found async for found in client.events("/v1/runs/run_1/stream")]


async def test_events_are_decoded_and_those_without_data_are_left_out() -> None:
    body = 'id: 1\nevent: message.delta\ndata: {"t": "ü"}\n\n: beat\n\nid: 4\n\nevent: end\ndata: {}\n\n'.encode()
    async with aclosing(client_of(lambda _: httpx.Response(200, content=body))) as client:
        found = [found async for found in client.events("/v1/runs/run_1/stream")]
    assert found == [
        ServerEvent(id="1", type="message.delta", data='{"t": "ü"}'),
        ServerEvent(id=None, type="end", data="{}"),
    ]


async def test_an_event_of_a_stream_has_a_bound() -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=b"data: " + b"x" * 100 + b"\n\n"))
    client = ServiceClient(address="http://service.test", api_key="k", transport=transport, max_event_bytes=100)
    async with aclosing(client):
        with pytest.raises(UnexpectedAnswer):
            [found async for found in client.events("/v1/runs/run_1/stream")]


async def test_a_stream_resumes_after_the_given_event() -> None:
    service = FakeService().on(
        "GET", "/v1/runs/run_1/stream", stream_of(event(1, "run.queued"), event(2, "run.started"))
    )
    async with aclosing(service.client()) as client:
        found = [found.id async for found in client.events("/v1/runs/run_1/stream", after="1")]
    assert found == ["2"]


@pytest.mark.parametrize(
    "answer",
    [httpx.Response(200, text="<html>"), httpx.Response(200, json=[1]), httpx.Response(502, text="bad gateway")],
)
async def test_what_is_not_the_service_is_an_unexpected_answer(answer: httpx.Response) -> None:
    async with aclosing(client_of(lambda _: answer)) as client:
        with pytest.raises(UnexpectedAnswer):
            await client.get("/v1/agents")


async def test_a_list_is_read_page_by_page() -> None:
    def page(request: httpx.Request) -> httpx.Response:
        at = int(request.url.params.get("cursor", "0"))
        return httpx.Response(200, json={"data": [at, at + 1], "next_cursor": str(at + 2) if at < 4 else None})

    async with aclosing(client_of(page)) as client:
        assert await listed(client, "/v1/agents") == {"data": [0, 1, 2, 3, 4, 5], "next_cursor": None}
        assert await listed(client, "/v1/agents", limit=4) == {"data": [0, 1, 2, 3], "next_cursor": "4"}


def test_what_a_user_types_stays_one_segment_of_the_path() -> None:
    assert path_to("agents", "a/b?c d") == "/v1/agents/a%2Fb%3Fc%20d"


@pytest.mark.parametrize("segment", ["", ".", ".."])
def test_a_segment_that_would_lead_elsewhere_is_refused(segment: str) -> None:
    with pytest.raises(BadUsage):
        path_to("agents", segment)
