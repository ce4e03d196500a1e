"""Daily sums of usage and reservations against daily budgets, in SQL."""

from datetime import date
from decimal import Decimal
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    delete,
    func,
    literal,
    or_,
    select,
    text,
    tuple_,
)

from application.runs.ports import LeaseLost
from application.system.pages import Page, PageRequest
from application.usage.ports import Reservation, UsageFilter
from domain.ids import AgentId, OrganizationId
from domain.runs.lease import Lease
from domain.runs.run import RunStatus
from domain.usage.daily_usage import UsageKey, UsageSum
from infrastructure.persistence.columns.paging import AnyRow, decode_cursor, encode_cursor, page_of
from infrastructure.persistence.columns.teams import seen_by
from infrastructure.persistence.columns.upsert import upsert
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.tables import budget_reservation, person_usage, run, usage
from infrastructure.persistence.tables.owners import team_of_agent
from infrastructure.persistence.usage.counted_for import counted_for, counting_for
from infrastructure.persistence.usage.rows import SUMMED

_MAX_ORDINAL = date.max.toordinal()

_spending_on = bindparam("day", type_=usage.c.day.type)
_of_organization = bindparam("organization_id", type_=usage.c.organization_id.type)
_held = select(run.c.id).where(
    run.c.id == bindparam("run_id"),
    run.c.epoch == bindparam("lease_epoch"),
    run.c.status == RunStatus.IN_PROGRESS.value,
)
_spent = (
    select(usage.c.agent_id, func.sum(usage.c.cost_nano_usd).label("amount"))
    .where(usage.c.organization_id == _of_organization, usage.c.day == _spending_on)
    .group_by(usage.c.agent_id)
)
# A suspended run spends nothing, and reserves again when it continues.
_reserved = (
    select(budget_reservation.c.agent_id, func.sum(budget_reservation.c.amount_nano_usd).label("amount"))
    .join(run, run.c.id == budget_reservation.c.run_id)
    .where(
        budget_reservation.c.organization_id == _of_organization,
        budget_reservation.c.run_id != bindparam("run_id"),
        run.c.status.in_([RunStatus.QUEUED.value, RunStatus.IN_PROGRESS.value]),
    )
    .group_by(budget_reservation.c.agent_id)
)
_spent_by_user: Select[Any] = select(func.sum(person_usage.c.cost_nano_usd).label("amount")).where(
    person_usage.c.organization_id == _of_organization,
    person_usage.c.day == _spending_on,
    counted_for(person_usage.c.started_by),
)
_reserved_by_user: Select[Any] = (
    _reserved.with_only_columns(
        func.sum(budget_reservation.c.amount_nano_usd).label("amount"), maintain_column_froms=True
    )
    .group_by(None)
    .where(counted_for(run.c.requested_by))
)
_forget_ended = delete(budget_reservation).where(
    budget_reservation.c.organization_id == _of_organization,
    budget_reservation.c.run_id.in_(
        select(run.c.id).where(run.c.id == budget_reservation.c.run_id, run.c.finished_at.is_not(None))
    ),
)
_insert = upsert(budget_reservation)
_reserve = _insert.on_conflict_do_update(
    index_elements=["run_id"],
    set_={"day": _insert.excluded.day, "amount_nano_usd": _insert.excluded.amount_nano_usd},
)
_lock = text("SELECT pg_advisory_xact_lock(hashtextextended('budget:' || :organization_id, 0))")


