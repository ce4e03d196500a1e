"""Routes that OAuth clients call before they have a token."""

from urllib.parse import quote

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import URLEncodedBody

from application.gateway.authorization.check_authorization import SCOPE
from application.gateway.authorization.describe_authorization import (
    REGISTER_PATH,
    REVOKE_PATH,
    TOKEN_PATH,
    DescribeAuthorization,
)
from application.gateway.authorization.issued_tokens import IssuedTokens
from application.gateway.authorization.redeem_code import RedeemCode, RedeemCodeCommand
from application.gateway.authorization.refresh_access import RefreshAccess, RefreshAccessCommand
from application.gateway.authorization.registrations import ClientRegistrations
from application.gateway.authorization.revoke_token import RevokeClientToken, RevokeClientTokenCommand
from domain.errors import ErrorKind, ServiceError, invalid
from interfaces.gateway.endpoint import METADATA_PATH
from interfaces.http.gateway_authorization.registration_limit import RegistrationLimit
from interfaces.http.requests import ApiRequest

_MAX_BYTES = 16 * 1024
_MAX_QUERY = 500
NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache"}
_NO_REGISTRATION = (
    "This MCP server has no authorization server and registers no clients. Send a session token as a bearer"
    " token in the header Authorization; `dragoman gateway open --agent NAME` prints one."
)


@get(["/.well-known/oauth-protected-resource", METADATA_PATH])
async def describe_resource(
    request: ApiRequest, describe_authorization: NamedDependency[DescribeAuthorization]
) -> Response[dict[str, object]]:
    """The gateway as a protected resource (RFC 9728), with the query of the URL that the client
    has."""
    query = quote(request.scope["query_string"], safe="=&%+-._~:/,")
    document = await describe_authorization.resource(query if len(query) <= _MAX_QUERY else "")
    return Response({**document}, headers=NO_STORE)


@get("/.well-known/oauth-authorization-server")
async def describe_authorization_server(
    describe_authorization: NamedDependency[DescribeAuthorization],
) -> Response[dict[str, object]]:
    """The authorization server (RFC 8414); 404 without an identity provider."""
    return Response({**await describe_authorization.server()}, headers=NO_STORE)


@post(REGISTER_PATH, status_code=201, request_max_body_size=_MAX_BYTES)
async def register_client(
    request: ApiRequest,
    describe_authorization: NamedDependency[DescribeAuthorization],
    client_registrations: NamedDependency[ClientRegistrations],
    registration_limit: NamedDependency[RegistrationLimit],
) -> Response[dict[str, object]]:
    """Register a public client (RFC 7591)."""
    if not await describe_authorization.is_on():
        raise ServiceError("access_denied", ErrorKind.FORBIDDEN, _NO_REGISTRATION)
    registration_limit.take("" if request.client is None else request.client.host)
    metadata = await request.json()
    if not isinstance(metadata, dict):
        raise invalid("invalid_client_metadata", "The registration must be a JSON object.")
    client = client_registrations.register(metadata)
    document: dict[str, object] = {
        "client_id": client.id,
        "client_name": client.name,
        "redirect_uris": [*client.redirect_uris],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "scope": SCOPE,
    }
    return Response(document, status_code=201, headers=NO_STORE)


@post(TOKEN_PATH, status_code=200, request_max_body_size=_MAX_BYTES)
async def issue_tokens(
    data: URLEncodedBody[dict[str, str]],
    redeem_code: NamedDependency[RedeemCode],
    refresh_access: NamedDependency[RefreshAccess],
) -> Response[dict[str, object]]:
    """Tokens for a code, or for a refresh token."""
    kind = _required(data, "grant_type")
    client_id, resource = _required(data, "client_id"), data.get("resource")
    if kind == "authorization_code":
        redeem = RedeemCodeCommand(
            client_id=client_id,
            code=_required(data, "code"),
            redirect_uri=_required(data, "redirect_uri"),
            verifier=_required(data, "code_verifier"),
            resource=resource,
        )
        return _tokens(await redeem_code.execute(redeem))
    if kind == "refresh_token":
        refresh = RefreshAccessCommand(
            client_id=client_id, refresh_token=_required(data, "refresh_token"), resource=resource
        )
        return _tokens(await refresh_access.execute(refresh))
    raise invalid("unsupported_grant_type", "The grant type must be authorization_code or refresh_token.")


@post(REVOKE_PATH, status_code=200, request_max_body_size=_MAX_BYTES)
async def revoke_token(
    data: URLEncodedBody[dict[str, str]], revoke_client_token: NamedDependency[RevokeClientToken]
) -> Response[None]:
    """End a grant (RFC 7009)."""
    command = RevokeClientTokenCommand(client_id=_required(data, "client_id"), token=_required(data, "token"))
    await revoke_client_token.execute(command)
    return Response(None, headers=NO_STORE)


def _tokens(issued: IssuedTokens) -> Response[dict[str, object]]:
    document: dict[str, object] = {
        "access_token": issued.access_token,
        "token_type": "Bearer",
        "expires_in": issued.expires_in_s,
        "refresh_token": issued.refresh_token,
        "scope": SCOPE,
    }
    return Response(document, headers=NO_STORE)


def _required(form: dict[str, str], name: str) -> str:
    value = form.get(name)
    if not value:
        raise invalid("invalid_request", f"The parameter {name} is missing.")
    return value
