"""Routers whose routes are given instances by name, made so that hundreds of routes start quickly."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Self, get_args

from litestar import Router
from litestar.di import Dependency, Provide
from litestar.handlers import HTTPRouteHandler

from infrastructure.container import Container

_NOTHING: Mapping[str, object] = MappingProxyType({})


class OwnRouter(Router):
    """A router made for one application. Litestar copies routers before it registers them, with all that is in them, as they
    might be registered elsewhere too; these are taken as they are."""

    def __deepcopy__(self, _: object) -> Self:
        return self


class _Instance(Provide):
    """A dependency that is always the same instance. For each route Litestar compares all dependencies with each other, and
    `Provide` by what is in them; none of these equals another."""

    __eq__ = object.__eq__
    __hash__ = object.__hash__


def instance_of(instance: object) -> Provide:
    """The dependency; Litestar reads its class from the annotation."""

    def provide() -> object:
        return instance

    provide.__annotations__["return"] = type(instance)
    return _Instance(provide, sync_to_thread=False)


def dependencies(
    routes: Iterable[HTTPRouteHandler], container: Container, own: Mapping[str, object] = _NOTHING
) -> dict[str, Provide]:
    """What the `routes` ask for by name: an instance in `own`, else what the container's provider of that name builds, now.

    Nothing more: Litestar works through the dependencies of each route, which would be a third of the start if each were given
    everything. Raises KeyError for a name that neither has.
    """
    return {
        name: instance_of(own[name] if name in own else container.providers[name]())
        for name in dict.fromkeys(name for route in routes for name in named_dependencies(route))
    }


def named_dependencies(route: HTTPRouteHandler) -> dict[str, type]:
    """The class of each parameter that is marked `NamedDependency`, by name, but for what the route provides itself."""
    return {
        name: get_args(annotation)[0]
        for name, annotation in route.fn.__annotations__.items()
        if name not in (route.dependencies or {})
        and any(isinstance(mark, Dependency) for mark in getattr(annotation, "__metadata__", ()))
    }
