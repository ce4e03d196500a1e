"""The `auth` of an MCP server in responses, without secret values, and the request for
authorization."""

from typing import Annotated, Literal, TypedDict, assert_never

from application.mcp.authorization import AuthorizationRequest
from domain.mcp.auth import (
    ApiKeyAuth,
    AuthorizationCodeAuth,
    BearerAuth,
    ClientCredentialsAuth,
    IdJagAuth,
    OAuthSettings,
    OnBehalfAuth,
    ServerAuth,
    SubjectToken,
    TokenExchangeAuth,
)
from domain.secrets.secret import SecretValue
from domain.threads.message_json import timestamp
from interfaces.http.secrets.reference_views import WriteOnlyView, write_only_view
from interfaces.http.view_fields import ExpiresAt


class AuthView(TypedDict, total=False):
    """Authentication of Dragoman at a server: `type`, and the fields of that type without secret
    values."""

    type: Annotated[
        Literal[
            "bearer",
            "api_key",
            "oauth_client_credentials",
            "oauth_authorization_code",
            "oauth_token_exchange",
            "oauth_id_jag",
        ],
        "Kind of the authentication; the other fields depend on it.",
    ]
    header: Annotated[str, "Name of the header, for `api_key`."]
    token: Annotated[WriteOnlyView, "The bearer token: `[hidden]`, or the name of a secret."]
    value: Annotated[WriteOnlyView, "The key: `[hidden]`, or the name of a secret."]
    client_id: Annotated[str | None, "Client id at the authorization server; null: Dragoman registers itself."]
    client_secret: Annotated[WriteOnlyView | None, "Client secret: `[hidden]`, or the name of a secret; null: none."]
    private_key: Annotated[
        WriteOnlyView | None, "Private key of the client: `[hidden]`, or the name of a secret; null: none."
    ]
    key_id: Annotated[str | None, "Id of the private key in assertions; null: none."]
    scopes: Annotated[list[str], "Requested scopes."]
    issuer: Annotated[
        str | None,
        "The authorization server; null: the one that the MCP server names, or for token exchange the identity provider.",
    ]
    audience: Annotated[str | None, "Name of the server at the identity provider, for token exchange."]
    resource: Annotated[str | None, "URL of the server at the identity provider, for token exchange."]
    subject_token: Annotated[SubjectToken, "The token of the sign-in that is exchanged."]


class AuthorizationView(TypedDict):
    """The URL that a person opens, and its expiry."""

    authorization_url: Annotated[str, "The URL that a person opens."]
    expires_at: ExpiresAt


def authorization_view(request: AuthorizationRequest) -> AuthorizationView:
    return {"authorization_url": request.url, "expires_at": timestamp(request.expires_at)}


def auth_view(auth: ServerAuth | None) -> AuthView | None:
    match auth:
        case None:
            return None
        case BearerAuth():
            return {"type": "bearer", "token": write_only_view(auth.token)}
        case ApiKeyAuth():
            return {"type": "api_key", "header": auth.header, "value": write_only_view(auth.value)}
        case ClientCredentialsAuth():
            return {"type": "oauth_client_credentials", **_client_view(auth), **_key_view(auth)}
        case IdJagAuth():
            return {"type": "oauth_id_jag", **_client_view(auth), **_key_view(auth)}
        case TokenExchangeAuth():
            return {
                "type": "oauth_token_exchange",
                **_client_view(auth),
                **_key_view(auth),
                "audience": auth.audience,
                "resource": auth.resource,
                "subject_token": auth.subject_token,
            }
        case AuthorizationCodeAuth():
            return {"type": "oauth_authorization_code", **_client_view(auth)}
        case _ as unreachable:
            assert_never(unreachable)


def _client_view(auth: OAuthSettings) -> AuthView:
    return {
        "client_id": auth.client_id,
        "client_secret": _optional(auth.client_secret),
        "scopes": [*auth.scopes],
        "issuer": auth.issuer,
    }


def _key_view(auth: ClientCredentialsAuth | OnBehalfAuth) -> AuthView:
    return {"private_key": _optional(auth.private_key), "key_id": auth.key_id}


def _optional(secret: SecretValue | None) -> WriteOnlyView | None:
    return None if secret is None else write_only_view(secret)
