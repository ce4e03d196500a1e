"""Small units of work on the table of threads, and one that holds its thread until it is told to go
on."""

import threading
from collections.abc import Callable

from sqlalchemy import Connection, func, select

from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.tables import thread
from infrastructure.persistence.threads.rows import add_thread
from tests.builders import a_thread, a_thread_id


def adding(number: int) -> Callable[[Connection], int]:
    """Adds thread `number`."""

    def unit(connection: Connection) -> int:
        add_thread(connection, a_thread(a_thread_id(number)))
        return number

    return unit


def failing_after_adding(number: int) -> Callable[[Connection], None]:
    """Adds thread `number`, then raises ValueError."""

    def unit(connection: Connection) -> None:
        add_thread(connection, a_thread(a_thread_id(number)))
        raise ValueError(number)

    return unit


class Gate:
    """A unit that begins, and ends only when it is opened."""

    def __init__(self) -> None:
        self._begun = threading.Event()
        self._open = threading.Event()

    def unit(self, connection: Connection) -> str:
        self._begun.set()
        assert self._open.wait(60)
        return "passed"

    def wait_begun(self) -> None:
        assert self._begun.wait(60)

    def open(self) -> None:
        self._open.set()


async def thread_numbers(database: Database) -> list[int]:
    """Which threads are stored."""
    ids = await database.read(lambda connection: list(connection.execute(select(thread.c.id)).scalars()), scope=SYSTEM)
    return sorted(int(id_.removeprefix("thr_")) for id_ in ids)


def count_threads(connection: Connection) -> int:
    return int(connection.execute(select(func.count()).select_from(thread)).scalar_one())
