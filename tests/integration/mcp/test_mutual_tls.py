"""Remote servers that require a client certificate, over real TLS."""

import logging
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from mcp.server.transport_security import TransportSecuritySettings

from application.mcp.ports import McpFailure, McpFailureKind
from domain.mcp.auth import ClientCredentialsAuth
from domain.mcp.server import McpServer, McpServerKind
from domain.mcp.server_tls import ServerTls
from domain.secrets.secret import Secret, SecretRef
from infrastructure.http.egress import EgressPolicy
from infrastructure.http.proxies import Proxies
from infrastructure.mcp.connections.pool import SdkMcpConnections
from infrastructure.mcp.faults import TransportFailedError
from infrastructure.mcp.known_secrets import KnownSecrets
from infrastructure.mcp.secret_values import SecretValues
from infrastructure.mcp.transports.server_contexts import ServerContexts
from infrastructure.secrets.redaction import REDACTED, Redactor
from tests.builders import ORG, START, an_audit_event
from tests.certificates import Authority, an_authority
from tests.doubles.secrets import InMemorySecretStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.integration.forward_proxy import ForwardProxy
from tests.integration.mcp.oauth_world import oauth_world
from tests.integration.mcp.parts import IN_RUN, a_call, remote, sdk_connections, serving, text_of
from tests.integration.mcp.watched_server import WatchedServer

pytestmark = pytest.mark.requirement("P4")

HOST = "mcp.server.test"
OURS, OTHERS = an_authority(), an_authority("others")


def tls_of(authority: Authority = OURS, *, ca: str | None = OURS.pem, **options: Any) -> ServerTls:
    """A certificate of the authority, and trust in our servers."""
    issued = authority.issue("dragoman", **options)
    return ServerTls(certificate=issued.certificate, private_key=issued.private_key, ca=ca)


async def echo(connections: SdkMcpConnections, server: McpServer) -> str:
    return text_of(await connections.call_tool(server, IN_RUN, a_call("echo", said="hello")))


async def failure_of(connections: SdkMcpConnections, server: McpServer) -> McpFailure:
    with pytest.raises(McpFailure) as failed:
        await echo(connections, server)
    return failed.value


@pytest.mark.parametrize("json_response", [False, True], ids=["streamed", "json"])
async def test_a_server_that_requires_a_client_certificate_is_called_with_it(
    tmp_path: Path, json_response: bool
) -> None:
    watched, options = WatchedServer(), OURS.serves(tmp_path, clients=OURS)
    async with watched.serve(json_response=json_response, **options) as url, sdk_connections() as connections:
        assert url.startswith("https://")
        assert "hello" in await echo(connections, remote(url, tls=tls_of()))


async def test_a_server_of_the_older_transport_is_called_with_it_too(tmp_path: Path) -> None:
    async with (
        WatchedServer().serve_sse(**OURS.serves(tmp_path, clients=OURS)) as url,
        sdk_connections() as connections,
    ):
        assert "hello" in await echo(connections, remote(url, McpServerKind.SSE, tls=tls_of()))


@pytest.mark.parametrize(
    "tls",
    [None, ServerTls(ca=OURS.pem), tls_of(OTHERS), tls_of(ca=OTHERS.pem), tls_of(ca=None)],
    ids=["nothing", "no certificate", "a certificate of others", "trust in others", "trust in those of the system"],
)
async def test_without_the_right_certificates_nothing_is_sent(tmp_path: Path, tls: ServerTls | None) -> None:
    watched = WatchedServer()
    async with watched.serve(**OURS.serves(tmp_path, clients=OURS)) as url, sdk_connections() as connections:
        failure = await failure_of(connections, remote(url, tls=tls))
        assert failure.kind in (McpFailureKind.NOT_CONNECTED, McpFailureKind.CONNECTION_LOST)
        assert watched.requests == []


async def test_servers_with_and_without_a_certificate_share_no_connection(tmp_path: Path) -> None:
    watched = WatchedServer()
    async with watched.serve(**OURS.serves(tmp_path, clients=OURS)) as url, sdk_connections() as connections:
        server = remote(url, tls=tls_of())
        await echo(connections, server)
        # The same address in the same process, while the other connection is still open.
        bare = replace(server, version=2, config=replace(server.config, slug="bare", tls=ServerTls(ca=OURS.pem)))
        await failure_of(connections, bare)


