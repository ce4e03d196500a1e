"""Certificates of servers, as they are saved."""

from dataclasses import replace
from datetime import timedelta

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID

from domain.errors import ServiceError
from domain.mcp.server import McpServerConfig, McpServerKind
from domain.mcp.server_tls import ServerTls
from domain.secrets.secret import Secret, SecretRef
from tests.builders import ORG, START, an_audit_event
from tests.certificates import Authority
from tests.doubles.secrets import InMemorySecretStore
from tests.mcp_builders import a_state_with_servers, certificates_of

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
