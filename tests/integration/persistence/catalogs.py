"""All that a database's catalog has of our schema, as lines to compare. The order of columns is
part of them, that of constraints and grants is not."""

import re
from collections.abc import Iterator

from sqlalchemy import Connection, text

from infrastructure.persistence.schema.revision import plain_engine

_INLINE_REFERENCE = re.compile(r"(\w+) TEXT (CONSTRAINT \w+) (REFERENCES .+)")
"""As `ALTER TABLE … ADD COLUMN` writes a reference on SQLite; `CREATE TABLE` writes it as a
constraint of the table."""

_POSTGRES = (
    """
    SELECT 'column', c.relname, row_number() OVER (PARTITION BY c.oid ORDER BY a.attnum), a.attname,
        format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, pg_get_expr(d.adbin, d.adrelid)
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid LEFT JOIN pg_attrdef d ON (d.adrelid, d.adnum) = (c.oid, a.attnum)
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
    """,
    """
    SELECT 'constraint', conrelid::regclass, conname, pg_get_constraintdef(oid)
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    """,
    "SELECT 'index', indexdef FROM pg_indexes WHERE schemaname = 'public'",
    """
    SELECT 'policy', tablename, policyname, permissive, roles, cmd, qual, with_check
    FROM pg_policies WHERE schemaname = 'public'
    """,
    """
    SELECT 'relation', relname, relkind, relrowsecurity, relforcerowsecurity,
        ARRAY(SELECT grant_item::text FROM unnest(relacl) AS grant_item ORDER BY 1)
    FROM pg_class WHERE relnamespace = 'public'::regnamespace
    """,
    "SELECT 'schema', ARRAY(SELECT unnest(nspacl)::text ORDER BY 1) FROM pg_namespace WHERE nspname = 'public'",
    "SELECT 'function', pg_get_functiondef(oid), proacl FROM pg_proc WHERE pronamespace = 'public'::regnamespace",
    """
    SELECT 'trigger', pg_get_triggerdef(t.oid), tgenabled FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
    WHERE c.relnamespace = 'public'::regnamespace AND NOT tgisinternal
    """,
)


def catalog_of(url: str) -> list[str]:
    """The lines, sorted."""
    engine = plain_engine(url)
    with engine.connect() as connection:
        found = _sqlite(connection) if connection.dialect.name == "sqlite" else _postgres(connection)
        lines = sorted(found)
    engine.dispose()
    return lines


def _postgres(connection: Connection) -> Iterator[str]:
    for query in _POSTGRES:
        for row in connection.execute(text(query)):
            yield " ".join(str(value) for value in row)


def _sqlite(connection: Connection) -> Iterator[str]:
    for kind, table, name, sql in connection.execute(text("SELECT type, tbl_name, name, sql FROM sqlite_master")):
        words = " ".join((sql or "").split())
        yield f"{kind} {table} {name} {_table(words) if words.startswith('CREATE TABLE') else words}"


def _table(words: str) -> str:
    """A table's SQL with its constraints sorted behind its columns."""
    head, _, rest = words.partition("(")
    body, _, tail = rest.rpartition(")")
    columns, constraints = [], []
    for part in _parts(body):
        if inline := _INLINE_REFERENCE.fullmatch(part):
            column, constraint, reference = inline.groups()
            columns.append(f"{column} TEXT")
            constraints.append(f"{constraint} FOREIGN KEY({column}) {reference}")
        else:
            (constraints if part.startswith("CONSTRAINT") else columns).append(part)
    return f"{head}({', '.join([*columns, *sorted(constraints)])}){tail}"


def _parts(body: str) -> Iterator[str]:
    """What commas outside of parentheses divide."""
    depth, part = 0, ""
    for character in body:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            yield part.strip()
            part = ""
        else:
            part += character
    yield part.strip()
