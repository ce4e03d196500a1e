"""The `auth` of an MCP server in responses, without secret values, and the request for
authorization."""

from typing import TypedDict, assert_never

from application.mcp.authorization import AuthorizationRequest
from domain.mcp.auth import ApiKeyAuth, AuthorizationCodeAuth, BearerAuth, ClientCredentialsAuth, ServerAuth
from domain.threads.message_json import timestamp
from interfaces.http.secrets.reference_views import WriteOnlyView, write_only_view


class AuthView(TypedDict, total=False):
    """Authentication of Dragoman at a server: `type`, and the fields of that type without secret
    values."""

    type: str
    header: str
    token: WriteOnlyView
    value: WriteOnlyView
    client_id: str | None
    client_secret: WriteOnlyView | None
    scopes: list[str]
    issuer: str | None


class AuthorizationView(TypedDict):
    """The URL that a person opens, and its expiry."""

    authorization_url: str
    expires_at: str


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
        case ClientCredentialsAuth() | AuthorizationCodeAuth():
            is_code = isinstance(auth, AuthorizationCodeAuth)
            secret = auth.client_secret
            return {
                "type": "oauth_authorization_code" if is_code else "oauth_client_credentials",
                "client_id": auth.client_id,
                "client_secret": None if secret is None else write_only_view(secret),
                "scopes": [*auth.scopes],
                "issuer": auth.issuer,
            }
        case _ as unreachable:
            assert_never(unreachable)
