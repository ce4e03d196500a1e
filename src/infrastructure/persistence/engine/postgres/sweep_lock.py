"""Whose turn it is to sweep, among all processes that share a PostgreSQL database."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from psycopg import AsyncConnection, Error

from domain.errors import ErrorKind, ServiceError

SWEEP_KEY: Final = int.from_bytes(b"dgmsweep", "big")
"""Of the advisory lock; its keys are shared by all who use the database."""


class PostgresSweepLock:
    """The `SweepLock` port: an advisory lock of a session, on a connection of its own that is open while a sweep lasts. It
    goes with the connection, whatever becomes of the process. Should the connection be lost during a sweep, another process
    may begin one as well: each step of a sweep holds the locks it needs by itself, so that costs nothing but work."""

    def __init__(self, url: str) -> None:
        self._url = url

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[bool]:
        """Whether no other process sweeps."""
        connection = await self._connected()
        try:
            yield await _locked(connection)
        finally:
            await connection.close()

    async def _connected(self) -> AsyncConnection[tuple[object, ...]]:
        try:
            return await AsyncConnection.connect(self._url, autocommit=True)
        except Error as error:
            raise _unavailable() from error


async def _locked(connection: AsyncConnection[tuple[object, ...]]) -> bool:
    try:
        cursor = await connection.execute("SELECT pg_try_advisory_lock(%s)", (SWEEP_KEY,))
        return await cursor.fetchone() == (True,)
    except Error as error:
        raise _unavailable() from error


def _unavailable() -> ServiceError:
    return ServiceError("storage_unavailable", ErrorKind.UNAVAILABLE, "The database cannot do this at the moment.")
