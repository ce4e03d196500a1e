"""Routes the gateway's paths here, and all others to the HTTP application."""

import msgspec
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Receive, Scope, Send

from application.gateway.sessions.open_session import GATEWAY_PATH
from application.mcp.oauth_client import PublicAddress
from interfaces.gateway.endpoint import METADATA_PATH, GatewayEndpoint
from interfaces.gateway.wire import JSON_MEDIA, send_whole

_REGISTRATION_PATH = "/register"
"""Where clients register that find no authorization server, and take the server for one (MCP 2025-03-26)."""
_NO_REGISTRATION = {
    "error": "access_denied",
    "error_description": "This MCP server has no authorization server and registers no clients. Send a session token as a bearer"
    " token in the header Authorization; `dragoman gateway open --agent NAME` prints one.",
}


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
            if path == _REGISTRATION_PATH and scope["method"] == "POST":
                await send_whole(send, 400, msgspec.json.encode(_NO_REGISTRATION), [JSON_MEDIA])
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
