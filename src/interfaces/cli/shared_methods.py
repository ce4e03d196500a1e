"""Makes classes of data quickly while the service is loaded: `==`, hash and repr of a dataclass are functions over its field
names, in place of source text that is compiled for each class. See ADR 0028."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any

_SHARED = frozenset({"frozen", "slots", "kw_only", "init", "match_args", "weakref_slot"})
"""With other arguments, the class is left to the standard library."""
_OWN = ("__eq__", "__hash__", "__repr__")

_Decorator = Callable[[type], type]


@contextmanager
def shared_methods() -> Iterator[None]:
    """Context in which `dataclasses.dataclass` gives classes the methods of this module. They behave as the generated ones
    do. Compiling those takes a seventh of what importing the service takes."""
    generated = dataclasses.dataclass

    def dataclass(cls: type | None = None, /, **arguments: Any) -> type | _Decorator:
        def decorated(cls: type) -> type:
            if not arguments.keys() <= _SHARED or any(name in vars(cls) for name in _OWN):
                return generated(**arguments)(cls)
            made: type = generated(**arguments, eq=False, repr=False)(cls)
            _add_methods(made, frozen=bool(arguments.get("frozen")))
            return made

        return decorated if cls is None else decorated(cls)

    dataclasses.dataclass = dataclass  # type: ignore[assignment]  # one signature in place of overloads
    try:
        yield
    finally:
        dataclasses.dataclass = generated


def _add_methods(cls: Any, *, frozen: bool) -> None:
    fields = dataclasses.fields(cls)
    cls.__repr__ = _repr_of([field.name for field in fields if field.repr])
    compared = _values_of([field.name for field in fields if field.compare])

    def equal(one: object, other: object) -> object:
        if other.__class__ is one.__class__:
            return compared(one) == compared(other)
        return NotImplemented

    cls.__eq__ = equal
    cls.__hash__ = _hash_of(fields) if frozen else None


def _hash_of(fields: Sequence[dataclasses.Field[Any]]) -> Callable[[object], int]:
    hashed = _values_of([field.name for field in fields if (field.compare if field.hash is None else field.hash)])
    return lambda instance: hash(hashed(instance))


def _repr_of(names: Sequence[str]) -> Callable[[object], str]:
    @recursive_repr()
    def shown(instance: object) -> str:
        values = ", ".join(f"{name}={getattr(instance, name)!r}" for name in names)
        return f"{instance.__class__.__qualname__}({values})"

    return shown


def _values_of(names: Sequence[str]) -> Callable[[object], tuple[object, ...]]:
    """Reads the values as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda instance: tuple(getattr(instance, name) for name in names)
