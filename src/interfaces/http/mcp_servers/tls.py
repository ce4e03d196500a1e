"""The `tls` of an MCP server in bodies. The private key is write-only."""

from typing import ClassVar

from pydantic import Field

from domain.json_value import JsonObject
from domain.mcp.server_tls import ServerTls
from interfaces.http.bodies import Body
from interfaces.http.mcp_servers.tls_views import TlsView
from interfaces.http.secrets.references import WriteOnly


class TlsBody(Body):
    """TLS with a remote server: a client certificate with its key, or certificate authorities, or
    both."""

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
