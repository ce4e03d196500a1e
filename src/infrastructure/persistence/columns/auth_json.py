"""The `auth` of an MCP server as JSON for the encrypted column, and back."""

from typing import Any, cast

from domain.json_value import JsonObject, JsonValue
from domain.mcp.auth import ApiKeyAuth, AuthorizationCodeAuth, BearerAuth, ClientCredentialsAuth, ServerAuth
from domain.secrets.secret import SecretRef, SecretValue


def auth_to_json(auth: ServerAuth | None) -> JsonValue:
    """All of it, secrets included."""
    match auth:
        case None:
            return None
        case BearerAuth():
            return {"type": "bearer", "token": value_to_json(auth.token)}
        case ApiKeyAuth():
            return {"type": "api_key", "header": auth.header, "value": value_to_json(auth.value)}
        case ClientCredentialsAuth() | AuthorizationCodeAuth():
            is_code = isinstance(auth, AuthorizationCodeAuth)
            secret = auth.client_secret
            return {
                "type": "oauth_authorization_code" if is_code else "oauth_client_credentials",
                "client_id": auth.client_id,
                "client_secret": None if secret is None else value_to_json(secret),
                "scopes": [*auth.scopes],
                "issuer": auth.issuer,
            }


def auth_from_json(stored: JsonValue) -> ServerAuth | None:
    """The inverse."""
    auth = cast("dict[str, Any] | None", stored)
    if auth is None:
        return None
    match auth["type"]:
        case "bearer":
            return BearerAuth(token=value_from_json(auth["token"]))
        case "api_key":
            return ApiKeyAuth(header=auth["header"], value=value_from_json(auth["value"]))
        case "oauth_client_credentials":
            return ClientCredentialsAuth(
                client_id=auth["client_id"],
                client_secret=value_from_json(auth["client_secret"]),
                scopes=tuple(auth["scopes"]),
                issuer=auth["issuer"],
            )
        case "oauth_authorization_code":
            secret = auth["client_secret"]
            return AuthorizationCodeAuth(
                client_id=auth["client_id"],
                client_secret=None if secret is None else value_from_json(secret),
                scopes=tuple(auth["scopes"]),
                issuer=auth["issuer"],
            )
        case unknown:
            raise ValueError(f"auth of type {unknown!r} is stored, which this version does not know")


def value_to_json(value: SecretValue) -> str | JsonObject:
    """A value, or the name of one."""
    return {"secret": value.name} if isinstance(value, SecretRef) else value


def value_from_json(stored: str | dict[str, str]) -> SecretValue:
    """The inverse."""
    return SecretRef(stored["secret"]) if isinstance(stored, dict) else stored
