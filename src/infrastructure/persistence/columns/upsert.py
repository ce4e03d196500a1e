"""INSERT … ON CONFLICT for both databases, without PostgreSQL's dialect, which takes megabytes."""

from collections.abc import Mapping, Sequence
from typing import Self

from sqlalchemy import ColumnElement, Table
from sqlalchemy.dialects.sqlite import Insert
from sqlalchemy.dialects.sqlite.dml import OnConflictDoNothing, OnConflictDoUpdate


class _DoNothing(OnConflictDoNothing):
    """PostgreSQL's compiler also reads the name of a constraint."""

    inherit_cache = True
    constraint_target = None


class _DoUpdate(OnConflictDoUpdate):
    inherit_cache = True
    constraint_target = None


class Upsert(Insert):
    inherit_cache = True

    def on_conflict_do_nothing(  # type: ignore[override]
        self, index_elements: Sequence[str] | None = None, index_where: ColumnElement[bool] | None = None
    ) -> Self:
        """An existing row stays: by any unique index, or that of `index_elements`."""
        return self.ext(_DoNothing(index_elements, index_where))

    def on_conflict_do_update(  # type: ignore[override]
        self,
        index_elements: Sequence[str],
        *,
        set_: Mapping[str, ColumnElement[object]],
        where: ColumnElement[bool] | None = None,
    ) -> Self:
        """An existing row is changed; `excluded` has the values of the new one."""
        return self.ext(_DoUpdate(index_elements, set_=dict(set_), where=where))


def upsert(table: Table) -> Upsert:
    return Upsert(table)
