"""The `auth` of an MCP server in bodies. Secrets are write-only, or references to named secrets."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from domain.json_value import JsonObject
from domain.mcp.auth import (
    ApiKeyAuth,
    AuthorizationCodeAuth,
    BearerAuth,
    ClientCredentialsAuth,
    IdJagAuth,
    SubjectToken,
    TokenExchangeAuth,
)
from interfaces.http.bodies import Body, Strings
from interfaces.http.secrets.reference_views import HIDDEN
from interfaces.http.secrets.references import WriteOnly

_ISSUER = "The authorization server. Default: the one that the MCP server names."
_SECRET = "Write-only. This, or `private_key`."
_KEY = "Write-only: a private key in PEM (P-256, Ed25519 or RSA) that signs assertions (`private_key_jwt`), in place of a secret."
_KEY_ID = "Id of the key in assertions (`kid`), if the server needs one."
_TYPE = frozenset({"type"})
SubjectKind = Annotated[SubjectToken, Field(strict=False)]
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
    client_secret: WriteOnly | None = Field(default=None, description=_SECRET)
    private_key: WriteOnly | None = Field(
        default=None,
        description="Write-only: a private key in PEM (P-256, Ed25519 or RSA) that signs assertions "
        "(`private_key_jwt`), in place of a secret.",
    )
    key_id: str | None = Field(default=None, description=_KEY_ID)
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


class TokenExchangeAuthBody(Body):
    """OAuth token exchange (RFC 8693): the identity provider of each person exchanges their sign-in
    for a token of the server. Needs `credentials` `person`."""

    examples: ClassVar[tuple[JsonObject, ...]] = (
        {"type": "oauth_token_exchange", "audience": "tickets", "scopes": ["tickets:read"]},
    )

    type: Literal["oauth_token_exchange"] = Field(description="Kind of the authentication.")
    client_id: str | None = Field(default=None, description="Default: the client that people sign in with.")
    client_secret: WriteOnly | None = Field(default=None, description=_SECRET)
    private_key: WriteOnly | None = Field(default=None, description=_KEY)
    key_id: str | None = Field(default=None, description=_KEY_ID)
    scopes: Strings = Field(default=(), description="Default: what the identity provider gives.")
    issuer: str | None = Field(
        default=None, description="Another authorization server of the identity provider, at its origin."
    )
    audience: str | None = Field(default=None, description="Name of the server at the identity provider.")
    resource: str | None = Field(
        default=None, description="URL of the server at the identity provider. Default: its `url`, without `audience`."
    )
    subject_token: SubjectKind = Field(
        default=SubjectToken.ID_TOKEN, description="The token of the sign-in that is exchanged."
    )

    def to_domain(self) -> TokenExchangeAuth:
        return TokenExchangeAuth(**self.values(without=_TYPE))


class IdJagAuthBody(Body):
    """Enterprise-managed authorization: the identity provider of each person gives an assertion
    (ID-JAG) for the server's authorization server, which gives a token for it. Needs `credentials`
    `person`."""

    examples: ClassVar[tuple[JsonObject, ...]] = (
        {
            "type": "oauth_id_jag",
            "issuer": "https://auth.example.com",
            "client_id": "dragoman",
            "client_secret": {"secret": "TICKETS_CLIENT_SECRET"},
        },
    )

    type: Literal["oauth_id_jag"] = Field(description="Kind of the authentication.")
    issuer: str = Field(description="The authorization server of the MCP server.")
    client_id: str = Field(description="Client id at this authorization server.")
    client_secret: WriteOnly | None = Field(default=None, description=_SECRET)
    private_key: WriteOnly | None = Field(default=None, description=_KEY)
    key_id: str | None = Field(default=None, description=_KEY_ID)
    scopes: Strings = Field(default=(), description="Default: what the authorization server gives.")

    def to_domain(self) -> IdJagAuth:
        return IdJagAuth(**self.values(without=_TYPE))


AuthBody = Annotated[
    BearerAuthBody
    | ApiKeyAuthBody
    | ClientCredentialsAuthBody
    | AuthorizationCodeAuthBody
    | TokenExchangeAuthBody
    | IdJagAuthBody,
    Field(discriminator="type"),
]


def hidden_in(body: AuthBody) -> Iterator[str]:
    """Fields that hold the placeholder of a stored value."""
    return (f"auth.{name}" for name in SECRETS if getattr(body, name, None) == HIDDEN)
