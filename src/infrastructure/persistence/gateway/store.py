"""Gateway sessions in SQL."""

from dataclasses import replace
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, Table, Text, and_, bindparam, cast, func, not_, or_, select, update

from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.gateway.session import GatewaySession, ToolNames
from domain.identity.permission import Permission
from domain.identity.role import Role
from domain.identity.user import UserStatus
from domain.ids import AgentId, ApiKeyId, GatewaySessionId, OrganizationId, RunId, ThreadId, UserId, WorkflowRunId
from domain.rate_limit import RateLimit
from domain.teams import Teams
from domain.threads.thread import Thread
from domain.tools.wired import WiredNodes
from infrastructure.persistence.approvals.rows import cancel_approvals
from infrastructure.persistence.audit.rows import record
from infrastructure.persistence.columns.paging import AnyRow, newest_page
from infrastructure.persistence.columns.teams import seen_by
from infrastructure.persistence.columns.upsert import upsert
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.tables import (
    api_key,
    custom_role,
    gateway_session,
    identity_provider,
    run,
    thread,
    user_account,
    workflow_run,
)
from infrastructure.persistence.tables.owners import team_of_thread

_insert = gateway_session.insert()
_insert_unless_there = upsert(gateway_session).on_conflict_do_nothing(index_elements=["id"])
_insert_thread = upsert(thread).on_conflict_do_nothing(index_elements=["id"])
_ended_at = func.coalesce(gateway_session.c.revoked_at, run.c.finished_at, workflow_run.c.finished_at).label("ended_at")
_team = team_of_thread(gateway_session.c.thread_id)
_with_end = select(
    gateway_session,
    _ended_at,
    api_key.c.rate_calls.label("key_calls"),
    api_key.c.rate_per_s.label("key_per_s"),
    api_key.c.person_id.label("key_of"),
    _team.label("team"),
).select_from(
    gateway_session.outerjoin(run, run.c.id == gateway_session.c.run_id)
    .outerjoin(workflow_run, workflow_run.c.id == gateway_session.c.workflow_run_id)
    .outerjoin(api_key, api_key.c.id == gateway_session.c.created_by)
)
_get = _with_end.where(
    gateway_session.c.organization_id == bindparam("of_organization"), gateway_session.c.id == bindparam("session_id")
)


def _permits(holder: Table, permission: Permission) -> ColumnElement[bool]:
    """Whether the role of a user or a key has the permission."""
    return or_(
        holder.c.role.in_([role.value for role in Role if permission in role.permissions]),
        select(custom_role.c.name)
        .where(
            custom_role.c.organization_id == holder.c.organization_id,
            custom_role.c.name == holder.c.custom_role,
            cast(custom_role.c.permissions, Text).contains(f'"{permission.value}"'),
        )
        .exists(),
    )


_of_user = select(user_account.c.id).where(user_account.c.id == gateway_session.c.created_by)
# What a person granted or opened ends with the person's access.
_admitted = _of_user.join(identity_provider, identity_provider.c.id == user_account.c.provider_id).where(
    user_account.c.status == UserStatus.ACTIVE.value
)
_granted = _admitted.where(_permits(user_account, Permission.RUNS_START)).exists()
_opened = or_(
    _admitted.where(_permits(user_account, Permission.GATEWAY_OPEN)).exists(),
    and_(not_(_of_user.exists()), or_(api_key.c.id.is_(None), _permits(api_key, Permission.GATEWAY_OPEN))),
)
_by_hash = _with_end.where(
    gateway_session.c.token_hash == bindparam("token_hash"),
    or_(and_(gateway_session.c.client_id.is_not(None), _granted), and_(gateway_session.c.client_id.is_(None), _opened)),
)
_open_session = (
    gateway_session.c.organization_id == bindparam("of_organization"),
    gateway_session.c.id == bindparam("session_id"),
    gateway_session.c.token_hash.is_not(None),
    gateway_session.c.revoked_at.is_(None),
    gateway_session.c.expires_at > bindparam("moment", type_=gateway_session.c.expires_at.type),
)
_open_of_key = (
    select(gateway_session.c.id)
    .select_from(
        gateway_session.outerjoin(run, run.c.id == gateway_session.c.run_id).outerjoin(
            workflow_run, workflow_run.c.id == gateway_session.c.workflow_run_id
        )
    )
    .where(
        gateway_session.c.organization_id == bindparam("of_organization"),
        gateway_session.c.created_by == bindparam("key_id"),
        gateway_session.c.token_hash.is_not(None),
        _ended_at.is_(None),
        gateway_session.c.expires_at > bindparam("moment", type_=gateway_session.c.expires_at.type),
    )
    .limit(bindparam("at_most"))
)
_revoke = update(gateway_session).where(*_open_session).values(revoked_at=bindparam("moment"))


