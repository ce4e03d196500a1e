"""Routers whose routes are given instances by name, made so that hundreds of routes start quickly."""

from collections.abc import Iterable, Mapping
from typing import Self

from litestar import Router
from litestar.di import Provide
from litestar.handlers import HTTPRouteHandler


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


def asked_for(routes: Iterable[HTTPRouteHandler], provided: Mapping[str, Provide]) -> dict[str, Provide]:
    """Those of `provided` that a parameter of one of the `routes` names. What is given to routes is worked through for each
    of them, which with everything for all would be a third of the start."""
    names = {name for route in routes for name in route.fn.__annotations__}
    return {name: each for name, each in provided.items() if name in names}
