"""Routes the gateway's two paths here, and all others to the HTTP application."""

import msgspec
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Receive, Scope, Send

from application.gateway.sessions.open_session import GATEWAY_PATH
from application.mcp.oauth_client import PublicAddress
from interfaces.gateway.endpoint import METADATA_PATH, GatewayEndpoint


def with_gateway(app: ASGIApp, endpoint: GatewayEndpoint, address: PublicAddress) -> ASGIApp:
    """`app` with the gateway and its metadata (RFC 9728)."""

    async def routed(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == ScopeType.HTTP:
            path = scope["path"]
            if path == GATEWAY_PATH:
                scope["path_template"] = GATEWAY_PATH
                await endpoint(scope, receive, send)
                return
            if path in (METADATA_PATH, f"{METADATA_PATH}{GATEWAY_PATH}") and scope["method"] == "GET":
                await _send_metadata(send, address)
                return
        await app(scope, receive, send)

    return routed


async def _send_metadata(send: Send, address: PublicAddress) -> None:
    """The metadata names no authorization server: tokens come from Dragoman's API."""
    document = {
        "resource": f"{address.url or ''}{GATEWAY_PATH}",
        "resource_name": "Dragoman",
        "bearer_methods_supported": ["header"],
    }
    body = msgspec.json.encode(document)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})
