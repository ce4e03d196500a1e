"""Routes the gateway's path here, and all others to the HTTP application."""

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Receive, Scope, Send

from application.gateway.sessions.open_session import GATEWAY_PATH
from interfaces.gateway.endpoint import GatewayEndpoint


def with_gateway(app: ASGIApp, endpoint: GatewayEndpoint) -> ASGIApp:
    """`app` with the gateway."""

    async def routed(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == ScopeType.HTTP and scope["path"] == GATEWAY_PATH:
            scope["path_template"] = GATEWAY_PATH
            await endpoint(scope, receive, send)
            return
        await app(scope, receive, send)

    return routed
