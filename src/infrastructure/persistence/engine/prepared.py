"""Prepared statements: compiled once and given to the driver, for the few that every step of a run
executes.

Executing a Core construct costs five to ten times what SQLite needs for the statement itself;
compiling it ourselves keeps one description for both databases and leaves that out. Everything else
goes through `Connection.execute`.
"""

from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from operator import itemgetter
from typing import Any, Final, Protocol, TypeVar, cast

from sqlalchemy import BindParameter, Connection, Dialect, Select, Table
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.base import Executable
from sqlalchemy.sql.elements import ClauseElement

from infrastructure.persistence.columns.column_types import PlainText, storable_or_none

T = TypeVar("T")

_Process = Callable[[Any], Any]


class Answer(Protocol):
    """How many rows a statement touched; in a unit in stages it is there in the next stage."""

    @property
    def count(self) -> int:
        """How many rows were touched."""
        ...


class Result(Answer, Protocol):
    """The database's answer to one statement."""

    @property
    def type_codes(self) -> list[int]:
        """The driver's types of the columns."""
        ...

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows as the driver gives them."""
        ...


class Rows:
    """Rows that a statement found."""

    __slots__ = ("_compiled", "_result")

    def __init__(self, compiled: "_Compiled", result: Result) -> None:
        self._compiled = compiled
        self._result = result

    def first(self) -> tuple[Any, ...] | None:
        """The first row as the driver gives it, without the types of its columns."""
        return next(iter(self._result.rows()), None)

    def all(self) -> list[tuple[Any, ...]]:
        """All rows as the driver gives them."""
        return self._result.rows()

    def typed(self) -> list[Any]:
        """All rows as `Connection.execute` gives them: values by column name, in their types."""
        return self._compiled.typed(self._result)


class _Fetched:
    """What a driver's cursor had; the cursor is closed."""

    __slots__ = ("_described", "_rows", "count")

    def __init__(self, cursor: Any, *, described: bool) -> None:
        self._rows = cursor.fetchall()
        self.count = int(cursor.rowcount)
        # psycopg makes an object of each column's description.
        self._described = cursor.description if described else None

    @property
    def type_codes(self) -> list[int]:
        if self._described is None:
            raise RuntimeError("the columns of this answer were not described")
        return [described[1] for described in self._described]

    def rows(self) -> list[tuple[Any, ...]]:
        """As the driver gives them."""
        return self._rows  # type: ignore[no-any-return]  # of a driver


class _Count:
    """Rows touched according to a driver's cursor, which learns it at the end of a pipeline."""

    __slots__ = ("_cursor",)

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    @property
    def count(self) -> int:
        """How many rows were touched."""
        return int(self._cursor.rowcount)


class _Sum:
    """Rows touched by several statements that were sent."""

    __slots__ = ("_answers",)

    def __init__(self, answers: Sequence[Answer]) -> None:
        self._answers = answers

    @property
    def count(self) -> int:
        """How many rows were touched."""
        return sum(answer.count for answer in self._answers)


class SendingConnection:
    """Sends statements without waiting for their answers. Units in stages get it in place of
    SQLAlchemy's connection; any other use of it raises."""

    dialect: Dialect

    def send(self, statement: str, values: list[Any]) -> Result:
        """Send a statement whose parameters are $1, $2, …"""
        raise NotImplementedError


class Prepared:
    """A statement whose every parameter is named, without expanding ones. `columns` are those an
    INSERT names. Rows of an INSERT of values alone may be sent `together`, in one statement for
    several."""

    def __init__(
        self, statement: ClauseElement, *, columns: Iterable[str] | None = None, together: bool = False
    ) -> None:
        if not isinstance(statement, Executable):
            raise TypeError(f"{statement!r} cannot be executed")
        self._statement = statement
        self._columns = None if columns is None else list(columns)
        self._together = together
        self._compiled: dict[str, _Compiled] = {}

    def run(self, connection: Connection, *rows: Mapping[str, Any]) -> "Answer":
        """Execute for each set of parameters. The answer's `count` is how many rows that
        touched."""
        compiled = self._compiled.get(connection.dialect.name) or self._compile(connection.dialect)
        if isinstance(connection, SendingConnection):
            if self._together and len(rows) > 1:
                return _Sum(list(compiled.send_together(connection, rows)))
            return _Sum([compiled.send(connection, row) for row in rows])
        cursor = connection.connection.cursor()
        try:
            if len(rows) == 1:
                cursor.execute(compiled.sql, compiled.values(rows[0]))
            else:
                cursor.executemany(compiled.sql, [cast(Any, compiled.values(row)) for row in rows])
        except compiled.driver_error as error:
            cursor.close()
            raise _wrapped(error, connection, compiled.sql) from error
        return _Count(cursor)

    def ask(self, connection: Connection, parameters: Mapping[str, Any]) -> "Rows":
        """Execute; the rows can be read at once, or in the next stage of a unit in stages."""
        compiled = self._compiled.get(connection.dialect.name) or self._compile(connection.dialect)
        if isinstance(connection, SendingConnection):
            return Rows(compiled, compiled.send(connection, parameters))
        cursor = connection.connection.cursor()
        try:
            cursor.execute(compiled.sql, compiled.values(parameters))
            return Rows(compiled, _Fetched(cursor, described=not compiled.knows_types))
        except compiled.driver_error as error:
            raise _wrapped(error, connection, compiled.sql) from error
        finally:
            cursor.close()

    def _compile(self, dialect: Dialect) -> "_Compiled":
        # Two threads may compile the same statement once each; the last one stays, and both are
        # right.
        compiled = self._compiled[dialect.name] = _Compiled(self._statement, self._columns, dialect)
        return compiled


