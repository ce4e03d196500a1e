"""TLS with a remote MCP server: a certificate that Dragoman shows, and certificate authorities that
it trusts."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from domain.errors import Violation
from domain.secrets.secret import SecretRef, SecretValue, violations_of

MAX_CERTIFICATES = 32 * 1024
MAX_AUTHORITIES = 512 * 1024
"""Characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTls:
    """All in PEM.

    - `certificate`: the client certificate, with those between it and its authority; `private_key`
      is its key.
    - `ca`: certificate authorities, in place of those that the system trusts.
    - `subject` and `expires_at` are those of the certificate, read when it is saved.
    """

    certificate: str | None = None
    private_key: SecretValue | None = field(default=None, repr=False)
    ca: str | None = None
    subject: str | None = None
    expires_at: datetime | None = None


def wrong_with_tls(tls: ServerTls, url: str | None) -> Iterator[Violation]:
    """The violations of these settings, each with its path."""
    if url is not None and not url.startswith("https://"):
        yield Violation(path="tls", message="needs an https URL")
    if tls.certificate is None and tls.ca is None:
        yield Violation(path="tls", message="needs a certificate with its private_key, or a ca, or both")
    if (tls.certificate is None) != (tls.private_key is None):
        path = "tls.certificate" if tls.certificate is None else "tls.private_key"
        yield Violation(path=path, message="must be given: a certificate and its private_key belong together")
    for name, text, most in (("certificate", tls.certificate, MAX_CERTIFICATES), ("ca", tls.ca, MAX_AUTHORITIES)):
        if text is not None and not 0 < len(text) <= most:
            yield Violation(path=f"tls.{name}", message=f"must have 1 to {most} characters")
    if tls.private_key is not None:
        if not isinstance(tls.private_key, SecretRef) and not 0 < len(tls.private_key) <= MAX_CERTIFICATES:
            yield Violation(path="tls.private_key", message=f"must have 1 to {MAX_CERTIFICATES} characters")
        yield from violations_of("tls.private_key", tls.private_key)
