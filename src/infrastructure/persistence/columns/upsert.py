"""INSERT … ON CONFLICT for both databases. SQLite took the clause from PostgreSQL; of the two dialects PostgreSQL's takes megabytes,
which a service on SQLite need not hold."""

from collections.abc import Mapping, Sequence
from typing import Self

from sqlalchemy import ColumnElement, Table
from sqlalchemy.dialects.sqlite import Insert
from sqlalchemy.dialects.sqlite.dml import OnConflictDoNothing, OnConflictDoUpdate


class _DoNothing(OnConflictDoNothing):
    """PostgreSQL's compiler asks for a constraint by name, too."""

    inherit_cache = True
    constraint_target = None


class _DoUpdate(OnConflictDoUpdate):
    inherit_cache = True
    constraint_target = None


class Upsert(Insert):
    """An INSERT that says what becomes of a row that is there already."""

    inherit_cache = True

    def on_conflict_do_nothing(  # type: ignore[override]
        self, index_elements: Sequence[str] | None = None, index_where: ColumnElement[bool] | None = None
    ) -> Self:
        """The row stays; by any unique index, or that of `index_elements`."""
        return self.ext(_DoNothing(index_elements, index_where))

    def on_conflict_do_update(  # type: ignore[override]
        self,
        index_elements: Sequence[str],
        *,
        set_: Mapping[str, ColumnElement[object]],
        where: ColumnElement[bool] | None = None,
    ) -> Self:
        """The row is changed; `excluded` is what would have been inserted."""
        return self.ext(_DoUpdate(index_elements, set_=dict(set_), where=where))


def upsert(table: Table) -> Upsert:
    """An INSERT into `table`."""
    return Upsert(table)
