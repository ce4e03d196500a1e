"""Units of work in stages, which several of one transaction can go through side by side. See ADR 0030."""

from collections.abc import Callable, Generator
from typing import Generic, TypeVar

from sqlalchemy import Connection

T = TypeVar("T")
Stages = Generator[None, None, T]
"""Statements are asked for up to a `yield`, and their answers read after it: what is asked in one stage needs no answer of
that stage. Whoever goes through the stages sees to it that the answers are there."""


class Staged(Generic[T]):
    """A unit of work as any other when it is called; on PostgreSQL it may share a transaction with others. Asks of its connection
    nothing but by `Prepared`, and reads nothing at once (`Prepared.ask`, `later`)."""

    __slots__ = ("begin",)

    def __init__(self, begin: Callable[[Connection], Stages[T]]) -> None:
        self.begin = begin
        """Begins the unit, for who goes through its stages."""

    def __call__(self, connection: Connection) -> T:
        """All stages, on a connection that answers at once."""
        return completed(self.begin(connection))


def completed(stages: Stages[T]) -> T:
    """What the last stage returns, where answers need not be waited for."""
    while True:
        try:
            next(stages)
        except StopIteration as end:
            result: T = end.value
            return result
