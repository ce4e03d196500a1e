"""Routers with instances injected by name, optimized so that hundreds of routes start quickly."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Self, get_args

from litestar import Router
from litestar.di import Dependency, Provide
from litestar.handlers import HTTPRouteHandler

from infrastructure.container import Container

_NOTHING: Mapping[str, object] = MappingProxyType({})


class OwnRouter(Router):
    """A router for one application. Litestar deep-copies routers before registering them; this
    one is used without a copy."""

    def __deepcopy__(self, _: object) -> Self:
        return self


class _Instance(Provide):
    """A dependency with a fixed instance. Litestar compares all dependencies of a route by
    value; instances of this class never compare equal."""

    __eq__ = object.__eq__
    __hash__ = object.__hash__


def instance_of(instance: object) -> Provide:
    """The dependency of an instance; Litestar reads its class from the annotation."""

    def provide() -> object:
        return instance

    provide.__annotations__["return"] = type(instance)
    return _Instance(provide, sync_to_thread=False)


def dependencies(
    routes: Iterable[HTTPRouteHandler], container: Container, own: Mapping[str, object] = _NOTHING
) -> dict[str, Provide]:
    """The instances that the `routes` require by name: from `own`, else built by the container.
    Only these, because Litestar processes all dependencies of each route at start. Raises
    KeyError for an unknown name."""
    return {
        name: instance_of(own[name] if name in own else container.providers[name]())
        for name in dict.fromkeys(name for route in routes for name in named_dependencies(route))
    }


def named_dependencies(route: HTTPRouteHandler) -> dict[str, type]:
    """The class of each `NamedDependency` parameter by name, without those that the route
    provides."""
    return {
        name: get_args(annotation)[0]
        for name, annotation in route.fn.__annotations__.items()
        if name not in (route.dependencies or {})
        and any(isinstance(mark, Dependency) for mark in getattr(annotation, "__metadata__", ()))
    }
