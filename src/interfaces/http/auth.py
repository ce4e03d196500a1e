"""Bearer authentication, before anything else of a request below `/v1` is read."""

from collections.abc import Callable, Iterable

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Receive, Scope, Send

from application.identity.authenticate import Authenticate, AuthenticateCommand
from domain.errors import ErrorKind, ServiceError


def authentication(authenticate: Authenticate, *, impersonation: bool = False) -> Callable[[ASGIApp], ASGIApp]:
    """Middleware that sets the principal of `Authorization: Bearer dgm_…`, or rejects the request
    with 401. With `impersonation`, tokens of impersonations are accepted. It is not a guard: for
    each guard Litestar copies the route handler, a quarter of a small request's cost."""

    def middleware(app: ASGIApp) -> ASGIApp:
        async def authenticated(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == ScopeType.HTTP:
                token = bearer_token(scope["headers"])
                scope["auth"] = await authenticate.execute(
                    AuthenticateCommand(token=token, impersonation=impersonation)
                )
            await app(scope, receive, send)

        return authenticated

    return middleware


def bearer_token(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """The token of a request. Raises UNAUTHENTICATED."""
    header = next((value for name, value in headers if name == b"authorization"), b"")
    scheme, _, token = header.decode("latin-1").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise ServiceError(
            "token_missing", ErrorKind.UNAUTHENTICATED, "Send an API key as `Authorization: Bearer dgm_…`."
        )
    return token.strip()