class SqlUsageStore:
    """The ports `UsageReports` and `Reservations`."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def page(self, organization_id: OrganizationId, wanted: UsageFilter, request: PageRequest) -> Page[UsageSum]:
        statement = _after(_grouped(organization_id, wanted), request.cursor).limit(request.limit + 1)

        def unit(connection: Connection) -> Page[UsageSum]:
            rows = connection.execute(statement).all()
            return page_of(rows[: request.limit], _usage_sum, more=len(rows) > request.limit, cursor=_cursor)

        return await self._database.read(unit, scope=organization_id)

    async def reserve(self, lease: Lease, wanted: Reservation) -> bool:
        return await self._database.write(
            lambda connection: _reserve_within(connection, lease, wanted), scope=lease.organization_id
        )


def _reserve_within(connection: Connection, lease: Lease, wanted: Reservation) -> bool:
    organization_id, run_id = lease.organization_id, lease.run_id
    if connection.dialect.name == "postgresql":
        connection.execute(_lock, {"organization_id": organization_id})
    if connection.execute(_held, {"run_id": run_id, "lease_epoch": lease.epoch}).first() is None:
        raise LeaseLost(run_id)
    day = wanted.day.toordinal()
    scope = {"organization_id": organization_id, "day": day, "run_id": run_id}
    used: dict[AgentId, Decimal] = {}
    # Reservations are read first: a call paid in between counts twice; in the other order it would
    # not count at all.
    for statement in (_reserved, _spent):
        for row in connection.execute(statement, scope):
            used[AgentId(row.agent_id)] = used.get(AgentId(row.agent_id), Decimal(0)) + row.amount
    used_by_user = Decimal(0)
    if wanted.user_id is not None:
        of_user = {**scope, **counting_for(wanted.user_id, with_keys=wanted.with_keys)}
        for of_starter in (_reserved_by_user, _spent_by_user):
            used_by_user += connection.execute(of_starter, of_user).one().amount or 0
    if not wanted.fits_beside(used, used_by_user):
        return False
    connection.execute(_forget_ended, {"organization_id": organization_id})
    row_of_run = {
        "run_id": run_id,
        "organization_id": organization_id,
        "agent_id": wanted.agent_id,
        "day": day,
        "amount_nano_usd": wanted.amount_usd,
    }
    connection.execute(_reserve, row_of_run)
    return True


def _grouped(organization_id: OrganizationId, wanted: UsageFilter) -> Select[Any]:
    """Sums by the wanted keys; other keys are 0 or empty, so that one order fits all."""
    of_person = UsageKey.PERSON in wanted.by or wanted.started_by is not None
    columns = (person_usage if of_person else usage).c
    keys: list[tuple[str, ColumnElement[Any], UsageKey, ColumnElement[Any]]] = [
        ("day", columns.day, UsageKey.DAY, literal(0)),
        ("agent_id", columns.agent_id, UsageKey.AGENT, literal("")),
        ("model", columns.model, UsageKey.MODEL, literal("")),
        ("started_by", columns.started_by if of_person else literal(""), UsageKey.PERSON, literal("")),
    ]
    selected = [(column if key in wanted.by else empty).label(name) for name, column, key, empty in keys]
    sums = [func.sum(columns[name]).label(name) for name in SUMMED]
    statement = select(*selected, *sums).where(columns.organization_id == organization_id)
    if wanted.since is not None:
        statement = statement.where(columns.day >= wanted.since.toordinal())
    if wanted.until is not None:
        statement = statement.where(columns.day <= wanted.until.toordinal())
    statement = statement.where(*seen_by(wanted.teams, team_of_agent(columns.agent_id)))
    if wanted.agent_id is not None:
        statement = statement.where(columns.agent_id == wanted.agent_id)
    if wanted.model is not None:
        statement = statement.where(columns.model == wanted.model)
    if wanted.started_by is not None:
        statement = statement.where(columns.started_by == wanted.started_by)
    return statement.group_by(*(column for _, column, key, _ in keys if key in wanted.by))


def _after(grouped: Select[Any], cursor: str | None) -> Select[Any]:
    rows = grouped.subquery()
    # Without grouping, a sum over nothing is one empty row.
    statement = (
        select(rows)
        .where(rows.c.model_calls.is_not(None))
        .order_by(rows.c.day.desc(), rows.c.agent_id, rows.c.model, rows.c.started_by)
    )
    if cursor is None:
        return statement
    day, rest = decode_cursor(cursor)
    keys, _, started_by = rest.partition("\n")
    agent_id, _, model = keys.partition(" ")
    last = min(day, _MAX_ORDINAL)
    later = tuple_(rows.c.agent_id, rows.c.model, rows.c.started_by) > tuple_(
        literal(agent_id), literal(model), literal(started_by)
    )
    return statement.where(or_(rows.c.day < last, and_(rows.c.day == last, later)))


def _cursor(row: AnyRow) -> str:
    return encode_cursor(row.day, f"{row.agent_id} {row.model}\n{row.started_by}")


def _usage_sum(row: AnyRow) -> UsageSum:
    return UsageSum(
        day=date.fromordinal(row.day) if row.day else None,
        agent_id=AgentId(row.agent_id) if row.agent_id else None,
        model=row.model or None,
        started_by=row.started_by or None,
        model_calls=int(row.model_calls),
        input_tokens=int(row.input_tokens),
        output_tokens=int(row.output_tokens),
        cached_tokens=int(row.cached_tokens),
        reasoning_tokens=int(row.reasoning_tokens),
        cost_usd=Decimal(row.cost_nano_usd),
        unpriced_calls=int(row.unpriced_calls),
        estimated_calls=int(row.estimated_calls),
    )
