"""Certificates of servers, as they are saved."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from domain.errors import ServiceError
from domain.mcp.auth import ClientCredentialsAuth
from domain.mcp.server import McpServerConfig, McpServerKind
from domain.mcp.server_tls import ServerTls
from domain.secrets.secret import Secret, SecretRef, SecretValue
from tests.builders import ORG, START, an_audit_event
from tests.certificates import Authority
from tests.doubles.secrets import InMemorySecretStore
from tests.mcp_builders import a_state_with_servers, certificates_of
from tests.unit.infrastructure.identity.test_private_keys import pem_of

pytestmark = pytest.mark.requirement("P4")

OURS = Authority("ours", now=START)
GOOD = OURS.issue("dragoman", ends=timedelta(days=10))
OTHER = OURS.issue("other")


def a_config(tls: ServerTls | None) -> McpServerConfig:
    return McpServerConfig(slug="tickets", kind=McpServerKind.HTTP, url="https://mcp.example.org/mcp", tls=tls)


def tls_of(
    certificate: str = GOOD.certificate, private_key: str = GOOD.private_key, ca: str | None = None
) -> ServerTls:
    return ServerTls(certificate=certificate, private_key=private_key, ca=ca)


async def checked(tls: ServerTls | None, former: ServerTls | None = None) -> ServerTls | None:
    certificates = certificates_of(a_state_with_servers())
    before = None if former is None else a_config(former)
    return (await certificates.checked(ORG, a_config(tls), before)).tls


async def test_subject_and_expiry_are_those_of_the_certificate_whatever_was_given() -> None:
    given = replace(tls_of(), subject="somebody", expires_at=START)
    assert await checked(given) == replace(given, subject="CN=dragoman", expires_at=START + timedelta(days=10))
    assert await checked(ServerTls(ca=OURS.pem)) == ServerTls(ca=OURS.pem)
    assert await checked(None) is None


@pytest.mark.parametrize(
    ("tls", "path", "reason"),
    [
        (tls_of("no certificate"), "tls.certificate", "is not a certificate in PEM"),
        (
            tls_of(*OURS.issue("old", begins=-timedelta(days=9), ends=-timedelta(hours=1))),
            "tls.certificate",
            "expired at 2026-01-01 11:00 UTC",
        ),
        (
            tls_of(*OURS.issue("new", begins=timedelta(hours=1))),
            "tls.certificate",
            "is not valid before 2026-01-01 13:00 UTC",
        ),
        (
            tls_of(*OURS.issue("server", usage=ExtendedKeyUsageOID.SERVER_AUTH)),
            "tls.certificate",
            "is not for clients: its extended key usage lacks clientAuth",
        ),
        (tls_of(private_key=OTHER.private_key), "tls.private_key", "does not belong to the certificate"),
        (tls_of(private_key="no key"), "tls.private_key", "is not a private key in PEM without a password"),
        (
            tls_of(*OURS.issue("locked", password="s3cret")),
            "tls.private_key",
            "is not a private key in PEM without a password",
        ),
        (tls_of(ca="no authorities"), "tls.ca", "has no certificates in PEM"),
    ],
)
async def test_what_cannot_be_used_is_refused_with_its_reason(tls: ServerTls, path: str, reason: str) -> None:
    with pytest.raises(ServiceError) as refused:
        await checked(tls)
    assert [(wrong.path, wrong.message) for wrong in refused.value.violations] == [(path, reason)]


async def test_a_certificate_for_any_use_is_for_clients_too() -> None:
    found = await checked(tls_of(*OURS.issue("any", usage=None)))
    assert found is not None
    assert found.subject == "CN=any"


async def test_an_unchanged_certificate_that_has_expired_hinders_no_other_change() -> None:
    expired = tls_of(*OURS.issue("old", begins=-timedelta(days=9), ends=-timedelta(hours=1)))
    assert await checked(expired, expired) == expired


async def test_a_named_key_is_compared_if_it_exists() -> None:
    state = a_state_with_servers()
    secrets, certificates = InMemorySecretStore(state), certificates_of(state)
    config = a_config(replace(tls_of(), private_key=SecretRef("TLS_KEY")))
    assert (await certificates.checked(ORG, config)).tls is not None
    secret = Secret(organization_id=ORG, name="TLS_KEY", created_at=START, updated_at=START)
    await secrets.put(secret, OTHER.private_key, an_audit_event())
    with pytest.raises(ServiceError) as refused:
        await certificates.checked(ORG, config)
    assert [wrong.path for wrong in refused.value.violations] == ["tls.private_key"]


LOCKED = OURS.issue("locked", password="s3cret").private_key
NO_KEY = "is not a private key in PEM without a password"
NO_SIGNING_KEY = "is no key for P-256, Ed25519, or RSA of 2048 to 4096 bits"


def signing(private_key: SecretValue, key_id: str | None = None) -> McpServerConfig:
    """A server whose authorization server is given assertions."""
    auth = ClientCredentialsAuth(client_id="me", private_key=private_key, key_id=key_id)
    return replace(a_config(None), auth=auth)


async def test_a_key_that_signs_assertions_is_saved() -> None:
    certificates = certificates_of(a_state_with_servers())
    for usable in (GOOD.private_key, pem_of(ed25519.Ed25519PrivateKey.generate()).decode()):
        assert await certificates.checked(ORG, signing(usable)) == signing(usable)


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (lambda: "no key", NO_KEY),
        (lambda: GOOD.certificate, NO_KEY),
        (lambda: LOCKED, NO_KEY),
        (lambda: pem_of(ec.generate_private_key(ec.SECP384R1())).decode(), NO_SIGNING_KEY),
        (lambda: pem_of(rsa.generate_private_key(public_exponent=65537, key_size=1024)).decode(), NO_SIGNING_KEY),
    ],
    ids=["no key", "a certificate", "a password", "another curve", "too short"],
)
async def test_a_key_that_signs_no_assertions_is_refused_with_its_reason(key: Callable[[], str], reason: str) -> None:
    with pytest.raises(ServiceError) as refused:
        await certificates_of(a_state_with_servers()).checked(ORG, signing(key()))
    assert refused.value.code == "mcp_server_invalid"
    assert [(wrong.path, wrong.message) for wrong in refused.value.violations] == [("auth.private_key", reason)]


async def test_a_signing_key_in_a_secret_is_read_if_it_exists_and_an_unchanged_one_hinders_no_change() -> None:
    state = a_state_with_servers()
    secrets, certificates = InMemorySecretStore(state), certificates_of(state)
    config = signing(SecretRef("CLIENT_KEY"))
    assert await certificates.checked(ORG, config) == config
    secret = Secret(organization_id=ORG, name="CLIENT_KEY", created_at=START, updated_at=START)
    await secrets.put(secret, "no key", an_audit_event())
    with pytest.raises(ServiceError) as refused:
        await certificates.checked(ORG, config)
    assert [wrong.path for wrong in refused.value.violations] == ["auth.private_key"]
    renamed = signing(SecretRef("CLIENT_KEY"), key_id="two")
    assert await certificates.checked(ORG, renamed, config) == renamed