async def test_the_key_may_be_a_named_secret_and_is_hidden_from_logs_and_traces(tmp_path: Path) -> None:
    secrets, redactor, tls = InMemorySecretStore(InMemoryState()), Redactor(), tls_of()
    assert isinstance(tls.private_key, str)
    key = Secret(organization_id=ORG, name="TLS_KEY", created_at=START, updated_at=START)
    await secrets.put(key, tls.private_key, an_audit_event())
    async with (
        WatchedServer().serve(**OURS.serves(tmp_path, clients=OURS)) as url,
        sdk_connections(secrets=secrets, redactor=redactor) as connections,
    ):
        server = remote(url, tls=replace(tls, private_key=SecretRef("TLS_KEY")))
        assert "hello" in await echo(connections, server)
        assert redactor.redact(f"a {tls.private_key} b") == f"a {REDACTED} b"
        missing = replace(
            server, version=2, config=replace(server.config, tls=replace(tls, private_key=SecretRef("NONE")))
        )
        assert "The secret 'NONE'" in (await failure_of(connections, missing)).detail


async def test_a_named_key_that_was_exchanged_without_its_certificate_is_said_not_to_belong_to_it(
    tmp_path: Path,
) -> None:
    async with (
        WatchedServer().serve(**OURS.serves(tmp_path, clients=OURS)) as url,
        sdk_connections() as connections,
    ):
        tls = replace(tls_of(), private_key=tls_of().private_key)
        failure = await failure_of(connections, remote(url, tls=tls))
        assert failure.kind is McpFailureKind.NOT_CONNECTED
        assert "tls.private_key does not belong to the certificate" in failure.detail


async def test_through_a_proxy_the_server_gets_the_certificate_and_the_proxy_only_a_tunnel(tmp_path: Path) -> None:
    options = OURS.serves(tmp_path, host=HOST, clients=OURS)
    any_host = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    async with serving(WatchedServer().server.streamable_http_app(transport_security=any_host), **options) as url:
        port = int(url.rpartition(":")[2])
        async with ForwardProxy({f"{HOST}:443": port}).open() as proxy:
            async with sdk_connections(proxies=Proxies(https=proxy.url), egress=EgressPolicy()) as connections:
                assert "hello" in await echo(connections, remote(f"https://{HOST}/mcp", tls=tls_of()))
            assert set(proxy.requests) == {f"CONNECT {HOST}:443"}


async def test_the_egress_guard_decides_before_a_certificate_is_shown(tmp_path: Path) -> None:
    watched = WatchedServer()
    async with (
        watched.serve(**OURS.serves(tmp_path, clients=OURS)) as url,
        sdk_connections(egress=EgressPolicy()) as connections,
    ):
        failure = await failure_of(connections, remote(url, tls=tls_of()))
        assert failure.kind is McpFailureKind.NOT_CONNECTED
        assert "is not public" in failure.detail
        assert watched.requests == []


async def test_metadata_at_the_servers_origin_is_read_with_the_certificate_and_others_are_shown_none(
    tmp_path: Path,
) -> None:
    async with (
        oauth_world() as world,
        serving(world.protected.app(), **OURS.serves(tmp_path, clients=OURS)) as url,
        sdk_connections(oauth=world.oauth) as connections,
    ):
        world.protected.url = f"{url}/mcp"
        auth = ClientCredentialsAuth(client_id="dragoman", client_secret="unused")
        begins = world.clock.now() - timedelta(days=1) - OURS.now  # it is valid by both clocks
        failure = await failure_of(connections, world.server(auth, tls=tls_of(begins=begins)))
        # It was read: it names an authorization server without TLS, which is refused.
        assert "not protected by TLS" in failure.detail


async def test_the_end_of_a_certificate_is_logged_each_day_before_it_and_refused_after_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = FixedClock()
    issued = Authority("then", now=clock.now()).issue("dragoman", ends=timedelta(days=30))
    tls = ServerTls(
        certificate=issued.certificate, private_key=issued.private_key, expires_at=START + timedelta(days=30)
    )
    values = SecretValues(secrets=InMemorySecretStore(InMemoryState()), known=KnownSecrets(Redactor()))
    contexts = ServerContexts(secrets=values, clock=clock)
    server = remote("https://mcp.example.org/mcp", tls=tls)
    client = await contexts.of(server)
    assert client is not None
    assert client is await contexts.of(server)
    with caplog.at_level(logging.WARNING):
        _ = client.context
        assert caplog.messages == []
        for _ in range(2):
            clock.advance(timedelta(days=17).total_seconds())
            for _ in range(3):
                if clock.now() < START + timedelta(days=30):
                    _ = client.context
        assert caplog.messages == [
            "the client certificate for the MCP server remote expires at 2026-01-31 12:00 UTC",
        ]
    with pytest.raises(TransportFailedError) as failed:
        _ = client.context
    assert "client certificate expired at 2026-01-31 12:00 UTC" in failed.value.fault.detail
