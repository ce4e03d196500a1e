"""Bounds of a page of runs whose conditions have no index: it has what is found among the next runs
of the organization."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, Select, bindparam, select, tuple_

from application.runs.ports import RunFilter, RunOrder
from application.system.pages import SEARCHED, PageRequest
from domain.ids import OrganizationId
from infrastructure.persistence.columns.paging import Sort, decode_cursor, encode_cursor
from infrastructure.persistence.runs.orders import sort_of
from infrastructure.persistence.tables import run

_PLACE = (run.c.created_at, run.c.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """From the page's cursor over `length` runs of the organization, in the page's order by
    time."""

    organization_id: OrganizationId
    wanted: RunFilter
    request: PageRequest
    order: RunOrder
    length: int = SEARCHED

    def end(self, connection: Connection) -> "End | None":
        """When the last run of the walk was created; None if fewer are left."""
        row = connection.execute(self.last).first()
        return None if row is None else End(at=row.created_at, sort=self._sort)

    @property
    def last(self) -> Select[tuple[datetime]]:
        """Reads the end by the index of the organization's runs."""
        wanted, sort = self.wanted, self._sort
        walked = select(run.c.created_at).where(run.c.organization_id == self.organization_id)
        if wanted.since is not None:
            walked = walked.where(run.c.created_at >= wanted.since)
        if wanted.until is not None:
            walked = walked.where(run.c.created_at < wanted.until)
        if self.request.cursor is not None:
            number, after = decode_cursor(self.request.cursor)
            begin = tuple_(
                bindparam("walk_at", sort.value_of(number), type_=run.c.created_at.type),
                bindparam("walk_id", after, type_=run.c.id.type),
            )
            walked = walked.where(tuple_(*_PLACE) > begin if sort.ascending else tuple_(*_PLACE) < begin)
        order = _PLACE if sort.ascending else tuple(column.desc() for column in _PLACE)
        return walked.order_by(*order).offset(self.length - 1).limit(1)

    @property
    def _sort(self) -> Sort:
        return sort_of(self.order)


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The time at which a walk ends, with all runs of this time. The run may be one that the caller
    does not see, so that the cursor has no id."""

    at: datetime
    sort: Sort

    @property
    def cursor(self) -> str:
        """Where the next page begins: behind each run of this time."""
        number = self.sort.number_of(self.at)
        return encode_cursor(number + 1 if self.sort.ascending else number)

    @property
    def bounds(self) -> ColumnElement[bool]:
        """Whether a run is not behind the end."""
        end = bindparam("end_at", self.at, type_=run.c.created_at.type)
        return run.c.created_at <= end if self.sort.ascending else run.c.created_at >= end
