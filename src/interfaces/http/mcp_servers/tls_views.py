"""The `tls` of an MCP server in responses. The private key is write-only."""

from typing import Annotated, TypedDict

from domain.mcp.server_tls import ServerTls
from domain.threads.message_json import timestamp
from interfaces.http.secrets.reference_views import WriteOnlyView, write_only_view
from interfaces.http.view_fields import Timestamp


class TlsView(TypedDict):
    """TLS with a remote server."""

    certificate: Annotated[
        str | None, "Client certificate in PEM, with those between it and its authority; null: none is shown."
    ]
    private_key: Annotated[
        WriteOnlyView | None,
        "Private key of the certificate, in PEM without a password. Write-only, or the name of a secret.",
    ]
    ca: Annotated[
        str | None, "Certificate authorities in PEM, in place of those of the system; null: those of the system."
    ]
    subject: Annotated[str | None, "Subject of the client certificate."]
    expires_at: Annotated[Timestamp | None, "When the client certificate expires."]


def tls_view(tls: ServerTls | None) -> TlsView | None:
    if tls is None:
        return None
    return {
        "certificate": tls.certificate,
        "private_key": None if tls.private_key is None else write_only_view(tls.private_key),
        "ca": tls.ca,
        "subject": tls.subject,
        "expires_at": None if tls.expires_at is None else timestamp(tls.expires_at),
    }
