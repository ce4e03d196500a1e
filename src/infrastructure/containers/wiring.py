"""Singletons of the container: what most classes take is named once, in `Platform` and
`Storage`."""

from collections.abc import Callable
from types import FunctionType
from typing import TypeVar

from dependency_injector import containers, providers

T = TypeVar("T")


class Singletons:
    """Makes providers of one instance. A keyword-only parameter that has no default and is not
    given gets the provider of its name in one of the `sources`."""

    def __init__(self, *sources: type[containers.DeclarativeContainer]) -> None:
        self._known = {name: provider for source in sources for name, provider in source.providers.items()}

    def __call__(self, make: Callable[..., T], *args: object, **given: object) -> providers.Singleton[T]:
        known = {name: self._known[name] for name in _required(make) if name not in given and name in self._known}
        return providers.Singleton(make, *args, **known, **given)


def _required(make: Callable[..., object]) -> list[str]:
    function = make.__init__ if isinstance(make, type) else make  # type: ignore[misc]
    if not isinstance(function, FunctionType):
        return []
    code, defaults = function.__code__, function.__kwdefaults__ or {}
    names = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    return [name for name in names if name not in defaults]
