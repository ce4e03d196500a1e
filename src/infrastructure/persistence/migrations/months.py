"""Tables of PostgreSQL in monthly partitions by the moment in their ids, for migrations. On SQLite
nothing happens. See ADR 0089.

The partitions of a table, in the order of ids: `…_gone` (what stays of months that were removed), a
table for each month, and `…_later` (ids of months that have no table yet). `…_rest` has all other
rows: those from before, and ids without a moment.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.engine.postgres.roles import SYSTEM_ROLE
from infrastructure.persistence.migrations.row_security import EVERYTHING, protect

_BEHIND_MOMENTS = "02"
"""Moments of ids are before this until 2039. An id without a moment is hexadecimal digits, which
sort outside of the months from 2024 to 2039."""

_ID_MOMENT = """
CREATE OR REPLACE FUNCTION id_moment(at timestamp) RETURNS text LANGUAGE sql IMMUTABLE SET search_path = pg_catalog AS $$
    SELECT string_agg(
        substr('0123456789abcdefghjkmnpqrstvwxyz', ((floor(extract(epoch FROM at) * 1000)::bigint >> shift) & 31)::int + 1, 1),
        '' ORDER BY shift DESC)
    FROM generate_series(0, 45, 5) AS shift
$$
"""

_MONTHS_OF = """
CREATE OR REPLACE FUNCTION months_of(of_table text) RETURNS TABLE (month text, low text, high text)
LANGUAGE sql STABLE SET search_path = {schema}, pg_temp AS $$
    SELECT c.relname::text, bounds[1], bounds[2]
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid,
        regexp_match(pg_get_expr(c.relpartbound, c.oid), $re$FROM \\('(\\w+)'\\) TO \\('(\\w+)'\\)$re$) AS bounds
    WHERE i.inhparent = of_table::regclass AND c.relname ~ '_([0-9]{{4}}_[0-9]{{2}}|gone|later)$'
    ORDER BY bounds[1]
$$
"""

_KEY_OF = """
CREATE OR REPLACE FUNCTION month_key_of(of_table text) RETURNS text
LANGUAGE sql STABLE SET search_path = {schema}, pg_temp AS $$
    SELECT a.attname::text FROM pg_partitioned_table p JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]
    WHERE p.partrelid = of_table::regclass
$$
"""

# Partitions refer to it, and its triggers change with them. It is locked first, as transactions of
# the service do, and at once as is needed at last: one that has read it may wait for the
# partitioned table.
_LOCK = """
    FOR referred IN SELECT confrelid::regclass FROM pg_constraint WHERE conrelid = of_table::regclass AND contype = 'f' LOOP
        EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', referred);
    END LOOP;
    EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', of_table);
