"""The egress guard on the way to remote servers: literal addresses, names, answers that change,
redirects."""

import socket

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from application.mcp.ports import McpFailure, McpFailureKind, ServerState
from domain.mcp.server import McpServerKind
from infrastructure.http.egress import EgressPolicy
from infrastructure.mcp.faults import TransportFailedError
from infrastructure.mcp.transports.remote import Endpoint, RemoteClient
from tests.integration.mcp.parts import IN_RUN, a_call, answering, http, remote, sdk_connections

pytestmark = pytest.mark.requirement("B16", "S4")

KINDS = pytest.mark.parametrize("kind", [McpServerKind.HTTP, McpServerKind.SSE])
PUBLIC_ONLY = EgressPolicy()


class ChangingNames(AbstractResolver):
    """Answers with one address after the other, the last one again and again."""

    def __init__(self, *addresses: str) -> None:
        self._addresses = list(addresses)
        self.asked: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.asked.append(host)
        address = self._addresses.pop(0) if len(self._addresses) > 1 else self._addresses[0]
        return [ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)]

    async def close(self) -> None:
        pass


class Requests:
    """A server on this machine that must not be reached."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []

    async def respond(self, request: bytes) -> bytes:
        self.seen.append(request)
        return http("500 Internal Server Error", "text/plain", b"")


async def failure_at(
    url: str, kind: McpServerKind, egress: EgressPolicy, resolver: AbstractResolver | None = None
) -> McpFailure:
    server = remote(url, kind)
    async with sdk_connections(egress=egress, resolver=resolver) as connections:
        with pytest.raises(McpFailure) as raised:
            await connections.discover(server, IN_RUN, timeout_s=60)
        if raised.value.kind is McpFailureKind.NOT_CONNECTED:
            assert connections.status(server).state is ServerState.ERROR
            assert connections.status(server).last_error == raised.value.detail
        return raised.value


@KINDS
async def test_a_private_address_is_not_requested_and_the_failure_says_how_to_allow_it(kind: McpServerKind) -> None:
    requests = Requests()
    async with answering(requests.respond) as url:
        failure = await failure_at(f"{url}/mcp", kind, PUBLIC_ONLY)
    assert failure.kind is McpFailureKind.NOT_CONNECTED
    assert failure.detail == (
        "The address of 127.0.0.1 is not public, so it is not requested."
        " It is 127.0.0.1; an operator can allow it with DRAGOMAN_EGRESS_ALLOW."
    )
    assert failure.for_model == "The address of 127.0.0.1 is not public, so it is not requested."
    assert requests.seen == []


@KINDS
async def test_a_name_that_resolves_to_a_private_address_is_not_requested(kind: McpServerKind) -> None:
    requests, names = Requests(), ChangingNames("127.0.0.1")
    async with answering(requests.respond) as url:
        port = url.rpartition(":")[2]
        failure = await failure_at(f"http://mcp.example.org:{port}/mcp", kind, PUBLIC_ONLY, names)
    assert failure.kind is McpFailureKind.NOT_CONNECTED
    assert "The address of mcp.example.org is not public, so it is not requested. It is 127.0.0.1;" in failure.detail
    assert failure.for_model == "The address of mcp.example.org is not public, so it is not requested."
    assert requests.seen == []
    assert set(names.asked) == {"mcp.example.org"}


async def test_an_answer_that_changes_is_looked_at_again() -> None:
    requests = Requests()
    # The first answer may be reached (nobody listens there), the second is another address of this
    # machine.
    names = ChangingNames("127.0.0.2", "127.0.0.1")
    client = RemoteClient(egress=EgressPolicy(["127.0.0.2/32"]), resolver=names)
    details = []
    async with answering(requests.respond) as url:
        port = url.rpartition(":")[2]
        for _ in range(2):
            endpoint = Endpoint(client, f"http://mcp.example.org:{port}/mcp", {}, 1024)
            with pytest.raises(TransportFailedError) as failed:
                async with endpoint.request("POST", {}, b"{}"):
                    pass
            details.append(failed.value.fault.detail)
            await client.close()  # what was resolved is remembered for ten seconds; a new client resolves anew
    assert details[0] == "The server cannot be reached: nothing accepts connections at this port."
    assert "The address of mcp.example.org is not public, so it is not requested. It is 127.0.0.1;" in details[1]
    assert requests.seen == []


@pytest.mark.parametrize("status", ["302 Found", "307 Temporary Redirect", "308 Permanent Redirect"])
async def test_a_redirect_to_a_private_address_is_not_followed(status: str) -> None:
    inside = Requests()

    async def redirect(request: bytes) -> bytes:
        return http(status, "text/plain", b"", f"location: {target}/mcp")

    async with answering(inside.respond) as target, answering(redirect) as url:
        failure = await failure_at(f"{url}/mcp", McpServerKind.HTTP, EgressPolicy(["127.0.0.0/8"]))
    assert failure.kind is McpFailureKind.NOT_CONNECTED
    assert "redirect" in failure.detail
    assert inside.seen == []


async def test_an_address_the_operator_allows_is_reached() -> None:
    requests = Requests()
    allowed = EgressPolicy(["127.0.0.1"])
    async with answering(requests.respond) as url, sdk_connections(egress=allowed) as connections:
        with pytest.raises(McpFailure):
            await connections.call_tool(remote(f"{url}/mcp"), IN_RUN, a_call("echo"))
    assert requests.seen


async def test_headers_of_a_server_s_settings_do_not_say_where_its_requests_end() -> None:
    # Others' requests follow on the same connection.
    requests, client = Requests(), RemoteClient(egress=EgressPolicy(["127.0.0.1"]))
    given = {"Content-Length": "1", "Transfer-Encoding": "chunked", "content-length ": "1", "X-Kept": "yes"}
    async with answering(requests.respond) as url:
        endpoint = Endpoint(client, f"{url}/mcp", given, 1024)
        async with endpoint.request("POST", {}, b"{}") as response:
            assert response.status == 500
        await client.close()
    [request] = (request.lower() for request in requests.seen)
    assert request.count(b"content-length") == 1
    assert b"content-length: 2\r\n" in request
    assert b"transfer-encoding" not in request
    assert b"x-kept: yes\r\n" in request
