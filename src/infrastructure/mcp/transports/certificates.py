"""X.509 certificates and keys in PEM, read with cryptography."""

from dataclasses import replace
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID

from domain.errors import Violation
from domain.mcp.server_tls import ServerTls
from infrastructure.identity.private_keys import UnusableKeyError, read_private_key

_UNREADABLE = (ValueError, TypeError, UnsupportedAlgorithm)


def read_certificates(tls: ServerTls, private_key: str | None, now: datetime) -> ServerTls | list[Violation]:
    """The port `ReadCertificates`."""
    wrong: list[Violation] = []
    if tls.ca is not None and (fault := _fault_of_authorities(tls.ca)) is not None:
        wrong.append(Violation(path="tls.ca", message=fault))
    if tls.certificate is None:
        return wrong or replace(tls, subject=None, expires_at=None)
    try:
        certificate = x509.load_pem_x509_certificates(tls.certificate.encode())[0]
        fault = _fault_of(certificate, now)
    except _UNREADABLE:
        return [*wrong, Violation(path="tls.certificate", message="is not a certificate in PEM")]
    if fault is not None:
        wrong.append(Violation(path="tls.certificate", message=fault))
    if private_key is not None and (fault := _fault_of_key(certificate, private_key)) is not None:
        wrong.append(Violation(path="tls.private_key", message=fault))
    if wrong:
        return wrong
    return replace(tls, subject=certificate.subject.rfc4514_string(), expires_at=certificate.not_valid_after_utc)


def _fault_of_authorities(pem: str) -> str | None:
    try:
        x509.load_pem_x509_certificates(pem.encode())
    except _UNREADABLE:
        return "has no certificates in PEM"
    return None


def _fault_of(certificate: x509.Certificate, now: datetime) -> str | None:
    if certificate.not_valid_after_utc <= now:
        return f"expired at {certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
    if certificate.not_valid_before_utc > now:
        return f"is not valid before {certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC"
    try:
        uses = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return None
    for_clients = {ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE}
    return None if for_clients & set(uses) else "is not for clients: its extended key usage lacks clientAuth"


def _fault_of_key(certificate: x509.Certificate, pem: str) -> str | None:
    try:
        key = read_private_key(pem.encode())
        ours = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        theirs = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    except UnusableKeyError as error:
        return error.reason
    except _UNREADABLE:
        return "is not of a kind that certificates have"
    return None if ours == theirs else "does not belong to the certificate"
