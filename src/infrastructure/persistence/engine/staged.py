"""Units of work that PostgreSQL executes faster: in stages, side by side with others in one
transaction (ADR 0030), or by keys alone."""

from collections.abc import Callable, Generator
from typing import Generic, TypeVar

from sqlalchemy import Connection

T = TypeVar("T")
Stages = Generator[None, None, T]
"""Statements are sent up to a `yield`, and their answers are read after it. The scheduler resumes
the unit when the answers are there."""


class Staged(Generic[T]):
    """A unit of work in stages. Call it as any other unit, or let it share a transaction of
    PostgreSQL with others.

    - It executes statements only by `Prepared.ask` and `Prepared.run`.
    - It reads no answer in the stage that sent the statement.
    """

    __slots__ = ("begin",)

    def __init__(self, begin: Callable[[Connection], Stages[T]]) -> None:
        self.begin = begin
        """Begins the unit, for the scheduler of its stages."""

    def __call__(self, connection: Connection) -> T:
        """All stages, on a connection that answers at once."""
        return completed(self.begin(connection))


class ByKeys(Generic[T]):
    """A unit of work whose every statement finds few rows by whole keys or their beginnings.
    PostgreSQL then plans a statement once for all values: for each value, that takes longer than
    the statement where its table has many partitions (ADR 0099)."""

    __slots__ = ("_unit",)

    def __init__(self, unit: Callable[[Connection], T]) -> None:
        self._unit = unit

    def __call__(self, connection: Connection) -> T:
        """The unit."""
        return self._unit(connection)


def completed(stages: Stages[T]) -> T:
    """The result of all stages, where each answer is there at once."""
    while True:
        try:
            next(stages)
        except StopIteration as end:
            result: T = end.value
            return result