class SqlGatewaySessionStore:
    """The `GatewaySessionStore` port."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def add(self, session: GatewaySession, audit: AuditEvent, *, thread: Thread | None) -> None:

        def unit(connection: Connection) -> None:
            insert_session(connection, session, thread)
            record(connection, audit)

        await self._database.write(unit, scope=session.organization_id)

    async def keep(self, session: GatewaySession, *, thread: Thread) -> GatewaySession:
        wanted = {"of_organization": session.organization_id, "session_id": session.id}

        def unit(connection: Connection) -> GatewaySession:
            connection.execute(_insert_thread, _thread_row(thread))
            connection.execute(_insert_unless_there, _row(session))
            return _as_read(connection.execute(_get, wanted).one())

        return await self._database.write(unit, scope=session.organization_id)

    async def get(
        self, organization_id: OrganizationId, session_id: GatewaySessionId, *, teams: Teams = None
    ) -> GatewaySession | None:
        wanted = {"of_organization": organization_id, "session_id": session_id}
        statement = _get.where(*seen_by(teams, _team))

        def unit(connection: Connection) -> GatewaySession | None:
            row = connection.execute(statement, wanted).first()
            return None if row is None else _as_read(row)

        return await self._database.read(unit, scope=organization_id)

    async def by_token_hash(self, token_hash: str) -> GatewaySession | None:

        def unit(connection: Connection) -> GatewaySession | None:
            row = connection.execute(_by_hash, {"token_hash": token_hash}).first()
            return None if row is None else _as_read(row)

        return await self._database.read(unit, scope=SYSTEM)

    async def page(
        self, organization_id: OrganizationId, request: PageRequest, *, created_by: ApiKeyId | None = None
    ) -> Page[GatewaySession]:
        statement = _with_end.where(
            gateway_session.c.organization_id == organization_id, gateway_session.c.token_hash.is_not(None)
        )
        if created_by is not None:
            statement = statement.where(gateway_session.c.created_by == created_by)
        return await self._database.read(
            newest_page(statement, request, gateway_session.c, _as_read, owner=_team), scope=organization_id
        )

    async def open_of_key(
        self, organization_id: OrganizationId, key_id: ApiKeyId, *, at: datetime, limit: int
    ) -> tuple[GatewaySessionId, ...]:
        wanted = {"of_organization": organization_id, "key_id": key_id, "moment": at, "at_most": limit}
        found = await self._database.read(
            lambda connection: connection.execute(_open_of_key, wanted).scalars().all(), scope=organization_id
        )
        return tuple(GatewaySessionId(session_id) for session_id in found)

    async def revoke(self, organization_id: OrganizationId, session_id: GatewaySessionId, audit: AuditEvent) -> bool:
        wanted = {"of_organization": organization_id, "session_id": session_id}

        def unit(connection: Connection) -> bool:
            row = connection.execute(_get, wanted).first()
            if row is None or row.ended_at is not None:
                return False
            if connection.execute(_revoke, {**wanted, "moment": audit.at}).rowcount == 0:
                return False
            cancel_approvals(connection, session_id, at=audit.at)
            record(connection, audit)
            return True

        return await self._database.write(unit, scope=organization_id)


def insert_session(connection: Connection, session: GatewaySession, thread: Thread | None) -> None:
    """Store a new session, with its thread if that is its own."""
    if thread is not None:
        connection.execute(_insert_thread, _thread_row(thread))
    connection.execute(_insert, _row(session))


def _thread_row(new: Thread) -> dict[str, object]:
    return {
        "id": new.id,
        "organization_id": new.organization_id,
        "metadata": new.metadata,
        "created_at": new.created_at,
        "team": new.team,
    }


def _row(session: GatewaySession) -> dict[str, object]:
    return {
        "id": session.id,
        "organization_id": session.organization_id,
        "agent_id": session.agent_id,
        "thread_id": session.thread_id,
        "run_id": session.run_id,
        "workflow_run_id": None if session.wired is None else session.wired.workflow_run_id,
        "node_ids": None if session.wired is None else list(session.wired.node_ids),
        "token_hash": session.token_hash,
        "names": session.names.value,
        "created_by": session.created_by,
        "created_at": session.created_at,
        "expires_at": session.expires_at,
        "revoked_at": session.revoked_at,
        "client_id": session.client_id,
        "client_name": session.client_name,
        "token_expires_at": session.token_expires_at,
    }


def _as_read(row: AnyRow) -> GatewaySession:
    session = session_of(row) if row.team is None else replace(session_of(row), team=row.team)
    if row.key_calls is None and row.key_of is None:
        return session
    limit = None if row.key_calls is None else RateLimit(calls=row.key_calls, per_s=row.key_per_s)
    return replace(session, rate_limit=limit, key_of=None if row.key_of is None else UserId(row.key_of))


def session_of(row: AnyRow) -> GatewaySession:
    """From a row of `gateway_session` with `ended_at`, if it ended early."""
    return GatewaySession(
        id=GatewaySessionId(row.id),
        organization_id=OrganizationId(row.organization_id),
        agent_id=AgentId(row.agent_id),
        thread_id=ThreadId(row.thread_id),
        run_id=None if row.run_id is None else RunId(row.run_id),
        wired=_wired_of(row),
        token_hash=row.token_hash,
        names=ToolNames(row.names),
        created_by=ApiKeyId(row.created_by),
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.ended_at,
        client_id=row.client_id,
        client_name=row.client_name,
        token_expires_at=row.token_expires_at,
    )


def _wired_of(row: AnyRow) -> WiredNodes | None:
    if row.workflow_run_id is None:
        return None
    return WiredNodes(workflow_run_id=WorkflowRunId(row.workflow_run_id), node_ids=tuple(row.node_ids))
