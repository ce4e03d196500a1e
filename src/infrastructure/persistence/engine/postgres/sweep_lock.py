"""Whose turn it is, among all processes that share a PostgreSQL database: to sweep, or to send
audit entries."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from psycopg import AsyncConnection, Error

from domain.errors import ErrorKind, ServiceError

SWEEP_KEY: Final = int.from_bytes(b"dgmsweep", "big")
FORWARD_KEY: Final = int.from_bytes(b"dgmaudit", "big")
"""Of the advisory locks; their keys are shared by all who use the database."""
_RELEASE_S: Final = 5.0
"""Bound on the release. After it the connection is closed, and the server releases the lock when it
notices."""


class PostgresSweepLock:
    """The ports `SweepLock` and `ForwardTurn`: an advisory lock of a database session, on a
    separate connection that is open during a sweep. The lock is released before the connection is
    closed, because the server ends a closed connection's session later. If the process or the
    connection is lost, the session's end releases the lock. Another process may then sweep at the
    same time: each step of a sweep takes the row locks that it needs, so this only repeats work."""

    def __init__(self, url: str, *, key: int = SWEEP_KEY) -> None:
        self._url = url
        self._key = key

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[bool]:
        """Whether no other process sweeps."""
        connection = await self._connected()
        try:
            yield await _locked(connection, self._key)
        finally:
            try:
                await _release(connection)
            finally:
                await connection.close()

    async def _connected(self) -> AsyncConnection[tuple[object, ...]]:
        try:
            return await AsyncConnection.connect(self._url, autocommit=True)
        except Error as error:
            raise _unavailable() from error


async def _locked(connection: AsyncConnection[tuple[object, ...]], key: int) -> bool:
    try:
        cursor = await connection.execute("SELECT pg_try_advisory_lock(%s)", (key,))
        return await cursor.fetchone() == (True,)
    except Error as error:
        raise _unavailable() from error


async def _release(connection: AsyncConnection[tuple[object, ...]]) -> None:
    """Release the lock if this session has it. An interrupted attempt to take it may have succeeded
    on the server."""
    with suppress(Error, TimeoutError):
        async with asyncio.timeout(_RELEASE_S):
            await connection.execute("SELECT pg_advisory_unlock_all()")


def _unavailable() -> ServiceError:
    return ServiceError("storage_unavailable", ErrorKind.UNAVAILABLE, "The database cannot do this at the moment.")