def prepared_insert(table: Table) -> Prepared:
    """An INSERT of all columns."""
    return Prepared(table.insert().inline(), columns=[column.name for column in table.columns], together=True)


_TOGETHER: Final = (16, 8, 4, 3, 2, 1)
"""Rows of one INSERT: a statement is prepared for each of these numbers, as it is needed."""


def _in_parts(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    place = 0
    while place < len(rows):
        size = next(size for size in _TOGETHER if size <= len(rows) - place)
        yield rows[place : place + size]
        place += size


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
            # What is written out when a statement is executed is the same each time: it stands in
            # the statement.
            written_out = compiled.construct_expanded_state(dict.fromkeys(_required(compiled)))
            self.sql = written_out.statement
            names = tuple(written_out.positiontup if self._positional else sorted(written_out.parameters))
        binds: list[BindParameter[Any]] = [compiled.binds[name] for name in names]
        self._names = names
        self._numbered: dict[int, str] = {}
        self._pick: _Process = itemgetter(*names) if len(names) > 1 else _alone(names)
        # Literals of the statement itself.
        self._fixed = {name: bind.value for name, bind in zip(names, binds, strict=True) if not bind.required}
        # One check per row finds texts that cannot be stored as they are.
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
            if (value := values[index]) is not None:
                values[index] = process(value)
        return values

    @property
    def knows_types(self) -> bool:
        """Whether no description of columns is needed."""
        return self._typed is not None

    def send(self, connection: SendingConnection, parameters: Mapping[str, Any]) -> Result:
        """Send it, with its parameters by number."""
        return connection.send(self._numbered.get(1) or self._number(1), self._listed(parameters))

    def send_together(self, connection: SendingConnection, rows: Sequence[Mapping[str, Any]]) -> Iterator[Result]:
        """Send an INSERT of several rows, as few times as its sizes allow."""
        for part in _in_parts(rows):
            values = [value for row in part for value in self._listed(row)]
            yield connection.send(self._numbered.get(len(part)) or self._number(len(part)), values)

    def _number(self, rows: int) -> str:
        """The statement for so many rows, with its parameters by number. Raises ValueError for
        several rows of a statement that has parameters beside its values, or that returns them."""
        before, values, after = self.sql.partition(" VALUES ") if rows > 1 else ("", "", self.sql)
        row, conflict, rest = after.partition(" ON CONFLICT ") if rows > 1 else (after, "", "")
        width = len(self._names)
        beside = before + rest
        if rows > 1 and (" RETURNING " in row or any(f"%({name})s" in beside for name in self._names)):
            raise ValueError(f"rows of this statement cannot be sent together: {self.sql}")
        numbered = ", ".join(
            row % {name: f"${place * width + number}" for number, name in enumerate(self._names, 1)}
            for place in range(rows)
        )
        self._numbered[rows] = before + values + numbered + conflict + rest
        return self._numbered[rows]

    def typed(self, result: Result) -> list[Any]:
        """What the driver found, with the types of its columns."""
        if self._typed is None:
            # Some types ask what the driver calls the column's, which an answer tells.
            processors = [
                kind.result_processor(self._dialect, code)
                for kind, code in zip(self._types, result.type_codes, strict=True)
            ]
            self._typed = [(index, process) for index, process in enumerate(processors) if process is not None]
        made = []
        for row in result.rows():
            values = list(row)
            for index, process in self._typed:
                values[index] = process(values[index])
            made.append(self._row._make(values))
        return made


def pipelined(connection: Connection) -> AbstractContextManager[None]:
    """Statements of `Prepared` that are executed within do not wait for each other's answers, where
    the driver can do without (PostgreSQL, 32.5 Pipeline Mode). Their counts are there afterwards.
    What one of them raises may be raised by the next one, or at the end."""
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
