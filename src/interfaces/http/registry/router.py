"""Puts the routes of the registry together, and decides who may read it."""

from collections.abc import Callable

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import OrganizationId
from infrastructure.container import Container
from interfaces.http.auth import authentication
from interfaces.http.protocol_router import protocol_router
from interfaces.http.registry import routes
from interfaces.http.registry.routes import READER_ID, RegistryServers
from interfaces.http.routing import OwnRouter, built_by

_ANY_ORIGIN = {
    "access-control-allow-origin": "*",
    "access-control-allow-methods": "GET, OPTIONS",
    "access-control-allow-headers": "Authorization, Content-Type",
}
"""What Copilot asks of a registry. Without credentials of the browser a page reads nothing that its
reader could not read."""


def registry_router(container: Container) -> OwnRouter:
    """Below `/v0.1`: with a key, the servers of the key's organization; without one, those of the
    organization that the settings publish."""
    published = container.settings().registry_organization
    middleware = [authentication(container.authenticate())]
    if published is not None:
        middleware = [_published(middleware[0], OrganizationId(published))]
    servers = built_by(container, RegistryServers)
    own = {"registry_servers": servers}
    return protocol_router("/v0.1", container, own, routes, middleware=[_from_any_origin, *middleware])


def _from_any_origin(app: ASGIApp) -> ASGIApp:
    """IDEs read the registry from pages of another origin, which ask first, without a key."""
    headers = [(name.encode(), value.encode()) for name, value in _ANY_ORIGIN.items()]

    async def readable(scope: Scope, receive: Receive, send: Send) -> None:
        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *headers]
            await send(message)

        if scope["type"] == ScopeType.HTTP and scope["method"] == "OPTIONS":
            await told({"type": "http.response.start", "status": 204, "headers": []})
            await told({"type": "http.response.body", "body": b"", "more_body": False})
        else:
            await app(scope, receive, told)

    return readable


def _published(
    authenticated: Callable[[ASGIApp], ASGIApp], organization_id: OrganizationId
) -> Callable[[ASGIApp], ASGIApp]:
    """IDEs send no key: such requests read as a viewer of the published organization."""
    reader = Principal(organization_id=organization_id, key_id=READER_ID, role=Role.VIEWER)

    def middleware(app: ASGIApp) -> ASGIApp:
        with_key = authenticated(app)

        async def open_to_readers(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != ScopeType.HTTP or any(name == b"authorization" for name, _ in scope["headers"]):
                await with_key(scope, receive, send)
                return
            scope["auth"] = reader
            await app(scope, receive, send)

        return open_to_readers

    return middleware
