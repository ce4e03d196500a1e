"""The `tls` of an MCP server in bodies and responses. The private key is write-only."""

from typing import Annotated, ClassVar, TypedDict

from pydantic import Field

from domain.json_value import JsonObject
from domain.mcp.server_tls import ServerTls
from domain.threads.message_json import timestamp
from interfaces.http.bodies import Body
from interfaces.http.secrets.reference_views import WriteOnlyView, write_only_view
from interfaces.http.secrets.references import WriteOnly
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


class TlsBody(Body):
    """TLS with a remote server: a client certificate with its key, or certificate authorities, or both."""

    examples: ClassVar[tuple[JsonObject, ...]] = (
        {
            "certificate": "-----BEGIN CERTIFICATE-----\n…\n-----END CERTIFICATE-----\n",
            "private_key": {"secret": "TICKETS_TLS_KEY"},
        },
    )

    shown_as: ClassVar[type] = TlsView

    certificate: str | None = None
    private_key: WriteOnly | None = Field(
        default=None,
        description="Private key of the certificate, in PEM without a password. Write-only, or the name of a secret.",
    )
    ca: str | None = None

    def to_domain(self) -> ServerTls:
        return ServerTls(**self.values())


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
