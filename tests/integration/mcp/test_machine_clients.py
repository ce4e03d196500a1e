"""Dragoman as a client of its own at a real authorization server (`oidc-provider`), towards a real
MCP server that checks each token."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from application.mcp.ports import McpFailure
from domain.mcp.auth import ClientCredentialsAuth
from domain.mcp.server import McpServer
from domain.secrets.secret import Secret, SecretRef
from infrastructure.identity.signing_keys import read_signing_key
from infrastructure.mcp.connections.pool import SdkMcpConnections
from infrastructure.secrets.redaction import REDACTED
from tests.builders import ORG, START, an_audit_event
from tests.e2e.identity_provider import MACHINE, MACHINE_SECRET, SIGNING_MACHINE, needs_identity_provider, providing_for
from tests.integration.mcp.oauth_processes import Processes
from tests.integration.mcp.oauth_world import HERE
from tests.integration.mcp.parts import IN_RUN, a_call, text_of
from tests.integration.mcp.trusting_server import trusting

pytestmark = [pytest.mark.requirement("P4"), needs_identity_provider()]

BY_SECRET = ClientCredentialsAuth(client_id=MACHINE, client_secret=MACHINE_SECRET)


def pem_of(key: Any) -> str:
    return str(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())


KEYS = {
    "RS256": pem_of(rsa.generate_private_key(public_exponent=65537, key_size=2048)),
    "ES256": pem_of(ec.generate_private_key(ec.SECP256R1())),
    "EdDSA": pem_of(ed25519.Ed25519PrivateKey.generate()),
}


@asynccontextmanager
async def clients(*keys: tuple[str, str]) -> AsyncIterator[Processes]:
    """`keys` are algorithms and private keys that the authorization server knows."""
    public = [{**read_signing_key(pem.encode()).public, "alg": alg, "kid": alg, "use": "sig"} for alg, pem in keys]
    with providing_for(HERE, machine_keys=public) as provider:
        async with trusting(provider.issuer) as server:
            yield Processes(server)


async def who_am_i(connections: SdkMcpConnections, server: McpServer) -> str:
    return text_of(await connections.call_tool(server, IN_RUN, a_call("whoami")))


async def test_a_client_secret_gets_a_token_for_this_server() -> None:
    async with clients() as world, world.process() as connections:
        server = world.registered(BY_SECRET)
        assert await who_am_i(connections, server) == f"{MACHINE} by {MACHINE}"
        assert world.server.refused == []


@pytest.mark.parametrize("algorithm", KEYS)
async def test_a_private_key_signs_assertions_in_place_of_a_secret(algorithm: str) -> None:
    async with clients((algorithm, KEYS[algorithm])) as world, world.process() as connections:
        key = Secret(organization_id=ORG, name="CLIENT_KEY", created_at=START, updated_at=START)
        await world.secrets.put(key, KEYS[algorithm], an_audit_event())
        auth = ClientCredentialsAuth(client_id=SIGNING_MACHINE, private_key=SecretRef("CLIENT_KEY"), key_id=algorithm)
        server = world.registered(auth)
        assert await who_am_i(connections, server) == f"{SIGNING_MACHINE} by {SIGNING_MACHINE}"
        assert world.redactor.redact(f"a {KEYS[algorithm]} b") == f"a {REDACTED} b"


@pytest.mark.parametrize(
    ("private_key", "reason"),
    [
        (lambda: pem_of(ec.generate_private_key(ec.SECP256R1())), "invalid_client"),
        (
            lambda: pem_of(ec.generate_private_key(ec.SECP384R1())),
            "is no key for P-256, Ed25519, or RSA of 2048 to 4096 bits",
        ),
        (lambda: pem_of(rsa.generate_private_key(public_exponent=65537, key_size=1024)), "is no key for P-256"),
        (lambda: "no key, and secret", "is not a private key in PEM without a password"),
    ],
)
async def test_a_key_that_cannot_prove_the_client_is_said_without_the_key(
    private_key: Callable[[], str], reason: str
) -> None:
    async with clients(("ES256", KEYS["ES256"])) as world, world.process() as connections:
        server = world.registered(ClientCredentialsAuth(client_id=SIGNING_MACHINE, private_key=private_key()))
        with pytest.raises(McpFailure) as failed:
            await who_am_i(connections, server)
        assert reason in failed.value.detail
        assert "no key, and secret" not in failed.value.detail
        assert world.server.seen == []


async def test_processes_that_are_refused_together_get_one_new_token_among_them() -> None:
    async with clients() as world, world.process() as first:
        server = world.registered(BY_SECRET)
        await who_am_i(first, server)
        async with world.process() as second:
            await who_am_i(second, server)
            world.server.revoked.update(claims["jti"] for claims in world.server.seen)
            calls = [who_am_i(connections, server) for connections in (first, second) for _ in range(5)]
            assert set(await asyncio.gather(*calls)) == {f"{MACHINE} by {MACHINE}"}
            assert len({claims["jti"] for claims in world.server.seen} - world.server.revoked) == 1


async def test_a_changed_client_uses_no_token_of_the_former_one() -> None:
    async with clients(("ES256", KEYS["ES256"])) as world, world.process() as connections:
        server = world.registered(BY_SECRET)
        await who_am_i(connections, server)
        auth = ClientCredentialsAuth(client_id=SIGNING_MACHINE, private_key=KEYS["ES256"], key_id="ES256")
        changed = replace(server, version=2, config=replace(server.config, auth=auth))
        assert await who_am_i(connections, changed) == f"{SIGNING_MACHINE} by {SIGNING_MACHINE}"
