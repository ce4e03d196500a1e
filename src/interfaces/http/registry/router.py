"""Puts the routes of the registry together, and decides who may read it."""

from collections.abc import Callable

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Receive, Scope, Send

from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import OrganizationId
from infrastructure.container import Container
from interfaces.http.auth import authentication
from interfaces.http.protocol_router import protocol_router
from interfaces.http.registry import routes
from interfaces.http.registry.routes import READER_ID, RegistryServers
from interfaces.http.routing import OwnRouter, built_by


def registry_router(container: Container) -> OwnRouter:
    """Below `/v0.1`: with a key, the servers of the key's organization; without one, those of the organization that the
    settings publish."""
    published = container.settings().registry_organization
    middleware = [authentication(container.authenticate())]
    if published is not None:
        middleware = [_published(middleware[0], OrganizationId(published))]
    servers = built_by(container, RegistryServers)
    return protocol_router("/v0.1", container, {"registry_servers": servers}, routes, middleware=middleware)


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
