"""Statements compiled once and then handed straight to the driver: for the few that every step of a run executes.

Executing a Core construct costs five to ten times what SQLite needs for the statement itself; compiling it ourselves
keeps one description for both databases and leaves that out. Everything else goes through `Connection.execute`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sqlalchemy import BindParameter, Connection, Dialect, Table
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.base import Executable
from sqlalchemy.sql.elements import ClauseElement

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
        compiled = self._for(connection.dialect)
        cursor = _cursor(connection)
        try:
            cursor.execute(compiled.sql, compiled.values(parameters))
            return int(cursor.rowcount)
        except compiled.driver_error as error:
            raise compiled.wrapped(error, connection) from error
        finally:
            cursor.close()

    def run_many(self, connection: Connection, rows: "list[dict[str, object]]") -> int:
        """Execute for several sets of parameters; how many rows that touched."""
        if len(rows) == 1:
            return self.run(connection, rows[0])
        compiled = self._for(connection.dialect)
        cursor = _cursor(connection)
        try:
            cursor.executemany(compiled.sql, [compiled.values(row) for row in rows])
            return int(cursor.rowcount)
        except compiled.driver_error as error:
            raise compiled.wrapped(error, connection) from error
        finally:
            cursor.close()

    def first(self, connection: Connection, parameters: Mapping[str, Any]) -> tuple[Any, ...] | None:
        """Execute, and give the first row as the driver does, without result types."""
        compiled = self._for(connection.dialect)
        cursor = _cursor(connection)
        try:
            cursor.execute(compiled.sql, compiled.values(parameters))
            row = cursor.fetchone()
            return None if row is None else tuple(row)
        except compiled.driver_error as error:
            raise compiled.wrapped(error, connection) from error
        finally:
            cursor.close()

    def _for(self, dialect: Dialect) -> "_Compiled":
        # Two threads may compile the same statement once each; the last one stays, and both are right.
        compiled = self._compiled.get(dialect.name)
        if compiled is None:
            compiled = self._compiled[dialect.name] = _Compiled(self._statement, self._columns, dialect)
        return compiled


def prepared_insert(table: Table) -> Prepared:
    """An INSERT of all columns."""
    return Prepared(table.insert().inline(), columns=[column.name for column in table.columns])


class _Compiled:
    """The statement in one dialect's SQL."""

    __slots__ = ("_binds", "_fixed", "_positional", "driver_error", "sql")

    def __init__(self, statement: ClauseElement, columns: list[str] | None, dialect: Dialect) -> None:
        compiled: Any = statement.compile(dialect=dialect, column_keys=columns)
        self.sql = str(compiled)
        self._positional = bool(compiled.positional)
        names = compiled.positiontup if self._positional else sorted(set(compiled.bind_names.values()))
        binds: list[BindParameter[Any]] = [compiled.binds[name] for name in names]
        processors = [bind.type.dialect_impl(dialect).bind_processor(dialect) for bind in binds]
        self._binds: list[tuple[str, _Process]] = [
            (name, _unchanged if process is None else process) for name, process in zip(names, processors, strict=True)
        ]
        # Literals of the statement itself, which nobody passes.
        self._fixed = {name: bind.value for name, bind in zip(names, binds, strict=True) if not bind.required}
        self.driver_error: type[Exception] = dialect.loaded_dbapi.Error

    def values(self, parameters: Mapping[str, Any]) -> "tuple[Any, ...] | dict[str, Any]":
        """The parameters as the driver takes them. Raises KeyError for one that is missing."""
        given = {**self._fixed, **parameters} if self._fixed else parameters
        if self._positional:
            return tuple([None if (value := given[name]) is None else process(value) for name, process in self._binds])
        return {name: None if (value := given[name]) is None else process(value) for name, process in self._binds}

    def wrapped(self, error: Any, connection: Connection) -> BaseException:
        """The driver's error as SQLAlchemy raises it elsewhere."""
        wrapped: BaseException = DBAPIError.instance(
            self.sql,
            None,
            error,
            self.driver_error,
            hide_parameters=True,
            connection_invalidated=connection.dialect.is_disconnect(error, connection.connection, None),
            dialect=connection.dialect,
        )
        return wrapped


def _unchanged(value: object) -> object:
    return value


def _cursor(connection: Connection) -> Any:
    return connection.connection.cursor()
