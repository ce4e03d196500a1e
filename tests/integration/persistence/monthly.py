"""A database on PostgreSQL whose tables have months that have ended, for tests of partitions."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import psycopg

from infrastructure.persistence.engine.postgres.roles import REQUEST_ROLE, SYSTEM_ROLE
from infrastructure.persistence.schema.upgrade import upgrade
from infrastructure.runtime.system import RandomIds
from tests.databases import PostgresDatabases

PREFIXES = {
    "audit_event": ("aud", "id"),
    "gateway_call": ("call", "id"),
    "run_event": ("run", "run_id"),
    "tool_call": ("run", "run_id"),
}


def moment_in(month: tuple[int, int], day: int = 15) -> datetime:
    return datetime(*month, day, tzinfo=UTC)


def an_id(prefix: str, moment: datetime) -> str:
    """An id of that moment."""
    return RandomIds(unix_time_ns=lambda: int(moment.timestamp()) * 1_000_000_000).new(prefix)


def months_before(count: int) -> list[tuple[int, int]]:
    """The last months that have ended, oldest first, as year and month."""
    now = datetime.now(UTC)
    present = now.year * 12 + now.month - 1
    return [divmod_month(number) for number in range(present - count, present)]


def divmod_month(number: int) -> tuple[int, int]:
    return number // 12, number % 12 + 1


def _following(month: tuple[int, int]) -> tuple[int, int]:
    return divmod_month(month[0] * 12 + month[1])


@contextmanager
def with_ended_months(databases: PostgresDatabases, count: int) -> Iterator[str]:
    """The ordinary user's URL of a database as it is `count` months after its upgrade. A user
    without special rights owns it."""
    with (
        databases.user("", REQUEST_ROLE, SYSTEM_ROLE) as owner,
        databases.empty(owner=owner.name) as url,
    ):
        upgrade(owner.of(url))
        with psycopg.connect(owner.of(url)) as connection:
            for table, (prefix, key) in PREFIXES.items():
                _move_back(connection, table, prefix, key, months_before(count))
        yield databases.user_url(url)


def months_of(url: str, table: str) -> list[str]:
    """The names of its months, without the name of the table."""
    with psycopg.connect(url) as connection:
        connection.execute(f"SET ROLE {SYSTEM_ROLE}".encode())
        found = connection.execute("SELECT month FROM months_of(%s)", (table,)).fetchall()
    return [name.removeprefix(f"{table}_") for (name,) in found]


def partition_of(url: str, table: str, row_id: str) -> str:
    """The partition that has the row (of this run), without the name of the table."""
    with psycopg.connect(url) as connection:
        connection.execute(f"SET ROLE {SYSTEM_ROLE}".encode())
        statement = f"SELECT tableoid::regclass::text FROM {table} WHERE {PREFIXES[table][1]} = %s LIMIT 1"  # names of ours alone
        [(name,)] = connection.execute(statement.encode(), (row_id,)).fetchall()
    return str(name).removeprefix(f"{table}_")


def name_of(month: tuple[int, int]) -> str:
    return f"{month[0]}_{month[1]:02}"


def _move_back(
    connection: "psycopg.Connection[tuple[object, ...]]",
    table: str,
    prefix: str,
    key: str,
    months: list[tuple[int, int]],
) -> None:
    """Months up to the present one, before those that the upgrade made."""

    def bound(month: tuple[int, int]) -> str:
        return an_id(prefix, moment_in(month, 1))[: len(prefix) + 11]

    def run(statement: str) -> None:
        connection.execute(statement.encode())

    first = bound(months[0])
    [(_, _, begin)] = connection.execute("SELECT * FROM months_of(%s) WHERE month LIKE '%%gone'", (table,)).fetchall()
    run(f"DROP TABLE {table}_gone")
    run(f"ALTER TABLE {table}_rest DROP CONSTRAINT ck_{table}_rest")
    before = f"{prefix}_01"
    run(f"ALTER TABLE {table}_rest ADD CONSTRAINT ck_{table}_rest CHECK ({key} < '{before}' OR {key} >= '{prefix}_02')")
    run(f"CREATE TABLE {table}_gone PARTITION OF {table} FOR VALUES FROM ('{before}') TO ('{first}')")
    month = months[0]
    while bound(month) < str(begin):
        run(
            f"CREATE TABLE {table}_{name_of(month)} PARTITION OF {table}"
            f" FOR VALUES FROM ('{bound(month)}') TO ('{bound(_following(month))}')"
        )
        month = _following(month)
