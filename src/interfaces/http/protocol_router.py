"""Routers of protocols that others define. They are not in the OpenAPI document."""

from collections.abc import Mapping, Sequence
from types import ModuleType

from litestar.types import ExceptionHandlersMap, Middleware

from infrastructure.container import Container
from interfaces.http.auth import authentication
from interfaces.http.routing import OwnRouter, dependencies, routes_of


def protocol_router(
    path: str,
    container: Container,
    own: Mapping[str, object],
    *modules: ModuleType,
    middleware: "Sequence[Middleware] | None" = None,
    exception_handlers: "ExceptionHandlersMap | None" = None,
) -> OwnRouter:
    """The routes of the modules below `path`. Without other `middleware`, a key is required as
    everywhere."""
    handlers = routes_of(*modules)
    return OwnRouter(
        path,
        route_handlers=handlers,
        dependencies=dependencies(handlers, container, own),
        middleware=[authentication(container.authenticate())] if middleware is None else middleware,
        exception_handlers=exception_handlers,
        include_in_schema=False,
    )
