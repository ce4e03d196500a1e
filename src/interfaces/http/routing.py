"""Routers with instances injected by name, optimized so that hundreds of routes start quickly."""

from collections.abc import Callable, Iterable, Mapping
from inspect import signature
from types import MappingProxyType, ModuleType
from typing import Self, TypeVar, get_args

from litestar import Router
from litestar.di import Dependency, Provide
from litestar.handlers import HTTPRouteHandler

from infrastructure.container import Container

T = TypeVar("T")

_NOTHING: Mapping[str, object] = MappingProxyType({})


def routes_of(*modules: ModuleType) -> list[HTTPRouteHandler]:
    """The handlers of the modules, in the order of their definition."""
    return [found for module in modules for found in vars(module).values() if isinstance(found, HTTPRouteHandler)]


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


def built_by(container: Container, type_: Callable[..., T], **own: object) -> T:
    """An instance of a class of this layer. The container has its parameters by name, except
    those in `own`. Raises KeyError for an unknown name."""
    asked = (name for name in signature(type_).parameters if name not in own)
    return type_(**{name: container.providers[name]() for name in asked}, **own)


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
    handler = getattr(route.fn, "func", route.fn)  # Litestar wraps what runs in a thread
    return {
        name: get_args(annotation)[0]
        for name, annotation in handler.__annotations__.items()
        if name not in (route.dependencies or {})
        and any(isinstance(mark, Dependency) for mark in getattr(annotation, "__metadata__", ()))
    }
