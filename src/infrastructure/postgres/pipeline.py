"""One connection to PostgreSQL in pipeline mode, on the event loop: statements are sent as they
come, and waited for together.

psycopg connects, and converts values; libpq does the rest (PostgreSQL, 32.5 Pipeline Mode). A
cursor per statement would cost several times as much as the statement.
"""

import asyncio
import select
from collections import deque
from collections.abc import Mapping
from typing import Any

from psycopg import AsyncConnection, OperationalError, abc, errors, pq
from psycopg.adapt import PyFormat, Transformer

_BAD = pq.ConnStatus.BAD
_REFUSED = (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.PIPELINE_ABORTED)
_SYNC = pq.ExecStatus.PIPELINE_SYNC


class Sent:
    """The answer to a statement: there once `Pipeline.answered` has returned."""

    __slots__ = ("_transformer", "result")

    def __init__(self, transformer: abc.Transformer) -> None:
        self._transformer = transformer
        self.result: pq.abc.PGresult | None = None

    @property
    def count(self) -> int:
        """How many rows were touched."""
        return self._there().command_tuples or 0

    @property
    def type_codes(self) -> list[int]:
        """The types of the columns."""
        result = self._there()
        return [result.ftype(index) for index in range(result.nfields)]

    def rows(self) -> list[tuple[Any, ...]]:
        """As psycopg reads them."""
        result = self._there()
        self._transformer.set_pgresult(result)
        return self._transformer.load_rows(0, result.ntuples, tuple)

    def _there(self) -> pq.abc.PGresult:
        if self.result is None:
            raise RuntimeError("an answer was read in the stage it was asked for in")
        return self.result


class Pipeline:
    """A connection in pipeline mode, for this alone. Do not use it after any method has raised."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection
        self._pgconn = connection.pgconn
        self._pgconn.enter_pipeline_mode()
        self._transformer: abc.Transformer = Transformer(connection)
        self._names: dict[tuple[str, str], bytes] = {}
        self._unanswered: deque[Sent] = deque()
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Future[None] | None = None
        self._refused: Exception | None = None
        self._lost: Exception | None = None
        self._socket = self._pgconn.socket
        self._is_choked = False
        self._unread = select.poll()
        self._unread.register(self._socket, select.POLLIN)
        self._loop.add_reader(self._socket, self._readable)
        self._is_watched = True

    @classmethod
    async def open(cls, url: str, settings: Mapping[str, str]) -> "Pipeline":
        """Connect, with these settings of the server's. Raises psycopg's errors."""
        connection = await AsyncConnection.connect(url, autocommit=True)
        try:
            for setting in settings.items():
                await connection.execute("SELECT set_config(%s, %s, false)", setting)
            return cls(connection)
        except BaseException:
            await connection.close()
            raise

    @property
    def lost(self) -> bool:
        """Whether the connection is lost."""
        return self._lost is not None

    def send(self, statement: str, values: list[Any], *, role: str = "") -> Sent:
        """Send a statement, which is prepared once: for each role, as row security is part of its
        plan. Raises psycopg's errors."""
        key = (role, statement)
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = f"_d{len(self._names)}".encode()
            self._pgconn.send_prepare(name, statement.encode())
            self._unanswered.append(Sent(self._transformer))
        written = self._transformer.dump_sequence(values, [PyFormat.TEXT] * len(values)) if values else None
        self._pgconn.send_query_prepared(name, written)
        sent = Sent(self._transformer)
        self._unanswered.append(sent)
        return sent

    def command(self, statement: bytes) -> None:
        """Send a statement without parameters and plan. Raises psycopg's errors."""
        self._pgconn.send_query_params(statement, None)
        self._unanswered.append(Sent(self._transformer))

    async def answered(self) -> None:
        """Until all that was sent is answered. Raises psycopg's errors: the first one of the
        server's."""
        if (broken := self._lost or self._refused) is not None:
            raise broken
        waiting = self._waiting = self._loop.create_future()
        try:
            self._pgconn.pipeline_sync()
        except OperationalError as error:
            # Parts may have been sent; their answers are lost.
            self._lose(error)
        else:
            self._flush()
        await waiting
        if self._refused is not None:
            raise self._refused

    async def undone(self) -> None:
        """Until the transaction is rolled back. Raises psycopg's errors, those too that were raised
        before."""
        await self.answered()
        self.command(b"ROLLBACK")
        await self.answered()

    async def close(self) -> None:
        """Close the connection; the server undoes what was not committed."""
        self._unwatch()
        await self._connection.close()

    def _flush(self) -> None:
        try:
            more = self._pgconn.flush()
        except OperationalError as error:
            self._lose(error)
            return
        if more and not self._is_choked:
            self._loop.add_writer(self._socket, self._flush)
        elif self._is_choked and not more:
            self._loop.remove_writer(self._socket)
        self._is_choked = bool(more)

    def _readable(self) -> None:
        pgconn = self._pgconn
        try:
            while True:
                pgconn.consume_input()
                while (self._unanswered or self._waiting is not None) and not pgconn.is_busy():
                    result = pgconn.get_result()
                    if result is not None:
                        self._take(result)
                    elif pgconn.status == _BAD:  # none follows each statement's
                        raise OperationalError("the connection is lost")
                # libpq may leave some unread, and uvloop does not call again where the server went
                # without reading all we had sent (libuv stops watching at POLLERR): the last word
                # is there, and so is that it was the last.
                if not self._unread.poll(0):
                    return
        except Exception as error:  # noqa: BLE001 - for the waiting caller
            self._lose(error)

    def _take(self, result: pq.abc.PGresult) -> None:
        status = result.status
        if status == _SYNC:
            waiting, self._waiting = self._waiting, None
            if waiting is not None and not waiting.done():
                waiting.set_result(None)
            return
        if not self._unanswered:  # the server ends the connection on its own
            raise errors.error_from_result(result)
        self._unanswered.popleft().result = result
        if status in _REFUSED and self._refused is None:
            self._refused = errors.error_from_result(result)

    def _lose(self, error: Exception) -> None:
        self._lost = error
        self._unwatch()
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_exception(error)

    def _unwatch(self) -> None:
        # Once: libpq closes a socket that is lost, and the next one that is opened anywhere may
        # have its number.
        if self._is_watched:
            self._is_watched = False
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
