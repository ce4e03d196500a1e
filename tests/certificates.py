"""Certificate authorities of tests, and the certificates that they issue."""

import ipaddress
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from ssl import CERT_REQUIRED
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LASTS = timedelta(days=90)


class Issued(NamedTuple):
    """A certificate and its key, in PEM."""

    certificate: str
    private_key: str


class Authority:
    """Issues certificates to whoever asks."""

    def __init__(self, name: str, *, now: datetime | None = None) -> None:
        self.now = now or datetime.now(UTC)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        built = (
            x509.CertificateBuilder(self._name, self._name, self._key.public_key(), x509.random_serial_number())
            .not_valid_before(self.now - LASTS)
            .not_valid_after(self.now + LASTS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        )
        self.pem = _pem(built.sign(self._key, hashes.SHA256()))

    def issue(
        self,
        name: str,
        *,
        begins: timedelta = -timedelta(days=1),
        ends: timedelta = timedelta(days=30),
        usage: x509.ObjectIdentifier | None = ExtendedKeyUsageOID.CLIENT_AUTH,
        password: str | None = None,
    ) -> Issued:
        """Valid between these moments from now on."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        alternative = x509.SubjectAlternativeName(
            [x509.DNSName(name), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        )
        builder = (
            x509.CertificateBuilder(self._name, subject, key.public_key(), x509.random_serial_number())
            .not_valid_before(self.now + begins)
            .not_valid_after(self.now + ends)
            .add_extension(alternative, critical=False)
        )
        if usage is not None:
            builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        encryption = NoEncryption() if password is None else BestAvailableEncryption(password.encode())
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()
        return Issued(_pem(builder.sign(self._key, hashes.SHA256())), secret)

    def serves(self, folder: Path, *, host: str = "server.test", clients: "Authority | None" = None) -> dict[str, Any]:
        """Options of uvicorn: a server that shows a certificate of this authority, and requires one
        of `clients`."""
        issued = self.issue(host, usage=ExtendedKeyUsageOID.SERVER_AUTH)
        shown, key, trusted = folder / "server.pem", folder / "server.key", folder / "clients.pem"
        shown.write_text(issued.certificate)
        key.write_text(issued.private_key)
        options: dict[str, Any] = {"ssl_certfile": str(shown), "ssl_keyfile": str(key)}
        if clients is not None:
            trusted.write_text(clients.pem)
            options |= {"ssl_ca_certs": str(trusted), "ssl_cert_reqs": CERT_REQUIRED}
        return options


@cache
def an_authority(name: str = "ours") -> Authority:
    return Authority(name)


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()
