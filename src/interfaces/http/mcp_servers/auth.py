"""The `auth` of an MCP server in bodies. Secrets are write-only, or references to named secrets."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from domain.json_value import JsonObject
from domain.mcp.auth import ApiKeyAuth, AuthorizationCodeAuth, BearerAuth, ClientCredentialsAuth
from interfaces.http.bodies import Body, Strings
from interfaces.http.secrets.reference_views import HIDDEN
from interfaces.http.secrets.references import WriteOnly

_ISSUER = "The authorization server. Default: the one that the MCP server names."
_TYPE = frozenset({"type"})
SECRETS = ("token", "value", "client_secret", "private_key")
"""Write-only fields, of all kinds."""


class BearerAuthBody(Body):
    """A bearer token, sent unchanged."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"type": "bearer", "token": {"secret": "TICKETS_TOKEN"}},)

    type: Literal["bearer"] = Field(description="Kind of the authentication.")
    token: WriteOnly = Field(description="Write-only.")

    def to_domain(self) -> BearerAuth:
        return BearerAuth(**self.values(without=_TYPE))


class ApiKeyAuthBody(Body):
    """A key in a custom header, sent unchanged."""

    examples: ClassVar[tuple[JsonObject, ...]] = (
        {"type": "api_key", "header": "X-Api-Key", "value": {"secret": "TICKETS_KEY"}},
    )

    type: Literal["api_key"] = Field(description="Kind of the authentication.")
    header: str = Field(description="Name of the header.")
    value: WriteOnly = Field(description="Write-only.")

    def to_domain(self) -> ApiKeyAuth:
        return ApiKeyAuth(**self.values(without=_TYPE))


class ClientCredentialsAuthBody(Body):
    """OAuth client credentials: Dragoman authenticates as itself."""

    examples: ClassVar[tuple[JsonObject, ...]] = (
        {
            "type": "oauth_client_credentials",
            "client_id": "dragoman",
            "client_secret": {"secret": "TICKETS_CLIENT_SECRET"},
            "scopes": ["tickets:read"],
        },
        {
            "type": "oauth_client_credentials",
            "client_id": "dragoman",
            "private_key": {"secret": "TICKETS_CLIENT_KEY"},
            "key_id": "2026-11",
        },
    )

    type: Literal["oauth_client_credentials"] = Field(description="Kind of the authentication.")
    client_id: str = Field(description="Client id at the authorization server.")
    client_secret: WriteOnly | None = Field(default=None, description="Write-only. This, or `private_key`.")
    private_key: WriteOnly | None = Field(
        default=None,
        description="Write-only: a private key in PEM (P-256, Ed25519 or RSA) that signs assertions "
        "(`private_key_jwt`), in place of a secret.",
    )
    key_id: str | None = Field(
        default=None, description="Id of the key in assertions (`kid`), if the server needs one."
    )
    scopes: Strings = Field(default=(), description="Default: the scopes that the server requires.")
    issuer: str | None = Field(default=None, description=_ISSUER)

    def to_domain(self) -> ClientCredentialsAuth:
        return ClientCredentialsAuth(**self.values(without=_TYPE))


class AuthorizationCodeAuthBody(Body):
    """OAuth authorization code: a person consents once in a browser, see `POST …/authorize`."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"type": "oauth_authorization_code"},)

    type: Literal["oauth_authorization_code"] = Field(description="Kind of the authentication.")
    client_id: str | None = Field(
        default=None, description="Of a manually registered client. By default Dragoman registers itself if possible."
    )
    client_secret: WriteOnly | None = Field(default=None, description="Write-only.")
    scopes: Strings = Field(default=(), description="Default: the scopes that the server requires.")
    issuer: str | None = Field(default=None, description=_ISSUER)

    def to_domain(self) -> AuthorizationCodeAuth:
        return AuthorizationCodeAuth(**self.values(without=_TYPE))


AuthBody = Annotated[
    BearerAuthBody | ApiKeyAuthBody | ClientCredentialsAuthBody | AuthorizationCodeAuthBody,
    Field(discriminator="type"),
]


def hidden_in(body: AuthBody) -> Iterator[str]:
    """Fields that hold the placeholder of a stored value."""
    return (f"auth.{name}" for name in SECRETS if getattr(body, name, None) == HIDDEN)
