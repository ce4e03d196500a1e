"""Orders of runs in SQL. Figures have no index, so that the newest runs bound what is sorted by
them."""

from sqlalchemy import BigInteger, ColumnElement, Label, cast, func, type_coerce

from application.runs.ports import RunFilter, RunOrder
from domain.ids import OrganizationId
from domain.teams import Teams
from infrastructure.persistence.columns.paging import Sort, among_newest, by_moment
from infrastructure.persistence.tables import run

_took = type_coerce(run.c.finished_at, BigInteger) - type_coerce(run.c.started_at, BigInteger)
_FIGURES: dict[RunOrder, Label[int]] = {
    RunOrder.LONGEST: func.coalesce(_took, cast(run.c.active_s * 1_000_000, BigInteger)).label("sorted_by"),
    RunOrder.COSTLIEST: type_coerce(run.c.cost_nano_usd, BigInteger).label("sorted_by"),
    RunOrder.MOST_TOKENS: (run.c.input_tokens + run.c.output_tokens).label("sorted_by"),
}


def sort_of(order: RunOrder) -> Sort:
    """What must be selected beside the columns of runs (`added_column`), and the order by it."""
    figure = _FIGURES.get(order)
    if figure is not None:
        return Sort(column=figure)
    return by_moment(run.c.created_at, ascending=order is RunOrder.OLDEST)


def added_columns(order: RunOrder) -> tuple[Label[int], ...]:
    return (_FIGURES[order],) if order in _FIGURES else ()


def bounds(
    organization_id: OrganizationId, wanted: RunFilter, order: RunOrder, *, teams: Teams
) -> tuple[ColumnElement[bool], ...]:
    """Which runs are sorted: all, or the newest ones that `teams` see."""
    return (among_newest(run, organization_id, until=wanted.until, teams=teams),) if order in _FIGURES else ()
