"""Statements compiled once and then handed straight to the driver: for the few that every step of a run executes.

Executing a Core construct costs five to ten times what SQLite needs for the statement itself; compiling it ourselves
keeps one description for both databases and leaves that out. Everything else goes through `Connection.execute`.
"""

from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from operator import itemgetter
from typing import Any, Protocol

from sqlalchemy import BindParameter, Connection, Dialect, Select, Table
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.base import Executable
from sqlalchemy.sql.elements import ClauseElement

from infrastructure.persistence.columns.column_types import PlainText, storable_or_none

_Process = Callable[[Any], Any]
UNKNOWN = -1
"""How many rows a statement touched whose answer is not there yet."""


class Answer(Protocol):
    """What the database says to a statement that was sent; to be read once it is there."""

    @property
    def count(self) -> int:
        """How many rows were touched."""
        ...

    @property
    def type_codes(self) -> list[int]:
        """What the database calls the types of the columns."""
        ...

    def rows(self) -> list[tuple[Any, ...]]:
        """As the driver gives them."""
        ...


class SendingConnection:
    """A connection on which statements are sent without waiting for their answers; it stands in for SQLAlchemy's where units of
    work go through their stages side by side. Raises whatever says that a unit of work cannot be done here."""

    dialect: Dialect

    def send(self, statement: str, values: list[Any]) -> Answer:
        """Send a statement whose parameters are $1, $2, …"""
        raise NotImplementedError

    def refuse(self) -> Exception:
        """What to raise where an answer is wanted at once."""
        raise NotImplementedError


