"""Dataclasses that are made while the service is loaded behave as all others do."""

import dataclasses
from collections.abc import Callable
from dataclasses import field
from typing import Any

import pytest

from interfaces.cli.loading import loading
from interfaces.cli.shared_methods import shared_methods

_Make = Callable[[], Any]


def _values() -> Any:
    @dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
    class Point:
        x: int
        y: float = 0.0
        note: str = field(default="", compare=False, repr=False)

    return Point


def _single() -> Any:
    @dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
    class One:
        x: int
        y: float = field(default=0.0, compare=False)

    return One


def _counted_by_x() -> Any:
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Marked:
        x: int
        y: float = field(default=0.0, hash=False)

    return Marked


def _changeable() -> Any:
    @dataclasses.dataclass(slots=True)
    class Counter:
        x: int
        y: float = 0.0

    return Counter


def _without_arguments() -> Any:
    @dataclasses.dataclass
    class Plain:
        x: int
        y: float = 0.0

    return Plain


def _ordered() -> Any:
    @dataclasses.dataclass(frozen=True, order=True)
    class Ranked:
        x: int
        y: float = 0.0

    return Ranked


def _own_methods() -> Any:
    @dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
    class Own:
        x: int
        y: float = 0.0

        def __repr__(self) -> str:
            return "shown"

        def __hash__(self) -> int:
            return 7

    return Own


def _derived() -> Any:
    base = _values()

    @dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
    class Longer(base):  # type: ignore[misc, valid-type]
        z: tuple[int, ...] = ()

    return Longer


KINDS: list[_Make] = [
    _values,
    _single,
    _counted_by_x,
    _changeable,
    _without_arguments,
    _ordered,
    _own_methods,
    _derived,
]


def _hash(instance: object) -> object:
    try:
        return hash(instance)
    except TypeError:
        return "unhashable"


def _behaviour(kind: Any) -> dict[str, object]:
    nan = float("nan")
    some = [kind(x=1), kind(x=1), kind(x=2, y=1.5), kind(x=1, y=2.5), kind(x=1, y=nan), kind(x=1, y=nan)]
    return {
        "repr": [repr(each).replace("nan", "NaN") for each in some],
        "equal": [[one == other for other in [*some, 1, None]] for one in some],
        "hash": [_hash(each) for each in some[:4]],
        "order": [_less(some[0], other) for other in some[:4]],
        "replaced": repr(dataclasses.replace(some[0], x=9)),
        "values": dataclasses.asdict(some[2]),
        "frozen": _assignment(some[0]),
    }


def _less(one: Any, other: Any) -> object:
    try:
        return one < other
    except TypeError:
        return "no order"


def _assignment(instance: Any) -> str:
    try:
        instance.x = 5
    except dataclasses.FrozenInstanceError as error:
        return str(error)
    return "assigned"


@pytest.mark.requirement("H4")
@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__.strip("_"))
def test_a_class_that_shares_methods_behaves_as_the_generated_one(make: _Make) -> None:
    generated = make()
    with shared_methods():
        shared = make()
    assert _behaviour(shared) == _behaviour(generated)
    assert shared(x=1) != generated(x=1)


def test_a_value_that_contains_itself_is_shown() -> None:
    with shared_methods():

        @dataclasses.dataclass(slots=True, kw_only=True)
        class Node:
            children: list[object]

    node = Node(children=[])
    node.children.append(node)
    assert repr(node).endswith("Node(children=[...])")


def test_the_decorator_of_the_standard_library_is_back_after_a_failed_import() -> None:
    generated, seen = dataclasses.dataclass, []

    def fail() -> None:
        with loading():
            seen.append(dataclasses.dataclass)
            raise ImportError

    with pytest.raises(ImportError):
        fail()
    assert seen != [generated]
    assert dataclasses.dataclass is generated
