"""Secrets from Vault over HTTP: paths of an organization, logins, what is kept in memory, and errors without values."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from domain.secrets.secret import VaultReference
from infrastructure.http.client import HttpClients
from infrastructure.secrets.external_secrets import SecretUnreadableError
from infrastructure.secrets.vault_login import AppRoleLogin, KubernetesLogin, VaultLogin
from infrastructure.secrets.vault_secrets import MAX_ANSWER_BYTES, VaultPlace, VaultSecrets
from tests.builders import ORG, OTHER_ORG
from tests.doubles.surroundings import FixedClock
from tests.integration.secrets.vault import ROOT, FakeVault, a_vault
from tests.integration.tracing.receivers import refusing_address

pytestmark = pytest.mark.requirement("K8")

GITHUB = VaultReference("github", "token")
VALUE = "planted-vault-value"
APPROLE = AppRoleLogin(mount="approle", role_id="role", secret_id="secret-of-the-role")


@asynccontextmanager
async def reading(
    url: str,
    *,
    login: VaultLogin | None = None,
    clock: FixedClock | None = None,
    token: str = ROOT,
    namespace: str | None = None,
) -> AsyncIterator[VaultSecrets]:
    secrets = VaultSecrets(
        place=VaultPlace(url=url, mount="secret", prefix="teams/{organization}", namespace=namespace),
        token=token if login is None else None,
        login=login,
        client=HttpClients().create,
        clock=clock or FixedClock(),
        cache_s=60,
    )
    try:
        yield secrets
    finally:
        await secrets.close()


def path_of(organization_id: str, path: str = "github") -> str:
    return f"secret/data/teams/{organization_id}/{path}"


def store(vault: FakeVault, value: str = VALUE) -> None:
    vault.secrets[path_of(ORG)] = {"token": value, "number": 5}


async def reason_of(secrets: VaultSecrets) -> str:
    with pytest.raises(SecretUnreadableError) as unreadable:
        await secrets.value(ORG, GITHUB)
    return unreadable.value.reason


async def test_a_key_is_read_below_the_path_of_the_organization() -> None:
    async with a_vault() as vault, reading(vault.url, namespace="eu/") as secrets:
        store(vault)

        assert await secrets.value(ORG, GITHUB) == VALUE
        assert await secrets.value(OTHER_ORG, GITHUB) is None
        assert await secrets.value(ORG, VaultReference("github", "other")) is None
        assert await secrets.value(ORG, VaultReference("github", "number")) is None
        assert vault.namespaces == ["eu/", "eu/"]


async def test_a_value_is_kept_for_a_time_and_dropped_when_it_was_refused() -> None:
    clock = FixedClock()
    async with a_vault() as vault, reading(vault.url, clock=clock) as secrets:
        store(vault)
        await secrets.value(ORG, GITHUB)
        store(vault, "rotated")

        assert await secrets.value(ORG, GITHUB) == VALUE
        secrets.forget(OTHER_ORG)
        assert await secrets.value(ORG, GITHUB) == VALUE
        secrets.forget(ORG)
        assert await secrets.value(ORG, GITHUB) == "rotated"
        store(vault, "rotated again")
        clock.advance(60)
        assert await secrets.value(ORG, GITHUB) == "rotated again"


async def test_a_missing_secret_is_looked_for_each_time() -> None:
    async with a_vault() as vault, reading(vault.url) as secrets:
        assert await secrets.value(ORG, GITHUB) is None
        store(vault)
        assert await secrets.value(ORG, GITHUB) == VALUE


async def test_a_login_by_approle_is_made_once_and_again_before_its_token_expires() -> None:
    clock = FixedClock()
    async with a_vault() as vault, reading(vault.url, login=APPROLE, clock=clock) as secrets:
        vault.logins["auth/approle/login"] = {"role_id": "role", "secret_id": "secret-of-the-role"}
        store(vault)

        assert await secrets.value(ORG, GITHUB) == VALUE
        clock.advance(vault.lease_s * 0.5)
        await secrets.value(ORG, GITHUB)
        assert vault.logged_in == 1
        clock.advance(vault.lease_s * 0.3)
        await secrets.value(ORG, GITHUB)
        assert vault.logged_in == 2


async def test_a_token_that_vault_refuses_is_replaced_by_another_login() -> None:
    async with a_vault() as vault, reading(vault.url, login=APPROLE) as secrets:
        vault.logins["auth/approle/login"] = {"role_id": "role", "secret_id": "secret-of-the-role"}
        store(vault)
        await secrets.value(ORG, GITHUB)
        vault.revoke_all()
        secrets.forget(ORG)

        assert await secrets.value(ORG, GITHUB) == VALUE
        assert vault.logged_in == 2


async def test_a_pod_logs_in_with_the_token_that_its_service_account_has_now(tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    login = KubernetesLogin(mount="kubernetes-eu", role="dragoman", token_file=token_file)
    async with a_vault() as vault, reading(vault.url, login=login) as secrets:
        store(vault)
        assert "service account" in await reason_of(secrets)

        for jwt in ("first", "second"):
            token_file.write_text(f"{jwt}\n", encoding="ascii")
            vault.logins["auth/kubernetes-eu/login"] = {"role": "dragoman", "jwt": jwt}
            vault.revoke_all()
            secrets.forget(ORG)
            assert await secrets.value(ORG, GITHUB) == VALUE


async def test_errors_say_what_vault_did_and_have_no_value() -> None:
    async with a_vault() as vault:
        store(vault)
        async with reading(vault.url, login=APPROLE) as secrets:
            reasons = [await reason_of(secrets)]
        async with reading(vault.url) as secrets:
            vault.denied.add(path_of(ORG))
            reasons.append(await reason_of(secrets))
            vault.fails_with = 503
            reasons.append(await reason_of(secrets))
            vault.fails_with, vault.denied = None, set()
            vault.secrets[path_of(ORG)] = {"token": "x" * (MAX_ANSWER_BYTES + 1)}
            reasons.append(await reason_of(secrets))
    with refusing_address() as url:
        async with reading(url) as secrets:
            reasons.append(await reason_of(secrets))

    assert reasons == [
        "Vault refused the login of this service (HTTP status 400)",
        "Vault refuses access to it",
        "Vault answered with HTTP status 503",
        "Vault's answer is too large",
        "Vault does not answer",
    ]


@pytest.mark.skipif("DRAGOMAN_TEST_VAULT" not in os.environ, reason="opt in with DRAGOMAN_TEST_VAULT=URL TOKEN")
async def test_a_real_vault_answers_as_the_one_of_these_tests() -> None:
    """For `vault server -dev`, after `vault kv put secret/teams/ORG/github token=planted-vault-value`."""
    url, token = os.environ["DRAGOMAN_TEST_VAULT"].split()
    async with reading(url, token=token) as secrets:
        assert await secrets.value(ORG, GITHUB) == VALUE
        assert await secrets.value(ORG, VaultReference("absent", "token")) is None
    async with reading(url, token="hvs.wrong") as secrets:
        assert await reason_of(secrets) == "Vault refuses access to it"