class Prepared:
    """A statement whose every parameter is named, without expanding ones. `columns` are those an INSERT names."""

    def __init__(self, statement: ClauseElement, *, columns: Iterable[str] | None = None) -> None:
        if not isinstance(statement, Executable):
            raise TypeError(f"{statement!r} cannot be executed")
        self._statement = statement
        self._columns = None if columns is None else list(columns)
        self._compiled: dict[str, _Compiled] = {}

    def run(self, connection: Connection, parameters: Mapping[str, Any]) -> int:
        """Execute for one set of parameters; how many rows that touched."""
        compiled = self._compiled.get(connection.dialect.name) or self._compile(connection.dialect)
        if isinstance(connection, SendingConnection):
            compiled.send(connection, parameters)
            return UNKNOWN
        cursor = _cursor(connection)
        try:
            cursor.execute(compiled.sql, compiled.values(parameters))
            return int(cursor.rowcount)
        except compiled.driver_error as error:
            raise _wrapped(error, connection, compiled.sql) from error
        finally:
            cursor.close()

    def run_many(self, connection: Connection, rows: "list[dict[str, object]]") -> int:
        """Execute for several sets of parameters; how many rows that touched."""
        if len(rows) == 1:
            return self.run(connection, rows[0])
        compiled = self._compiled.get(connection.dialect.name) or self._compile(connection.dialect)
        if isinstance(connection, SendingConnection):
            for row in rows:
                compiled.send(connection, row)
            return UNKNOWN
        cursor = _cursor(connection)
        try:
            cursor.executemany(compiled.sql, [compiled.values(row) for row in rows])
            return int(cursor.rowcount)
        except compiled.driver_error as error:
            raise _wrapped(error, connection, compiled.sql) from error
        finally:
            cursor.close()

    def later(self, connection: Connection, rows: "list[dict[str, object]]") -> Callable[[], int]:
        """As `run_many`, also within `pipelined` and in a stage: how many rows that touched is to be asked once that is over."""
        compiled = self._compiled.get(connection.dialect.name) or self._compile(connection.dialect)
        if isinstance(connection, SendingConnection):
            answers = [compiled.send(connection, row) for row in rows]
            return lambda: sum(answer.count for answer in answers)
        cursor = _cursor(connection)
        try:
            cursor.executemany(compiled.sql, [compiled.values(row) for row in rows])
        except compiled.driver_error as error:
            raise _wrapped(error, connection, compiled.sql) from error
        return lambda: int(cursor.rowcount)

    def ask(self, connection: Connection, parameters: Mapping[str, Any]) -> Callable[[], tuple[Any, ...] | None]:
        """As `first`, to be read in the next stage."""
        if isinstance(connection, SendingConnection):
            compiled = self._compiled.get(connection.dialect.name) or self._compile(connection.dialect)
            answer = compiled.send(connection, parameters)
            return lambda: next(iter(answer.rows()), None)
        row = self.first(connection, parameters)
        return lambda: row

    def ask_rows(self, connection: Connection, parameters: Mapping[str, Any]) -> Callable[[], list[Any]]:
        """As `rows`, to be read in the next stage."""
        if isinstance(connection, SendingConnection):
            compiled = self._compiled.get(connection.dialect.name) or self._compile(connection.dialect)
            answer = compiled.send(connection, parameters)
            return lambda: compiled.typed(answer.rows(), answer.type_codes)
        rows = self.rows(connection, parameters)
        return lambda: rows

    def first(self, connection: Connection, parameters: Mapping[str, Any]) -> tuple[Any, ...] | None:
        """Execute, and give the first row as the driver does, without result types."""
        compiled = self._compiled.get(connection.dialect.name) or self._compile(connection.dialect)
        cursor = _cursor(connection)
        try:
            cursor.execute(compiled.sql, compiled.values(parameters))
            row = cursor.fetchone()
            return None if row is None else tuple(row)
        except compiled.driver_error as error:
            raise _wrapped(error, connection, compiled.sql) from error
        finally:
            cursor.close()

    def rows(self, connection: Connection, parameters: Mapping[str, Any]) -> list[Any]:
        """Execute a SELECT, and give its rows as `Connection.execute` does: values by column name, in their types."""
        compiled = self._compiled.get(connection.dialect.name) or self._compile(connection.dialect)
        cursor = _cursor(connection)
        try:
            cursor.execute(compiled.sql, compiled.values(parameters))
            return compiled.typed(cursor.fetchall(), [described[1] for described in cursor.description])
        except compiled.driver_error as error:
            raise _wrapped(error, connection, compiled.sql) from error
        finally:
            cursor.close()

    def all(self, connection: Connection, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Execute, and give all rows as the driver does, without result types."""
        compiled = self._compiled.get(connection.dialect.name) or self._compile(connection.dialect)
        cursor = _cursor(connection)
        try:
            cursor.execute(compiled.sql, compiled.values(parameters))
            return cursor.fetchall()  # type: ignore[no-any-return]  # of a driver
        except compiled.driver_error as error:
            raise _wrapped(error, connection, compiled.sql) from error
        finally:
            cursor.close()

    def _compile(self, dialect: Dialect) -> "_Compiled":
        # Two threads may compile the same statement once each; the last one stays, and both are right.
        compiled = self._compiled[dialect.name] = _Compiled(self._statement, self._columns, dialect)
        return compiled


def prepared_insert(table: Table) -> Prepared:
    """An INSERT of all columns."""
    return Prepared(table.insert().inline(), columns=[column.name for column in table.columns])


class _Compiled:
    """The statement in one dialect's SQL."""

    __slots__ = (
        "_dialect",
        "_fixed",
        "_names",
        "_numbered",
        "_pick",
        "_positional",
        "_processed",
        "_row",
        "_texts",
        "_texts_of",
        "_typed",
        "_types",
        "driver_error",
        "sql",
    )

    def __init__(self, statement: ClauseElement, columns: list[str] | None, dialect: Dialect) -> None:
        compiled: Any = statement.compile(dialect=dialect, column_keys=columns)
        self.sql = str(compiled)
        self._positional = bool(compiled.positional)
        names = tuple(compiled.positiontup if self._positional else sorted(set(compiled.bind_names.values())))
        if compiled.post_compile_params or compiled.literal_execute_params:
            # What is written out when a statement is executed is the same each time: it stands in the statement.
            written_out = compiled.construct_expanded_state(dict.fromkeys(_required(compiled)))
            self.sql = written_out.statement
            names = tuple(written_out.positiontup if self._positional else sorted(written_out.parameters))
        binds: list[BindParameter[Any]] = [compiled.binds[name] for name in names]
        self._names = names
        self._numbered: str | None = None
        self._pick: _Process = itemgetter(*names) if len(names) > 1 else _alone(names)
        # Literals of the statement itself, which nobody passes.
        self._fixed = {name: bind.value for name, bind in zip(names, binds, strict=True) if not bind.required}
        # Of most rows one look shows that all of their texts can be stored as they are.
        self._texts = [index for index, bind in enumerate(binds) if isinstance(bind.type, PlainText)]
        self._texts_of: _Process = itemgetter(*self._texts) if len(self._texts) > 1 else _alone(self._texts)
        self._processed = [
            (index, process)
            for index, bind in enumerate(binds)
            if not isinstance(bind.type, PlainText)
            and (process := bind.type.dialect_impl(dialect).bind_processor(dialect)) is not None
        ]
        selected = statement.selected_columns if isinstance(statement, Select) else ()
        self._row: Any = namedtuple("_Row", [column.key for column in selected])  # type: ignore[misc]  # named at run time
        self._types = [column.type.dialect_impl(dialect) for column in selected]
        self._dialect = dialect
        self._typed: list[tuple[int, _Process]] | None = None
        self.driver_error: type[Exception] = dialect.loaded_dbapi.Error

    def values(self, parameters: Mapping[str, Any]) -> "list[Any] | dict[str, Any]":
        """The parameters as the driver takes them. Raises KeyError for one that is missing."""
        values = self._listed(parameters)
        return values if self._positional else dict(zip(self._names, values, strict=True))

    def _listed(self, parameters: Mapping[str, Any]) -> list[Any]:
        values = list(self._pick({**self._fixed, **parameters} if self._fixed else parameters))
        together = "".join(filter(None, self._texts_of(values)))
        if "\0" in together or not together.isascii():
            for index in self._texts:
                values[index] = storable_or_none(values[index])
        for index, process in self._processed:
            if values[index] is not None:
                values[index] = process(values[index])
        return values

    def send(self, connection: SendingConnection, parameters: Mapping[str, Any]) -> Answer:
        """Send it, with its parameters by number."""
        if self._numbered is None:
            self._numbered = self.sql % {name: f"${number}" for number, name in enumerate(self._names, 1)}
        return connection.send(self._numbered, self._listed(parameters))

    def typed(self, found: Iterable[Sequence[Any]], type_codes: Sequence[Any]) -> list[Any]:
        """What the driver found, with the types of its columns."""
        if self._typed is None:
            # Some types ask what the driver calls the column's, which an answer tells.
            processors = [
                kind.result_processor(self._dialect, code) for kind, code in zip(self._types, type_codes, strict=True)
            ]
            self._typed = [(index, process) for index, process in enumerate(processors) if process is not None]
        made = []
        for row in found:
            values = list(row)
            for index, process in self._typed:
                values[index] = process(values[index])
            made.append(self._row._make(values))
        return made


def pipelined(connection: Connection) -> AbstractContextManager[None]:
    """Statements of `Prepared` that are executed within do not wait for each other's answers, where the driver can do
    without (PostgreSQL, 32.5 Pipeline Mode). Nothing may be asked of them but by `later`. What one of them raises may be raised
    by the next one, or at the end."""
    if isinstance(connection, SendingConnection):
        return nullcontext()
    pipeline = getattr(connection.connection.driver_connection, "pipeline", None)
    return nullcontext() if pipeline is None else _pipelined(connection, pipeline())


@contextmanager
def _pipelined(connection: Connection, pipeline: AbstractContextManager[object]) -> Iterator[None]:
    try:
        with pipeline:
            yield
    except connection.dialect.loaded_dbapi.Error as error:
        raise _wrapped(error, connection, None) from error


def _wrapped(error: Any, connection: Connection, statement: str | None) -> BaseException:
    """The driver's error as SQLAlchemy raises it elsewhere."""
    wrapped: BaseException = DBAPIError.instance(
        statement,
        None,
        error,
        connection.dialect.loaded_dbapi.Error,
        hide_parameters=True,
        connection_invalidated=connection.dialect.is_disconnect(error, connection.connection, None),
        dialect=connection.dialect,
    )
    return wrapped


def _required(compiled: Any) -> list[str]:
    return [name for name, bind in compiled.binds.items() if bind.required]


def _alone(names: Sequence[str | int]) -> _Process:
    return lambda given: [given[name] for name in names]


def _cursor(connection: Connection) -> Any:
    if isinstance(connection, SendingConnection):
        raise connection.refuse()
    return connection.connection.cursor()
