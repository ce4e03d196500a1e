"""Bearer authentication: before anything else of a request below `/v1` is read."""

from litestar.connection import ASGIConnection
from litestar.datastructures import State
from litestar.handlers import BaseRouteHandler
from litestar.types import Guard

from application.identity.authenticate import Authenticate, AuthenticateCommand
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal

AnyConnection = ASGIConnection[BaseRouteHandler, object, Principal, State]


def authentication(authenticate: Authenticate) -> Guard:
    """A guard that puts the principal of `Authorization: Bearer dgm_…` on the request, or refuses it with 401."""

    async def require_principal(connection: AnyConnection, _: BaseRouteHandler) -> None:
        token = _bearer_token(connection.headers.get("authorization"))
        connection.scope["auth"] = await authenticate.execute(AuthenticateCommand(token=token))

    return require_principal


def _bearer_token(header: str | None) -> str:
    scheme, _, token = (header or "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise ServiceError(
            "token_missing", ErrorKind.UNAUTHENTICATED, "Send an API key as `Authorization: Bearer dgm_…`."
        )
    return token.strip()
