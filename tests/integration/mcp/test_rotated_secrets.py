"""Secrets from Vault and from files on their way to real servers: rotated without a restart, and
named when they fail."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from application.mcp.ports import McpFailure
from domain.mcp.auth import BearerAuth
from domain.secrets.secret import SecretRef
from infrastructure.http.client import HttpClients
from infrastructure.mcp.connections.pool import SdkMcpConnections
from infrastructure.secrets.external_secrets import ExternalSecrets
from infrastructure.secrets.file_secrets import FileSecrets
from infrastructure.secrets.sourced_secrets import SourcedSecrets
from infrastructure.secrets.vault_secrets import VaultPlace, VaultSecrets
from tests.builders import ORG
from tests.doubles.secrets import InMemorySecretStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.integration.mcp.parts import IN_RUN, a_call, remote, sdk_connections, serving, text_of
from tests.integration.mcp.servers.http_server import result_of
from tests.integration.secrets.vault import ROOT, FakeVault, a_vault

pytestmark = pytest.mark.requirement("K8")

GITHUB, PATH = "vault:github#token", f"secret/data/dragoman/{ORG}/github"


@dataclass
class Protected:
    """An MCP server that accepts one token. `sent` has the tokens of all requests."""

    accepted: str
    sent: list[str | None] = field(default_factory=list)

    async def answer(self, request: Request) -> Response:
        token = request.headers.get("authorization")
        self.sent.append(token)
        if token != f"Bearer {self.accepted}":
            return Response(status_code=401)
        if request.method != "POST":
            return Response(status_code=405)
        message = await request.json()
        if "id" not in message:
            return Response(status_code=202)
        result = result_of(message["method"], message.get("params", {}))
        reply = {"error": {"code": -32601, "message": "No."}} if result is None else {"result": result}
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], **reply})

    @property
    def app(self) -> Starlette:
        return Starlette(routes=[Route("/mcp", self.answer, methods=["GET", "POST", "DELETE"])])


@asynccontextmanager
async def connections_with(vault: FakeVault, files: Path) -> AsyncIterator[SdkMcpConnections]:
    source = VaultSecrets(
        place=VaultPlace(url=vault.url, mount="secret", prefix="dragoman/{organization}"),
        token=ROOT,
        login=None,
        client=HttpClients().create,
        clock=FixedClock(),
        cache_s=86_400,
    )
    external = ExternalSecrets(vault=source, files=FileSecrets(files))
    secrets = SourcedSecrets(InMemorySecretStore(InMemoryState()), external_secrets=external)
    try:
        async with sdk_connections(secrets=secrets, forget=external.forget) as connections:
            yield connections
    finally:
        await external.close()


@pytest.mark.parametrize("name", [GITHUB, "file:token"])
async def test_a_token_that_was_rotated_is_read_again_when_the_server_refuses_the_old_one(
    name: str, tmp_path: Path
) -> None:
    def rotate(value: str) -> None:
        vault.secrets[PATH] = {"token": value}
        (tmp_path / ORG).mkdir(exist_ok=True)
        (tmp_path / ORG / "token").write_text(value, encoding="ascii")

    there = Protected("first-token")
    async with a_vault() as vault, serving(there.app) as url, connections_with(vault, tmp_path) as connections:
        rotate("first-token")
        server = remote(f"{url}/mcp", auth=BearerAuth(token=SecretRef(name)))
        await connections.call_tool(server, IN_RUN, a_call("pid"))

        rotate("second-token")
        there.accepted = "second-token"
        reply = await connections.call_tool(server, IN_RUN, a_call("pid"))

    assert text_of(reply)
    assert "Bearer second-token" in there.sent


async def test_a_server_that_refuses_the_secret_of_now_is_not_asked_again(tmp_path: Path) -> None:
    there = Protected("another-token")
    async with a_vault() as vault, serving(there.app) as url, connections_with(vault, tmp_path) as connections:
        vault.secrets[PATH] = {"token": "first-token"}
        with pytest.raises(McpFailure) as failed:
            await connections.call_tool(
                remote(f"{url}/mcp", headers={"Authorization": SecretRef(GITHUB)}), IN_RUN, a_call("pid")
            )

    assert "first-token" not in failed.value.detail


async def test_a_vault_that_does_not_answer_is_why_there_is_no_connection(tmp_path: Path) -> None:
    there = Protected("first-token")
    async with a_vault() as vault, serving(there.app) as url, connections_with(vault, tmp_path) as connections:
        vault.fails_with = 503
        with pytest.raises(McpFailure) as failed:
            await connections.call_tool(
                remote(f"{url}/mcp", auth=BearerAuth(token=SecretRef(GITHUB))), IN_RUN, a_call("pid")
            )

    assert failed.value.detail == f"The secret {GITHUB!r} cannot be read: Vault answered with HTTP status 503."
    assert there.sent == []
