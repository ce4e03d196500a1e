"""Secrets from Vault over HTTP: paths of an organization, logins, what is kept in memory, and
errors without values."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from domain.secrets.secret import VaultReference
from infrastructure.http.client import HttpClients
from infrastructure.secrets.external_secrets import SecretUnreadableError
from infrastructure.secrets.vault_login import AppRoleLogin, KubernetesLogin, VaultLogin
from infrastructure.secrets.vault_secrets import LOGIN_EVERY_S, MAX_ANSWER_BYTES, REFUSED_S, VaultPlace, VaultSecrets
from tests.builders import ORG, OTHER_ORG
from tests.doubles.surroundings import FixedClock
from tests.integration.secrets.vault import ROOT, FakeVault, a_vault
from tests.integration.tracing.receivers import refusing_address

pytestmark = pytest.mark.requirement("K8")

GITHUB = VaultReference("github", "token")
VALUE = "planted-vault-value"
REFUSAL = "Vault refuses access to it"
LOGIN_BODY = {"role_id": "role", "secret_id": "secret-of-the-role"}
APPROLE = AppRoleLogin(mount="approle", role_id="role", secret_id="secret-of-the-role")


@asynccontextmanager
async def reading(
    url: str,
    *,
    login: VaultLogin | None = None,
    clock: FixedClock | None = None,
    token: str = ROOT,
    namespace: str | None = None,
    ca_file: Path | None = None,
) -> AsyncIterator[VaultSecrets]:
    secrets = VaultSecrets(
        place=VaultPlace(url=url, mount="secret", prefix="teams/{organization}", namespace=namespace),
        token=token if login is None else None,
        login=login,
        client=HttpClients(ca_file=ca_file).create,
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
        vault.logins["auth/approle/login"] = LOGIN_BODY
        store(vault)

        assert await secrets.value(ORG, GITHUB) == VALUE
        clock.advance(vault.lease_s * 0.5)
        await secrets.value(ORG, GITHUB)
        assert vault.logged_in == 1
        clock.advance(vault.lease_s * 0.3)
        await secrets.value(ORG, GITHUB)
        assert vault.logged_in == 2


async def test_a_token_that_vault_refuses_is_replaced_by_another_login() -> None:
    clock = FixedClock()
    async with a_vault() as vault, reading(vault.url, login=APPROLE, clock=clock) as secrets:
        vault.logins["auth/approle/login"] = LOGIN_BODY
        store(vault)
        await secrets.value(ORG, GITHUB)
        vault.revoke_all()
        secrets.forget(ORG)
        clock.advance(LOGIN_EVERY_S)

        assert await secrets.value(ORG, GITHUB) == VALUE
        assert vault.logged_in == 2


async def test_a_path_that_vault_refuses_costs_no_login_each_time_and_is_not_asked_for_again_at_once() -> None:
    clock = FixedClock()
    async with a_vault() as vault, reading(vault.url, login=APPROLE, clock=clock) as secrets:
        vault.logins["auth/approle/login"] = LOGIN_BODY
        store(vault)
        vault.denied.add(path_of(ORG))

        for _ in range(3):
            assert await reason_of(secrets) == REFUSAL
        assert (vault.logged_in, vault.reads) == (1, 1)
        clock.advance(REFUSED_S)
        assert await reason_of(secrets) == REFUSAL
        assert (vault.logged_in, vault.reads) == (1, 2)
        clock.advance(LOGIN_EVERY_S)
        assert await reason_of(secrets) == REFUSAL
        assert (vault.logged_in, vault.reads) == (2, 4)
        vault.denied.clear()
        clock.advance(REFUSED_S)
        assert await secrets.value(ORG, GITHUB) == VALUE


async def test_reads_at_once_share_one_login_and_its_failure() -> None:
    async with a_vault() as vault, reading(vault.url, login=APPROLE) as secrets:
        store(vault)
        reads = [secrets.value(ORG, VaultReference(f"path{number}", "token")) for number in range(5)]
        failures = await asyncio.gather(*reads, return_exceptions=True)
        assert {str(failure) for failure in failures} == {"Vault refused the login of this service (HTTP status 400)"}
        assert (vault.asked_to_log_in, vault.reads) == (1, 0)

        vault.logins["auth/approle/login"] = LOGIN_BODY
        assert await asyncio.gather(*(secrets.value(ORG, GITHUB) for _ in range(5))) == [VALUE] * 5
        assert vault.logged_in == 1


async def test_certificates_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    ca_file = tmp_path / "ca.pem"
    for write in (lambda: None, lambda: ca_file.write_text("no certificate", encoding="ascii")):
        write()
        async with reading("https://vault.test", ca_file=ca_file) as secrets:
            assert "DRAGOMAN_VAULT_CA_FILE" in await reason_of(secrets)


async def test_a_pod_logs_in_with_the_token_that_its_service_account_has_now(tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    login = KubernetesLogin(mount="kubernetes-eu", role="dragoman", token_file=token_file)
    clock = FixedClock()
    async with a_vault() as vault, reading(vault.url, login=login, clock=clock) as secrets:
        store(vault)
        assert "service account" in await reason_of(secrets)

        for jwt in ("first", "second"):
            token_file.write_text(f"{jwt}\n", encoding="ascii")
            vault.logins["auth/kubernetes-eu/login"] = {"role": "dragoman", "jwt": jwt}
            vault.revoke_all()
            secrets.forget(ORG)
            clock.advance(LOGIN_EVERY_S)
            assert await secrets.value(ORG, GITHUB) == VALUE


async def test_errors_say_what_vault_did_and_have_no_value() -> None:
    clock = FixedClock()
    async with a_vault() as vault:
        store(vault)
        async with reading(vault.url, login=APPROLE) as secrets:
            reasons = [await reason_of(secrets)]
        async with reading(vault.url, clock=clock) as secrets:
            vault.denied.add(path_of(ORG))
            reasons.append(await reason_of(secrets))
            vault.fails_with = 503
            clock.advance(REFUSED_S)
            reasons.append(await reason_of(secrets))
            vault.fails_with, vault.denied = None, set()
            vault.secrets[path_of(ORG)] = {"token": "x" * (MAX_ANSWER_BYTES + 1)}
            reasons.append(await reason_of(secrets))
    with refusing_address() as url:
        async with reading(url) as secrets:
            reasons.append(await reason_of(secrets))

    assert reasons == [
        "Vault refused the login of this service (HTTP status 400)",
        REFUSAL,
        "Vault answered with HTTP status 503",
        "Vault's answer is too large",
        "Vault does not answer",
    ]
