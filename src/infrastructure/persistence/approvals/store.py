"""Approvals as the API sees them, and timers, in SQL."""

from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, func, select, tuple_, update

from application.approvals.ports import ApprovalFilter, ConsentChange
from application.system.pages import Page, PageRequest
from domain.approvals.approval import Approval, ApprovalState
from domain.approvals.timer import Timer
from domain.errors import existing
from domain.ids import ApprovalId, OrganizationId, RunId, TimerId
from domain.teams import Teams
from infrastructure.persistence.approvals.rows import approval_of, consents_of, timer_of
from infrastructure.persistence.audit.rows import record
from infrastructure.persistence.columns.paging import newest_page
from infrastructure.persistence.columns.teams import seen_by
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.tables import approval, gateway_session, timer
from infrastructure.persistence.tables.owners import team_of_run, team_of_thread

_of_organization = select(approval).where(approval.c.organization_id == bindparam("of_organization"))
_get = _of_organization.where(approval.c.id == bindparam("approval_id"))
_lock = _get.with_for_update()
# Of a run, or of the thread of a gateway session.
_owner = func.coalesce(
    team_of_run(approval.c.run_id),
    select(team_of_thread(gateway_session.c.thread_id))
    .where(gateway_session.c.id == approval.c.gateway_session_id)
    .scalar_subquery(),
)
_consent = (
    update(approval)
    .where(approval.c.id == bindparam("about"))
    .values(consents=bindparam("given", type_=approval.c.consents.type))
)
_of_run = _of_organization.where(approval.c.run_id == bindparam("of_run")).order_by(
    approval.c.created_at, approval.c.id
)
# Literal in the statement, so that the partial index over pending rows is used.
_is_pending = approval.c.state == bindparam("pending", ApprovalState.PENDING.value, literal_execute=True)
_next_due = select(func.min(timer.c.due_at))
_due = (
    select(timer)
    .where(timer.c.due_at <= bindparam("moment"))
    .order_by(timer.c.due_at, timer.c.id)
    .limit(bindparam("limit"))
)
_due_after = _due.where(
    tuple_(timer.c.due_at, timer.c.id)
    > tuple_(
        bindparam("after_moment", type_=timer.c.due_at.type),
        bindparam("after_id", type_=timer.c.id.type),
    )
)
_remove = delete(timer).where(timer.c.id == bindparam("timer_id"))


class SqlApprovalStore:
    """The `ApprovalStore` port."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def get(
        self, organization_id: OrganizationId, approval_id: ApprovalId, *, teams: Teams = None
    ) -> Approval | None:
        wanted = {"of_organization": organization_id, "approval_id": approval_id}
        statement = _get.where(*seen_by(teams, _owner))
        row = await self._database.read(
            lambda connection: connection.execute(statement, wanted).first(), scope=organization_id
        )
        return None if row is None else approval_of(row)

    async def page(
        self, organization_id: OrganizationId, wanted: ApprovalFilter, request: PageRequest
    ) -> Page[Approval]:
        statement = select(approval).where(approval.c.organization_id == organization_id)
        if wanted.run_id is not None:
            statement = statement.where(approval.c.run_id == wanted.run_id)
        if wanted.state is ApprovalState.PENDING:
            statement = statement.where(_is_pending)
        elif wanted.state is not None:
            statement = statement.where(approval.c.state == wanted.state.value)
        return await self._database.read(
            newest_page(statement, request, approval.c, approval_of, owner=_owner), scope=organization_id
        )

    async def of_run(self, organization_id: OrganizationId, run_id: RunId) -> tuple[Approval, ...]:
        wanted = {"of_organization": organization_id, "of_run": run_id}
        return await self._database.read(
            lambda connection: tuple(approval_of(row) for row in connection.execute(_of_run, wanted)),
            scope=organization_id,
        )

    async def consent(
        self, organization_id: OrganizationId, approval_id: ApprovalId, decide: ConsentChange
    ) -> Approval:
        wanted = {"of_organization": organization_id, "approval_id": approval_id}

        def unit(connection: Connection) -> Approval:
            stored = approval_of(existing(connection.execute(_lock, wanted).first(), "approval", approval_id))
            decided = decide(stored)
            if decided is None:
                return stored
            changed, audit = decided
            connection.execute(_consent, {"about": approval_id, "given": consents_of(changed)})
            record(connection, audit)
            return changed

        return await self._database.write(unit, scope=organization_id)


class SqlTimerStore:
    """The `TimerStore` port."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def next_due(self) -> datetime | None:

        def unit(connection: Connection) -> datetime | None:
            moment: datetime | None = connection.execute(_next_due).scalar_one()
            return moment

        return await self._database.read(unit, scope=SYSTEM)

    async def due(self, *, at: datetime, limit: int, after: Timer | None = None) -> tuple[Timer, ...]:
        statement, wanted = _due, {"moment": at, "limit": limit}
        if after is not None:
            statement, wanted = _due_after, {**wanted, "after_moment": after.due_at, "after_id": after.id}
        return await self._database.read(
            lambda connection: tuple(timer_of(row) for row in connection.execute(statement, wanted)), scope=SYSTEM
        )

    async def remove(self, timer_id: TimerId) -> None:

        def unit(connection: Connection) -> None:
            connection.execute(_remove, {"timer_id": timer_id})

        await self._database.write(unit, scope=SYSTEM)