"""

# As the owner of the tables, so that the service's user needs no right to change them.
_ADD = """
CREATE OR REPLACE FUNCTION add_months(of_table text, ahead integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp SET lock_timeout = '1s' AS $$
DECLARE
    later text := of_table || '_later';
    latest timestamp := date_trunc('month', now() AT TIME ZONE 'UTC') + make_interval(months => ahead);
    next timestamp;
    name text;
    prefix text;
    low text;
    high text;
    behind text;
    added integer := 0;
    key text := month_key_of(of_table);
    referred regclass;
BEGIN
    IF of_table NOT IN ({tables}) THEN
        RAISE EXCEPTION '% has no months', of_table;
    END IF;
    SELECT to_date(right(max(month), 7), 'YYYY_MM') + interval '1 month' INTO next FROM months_of(of_table) WHERE month ~ '[0-9]$';
    IF next > latest THEN
        RETURN 0;
    END IF;
{lock}
    SELECT m.low, m.high INTO low, behind FROM months_of(of_table) m WHERE m.month = later;
    prefix := split_part(low, '_', 1) || '_';
    EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', of_table, later);
    WHILE next <= latest LOOP
        name := of_table || to_char(next, '_YYYY_MM');
        next := next + interval '1 month';
        high := prefix || id_moment(next);
        EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (%L) TO (%L)', name, of_table, low, high);
        EXECUTE format(
            'WITH moved AS (DELETE FROM %I WHERE %I < %L RETURNING *) INSERT INTO %I SELECT * FROM moved', later, key, high, name);
        low := high;
        added := added + 1;
    END LOOP;
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', of_table, later, low, behind);
    RETURN added;
END $$
"""

# The caller has seen `expected` rows, and chose those to keep: another number of either ends it.
_REMOVE = """
CREATE OR REPLACE FUNCTION remove_month(of_table text, of_month text, expected bigint, kept text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp SET lock_timeout = '1s' AS $$
DECLARE
    gone text := of_table || '_gone';
    oldest text;
    low text;
    high text;
    found bigint;
    key text := month_key_of(of_table);
    referred regclass;
BEGIN
    IF of_table NOT IN ({tables}) THEN
        RAISE EXCEPTION '% has no months', of_table;
    END IF;
    SELECT m.month, m.high INTO oldest, high FROM months_of(of_table) m WHERE m.month ~ '[0-9]$' ORDER BY m.month LIMIT 1;
    IF oldest IS DISTINCT FROM of_month OR to_date(right(oldest, 7), 'YYYY_MM') + interval '1 month' > now() AT TIME ZONE 'UTC' THEN
        RAISE EXCEPTION '% is not the oldest month that has ended', of_month USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    -- Others still read it, and read and write other months, while its rows are counted.
    EXECUTE format('LOCK TABLE %I IN SHARE MODE', of_month);
    EXECUTE format('SELECT count(*) FROM %I', of_month) INTO found;
    IF found <> expected THEN
        RAISE EXCEPTION '% has changed', of_month USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
{lock}
    SELECT m.low INTO low FROM months_of(of_table) m WHERE m.month = gone;
    EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', of_table, of_month);
    EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', of_table, gone);
    EXECUTE format('INSERT INTO %I SELECT * FROM %I WHERE %I = ANY($1)', gone, of_month, key) USING kept;
    GET DIAGNOSTICS found = ROW_COUNT;
    IF found < cardinality(kept) THEN
        RAISE EXCEPTION '% has not all rows that stay', of_month USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    EXECUTE format('DROP TABLE %I', of_month);
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', of_table, gone, low, high);
END $$
"""
# One that has not begun, so that no row from before belongs to it.
_FIRST_MONTH = sa.text("""
    SELECT to_char(first, 'YYYY_MM') AS name, id_moment(first - interval '1 second') AS before, id_moment(first) AS low,
        id_moment(first + interval '1 month') AS high
    FROM (SELECT date_trunc('month', now() AT TIME ZONE 'UTC' + interval '1 day') + interval '1 month' AS first) AS found
""")
_SIGNATURES = (
    "month_key_of(text)",
    "months_of(text)",
    "add_months(text, integer)",
    "remove_month(text, text, bigint, text[])",
    "id_moment(timestamp)",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Monthly:
    """A table: the prefix of the ids in the column `by`, its key, the body of its foreign key by
    the name of that, and of its indexes by theirs."""

    table: str
    prefix: str
    key: str
    indexes: Mapping[str, str] = field(default_factory=dict)
    by: str = "id"
    reference: tuple[str, str] | None = None
    requests_may: str = EVERYTHING

    @property
    def rest(self) -> str:
        return f"{self.table}_rest"

    @property
    def names(self) -> tuple[str, ...]:
        """Of what has to make way for the same of the partitioned table."""
        return (f"pk_{self.table}", *self.indexes)


def lock(referred: str, *tables: Monthly) -> None:
    """Lock the tables, in the order in which transactions of running code use them: otherwise each
    may wait for the other."""
    if op.get_bind().dialect.name == "sqlite":
        return
    op.execute(f"LOCK TABLE {referred} IN ACCESS EXCLUSIVE MODE")
    for one in tables:
        op.execute(f"LOCK TABLE {one.table} IN ACCESS EXCLUSIVE MODE")


def create_functions(*tables: str) -> None:
    """The functions by which the service adds and removes months of these tables, and of no others
    any more."""
    if op.get_bind().dialect.name == "sqlite":
        return
    schema = op.get_bind().execute(sa.text("SELECT quote_ident(current_schema())")).scalar_one()
    named = ", ".join(f"'{table}'" for table in tables)
    for function in (_ID_MOMENT, _MONTHS_OF, _KEY_OF, _ADD, _REMOVE):
        op.execute(function.format(schema=schema, tables=named, lock=_LOCK))
    for signature in _SIGNATURES:
        op.execute(f"REVOKE ALL ON FUNCTION {signature} FROM PUBLIC")
        op.execute(f"GRANT EXECUTE ON FUNCTION {signature} TO {SYSTEM_ROLE}")


def drop_functions() -> None:
    """Undo `create_functions`."""
    if op.get_bind().dialect.name != "sqlite":
        op.execute(f"DROP FUNCTION {', '.join(_SIGNATURES)}")


def divide(one: Monthly) -> None:
    """Put a partitioned table in the place of the table, which becomes the partition of all ids
    that are in no month. Reads all of its rows once, with the table locked."""
    if op.get_bind().dialect.name == "sqlite":
        return
    op.execute(f"ALTER TABLE {one.table} RENAME TO {one.rest}")
    for name in one.names:
        op.execute(f"ALTER INDEX {name} RENAME TO {name.replace(one.table, one.rest)}")
    op.execute(f"CREATE TABLE {one.table} (LIKE {one.rest} INCLUDING DEFAULTS) PARTITION BY RANGE ({one.by})")
    op.execute(f"ALTER TABLE {one.table} ADD CONSTRAINT pk_{one.table} PRIMARY KEY ({one.key})")
    if one.reference is not None:
        name, body = one.reference
        op.execute(f"ALTER TABLE {one.table} ADD CONSTRAINT {name} FOREIGN KEY {body}")
    for name, body in one.indexes.items():
        op.execute(f"CREATE INDEX {name} ON {one.table} {body}")
    protect(one.table, requests_may=one.requests_may)
    month = op.get_bind().execute(_FIRST_MONTH).one()
    before, low, high = (f"{one.prefix}_{moment}" for moment in (month.before, month.low, month.high))
    behind = f"{one.prefix}_{_BEHIND_MOMENTS}"
    # Without this promise each new month would have to look for its rows here.
    op.execute(
        f"ALTER TABLE {one.rest} ADD CONSTRAINT ck_{one.rest} CHECK ({one.by} < '{before}' OR {one.by} >= '{behind}')"
    )
    op.execute(f"ALTER TABLE {one.table} ATTACH PARTITION {one.rest} DEFAULT")
    for part, of, to in (("gone", before, low), (month.name, low, high), ("later", high, behind)):
        op.execute(f"CREATE TABLE {one.table}_{part} PARTITION OF {one.table} FOR VALUES FROM ('{of}') TO ('{to}')")


def unite(one: Monthly) -> None:
    """Undo `divide`."""
    if op.get_bind().dialect.name == "sqlite":
        return
    months = op.get_bind().execute(sa.text("SELECT month FROM months_of(:of)"), {"of": one.table}).scalars().all()
    op.execute(f"ALTER TABLE {one.table} DETACH PARTITION {one.rest}")
    op.execute(f"ALTER TABLE {one.rest} DROP CONSTRAINT ck_{one.rest}")
    op.execute(f"ALTER TABLE {one.rest} NO FORCE ROW LEVEL SECURITY")
    for month in months:
        op.execute(f"INSERT INTO {one.rest} SELECT * FROM {month}")  # noqa: S608  # names of ours alone
    op.execute(f"ALTER TABLE {one.rest} FORCE ROW LEVEL SECURITY")
    op.execute(f"DROP TABLE {one.table}")
    op.execute(f"ALTER TABLE {one.rest} RENAME TO {one.table}")
    for name in one.names:
        op.execute(f"ALTER INDEX {name.replace(one.table, one.rest)} RENAME TO {name}")
