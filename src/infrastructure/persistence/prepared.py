"""Statements compiled once and then handed straight to the driver: for the few that every step of a run executes.

Executing a Core construct costs five to ten times what SQLite needs for the statement itself; compiling it ourselves
keeps one description for both databases and leaves that out. Everything else goes through `Connection.execute`.
"""

from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from operator import itemgetter
from typing import Any

from sqlalchemy import BindParameter, Connection, Dialect, Select, Table
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.base import Executable
from sqlalchemy.sql.elements import ClauseElement

from infrastructure.persistence.column_types import PlainText, storable

_Process = Callable[[Any], Any]


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
        cursor = _cursor(connection)
        try:
            cursor.executemany(compiled.sql, [compiled.values(row) for row in rows])
            return int(cursor.rowcount)
        except compiled.driver_error as error:
            raise _wrapped(error, connection, compiled.sql) from error
        finally:
            cursor.close()

    def later(self, connection: Connection, rows: "list[dict[str, object]]") -> Callable[[], int]:
        """As `run_many`, also within `pipelined`: how many rows that touched is to be asked once that is over."""
        compiled = self._compiled.get(connection.dialect.name) or self._compile(connection.dialect)
        cursor = _cursor(connection)
        try:
            cursor.executemany(compiled.sql, [compiled.values(row) for row in rows])
        except compiled.driver_error as error:
            raise _wrapped(error, connection, compiled.sql) from error
        return lambda: int(cursor.rowcount)

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
            return compiled.typed(cursor)
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
        "_pick",
        "_positional",
        "_processed",
        "_row",
        "_texts",
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
        self._pick: _Process = itemgetter(*names) if len(names) > 1 else _alone(names)
        # Literals of the statement itself, which nobody passes.
        self._fixed = {name: bind.value for name, bind in zip(names, binds, strict=True) if not bind.required}
        # Of most texts one look shows that they can be stored as they are.
        self._texts = [index for index, bind in enumerate(binds) if isinstance(bind.type, PlainText)]
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
        values = list(self._pick({**self._fixed, **parameters} if self._fixed else parameters))
        for index in self._texts:
            text = values[index]
            if text is not None and not (text.isascii() and "\0" not in text):
                values[index] = storable(text)
        for index, process in self._processed:
            if values[index] is not None:
                values[index] = process(values[index])
        return values if self._positional else dict(zip(self._names, values, strict=True))

    def typed(self, cursor: Any) -> list[Any]:
        """What the driver found, with the types of its columns."""
        if self._typed is None:
            # Some types ask what the driver calls the column's, which an answer tells.
            processors = [
                kind.result_processor(self._dialect, described[1])
                for kind, described in zip(self._types, cursor.description, strict=True)
            ]
            self._typed = [(index, process) for index, process in enumerate(processors) if process is not None]
        made = []
        for row in cursor.fetchall():
            values = list(row)
            for index, process in self._typed:
                values[index] = process(values[index])
            made.append(self._row._make(values))
        return made


def pipelined(connection: Connection) -> AbstractContextManager[None]:
    """Statements of `Prepared` that are executed within do not wait for each other's answers, where the driver can do
    without (PostgreSQL, 32.5 Pipeline Mode). Nothing may be asked of them but by `later`. What one of them raises may be raised
    by the next one, or at the end."""
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


def _alone(names: tuple[str, ...]) -> _Process:
    return lambda given: [given[name] for name in names]


def _cursor(connection: Connection) -> Any:
    return connection.connection.cursor()
