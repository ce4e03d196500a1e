"""Impersonations in SQL."""

from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, select, update

from application.identity.key_validity import access_topic
from application.system.wakeups import Wakeups
from domain.audit.event import AuditEvent
from domain.identity.impersonation import SHOWN_FOR, Impersonation
from domain.ids import ImpersonationId, OrganizationId, UserId
from infrastructure.persistence.audit.rows import record
from infrastructure.persistence.columns.fields import row_fields
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.tables import impersonation

_one = (
    impersonation.c.organization_id == bindparam("of_organization"),
    impersonation.c.id == bindparam("of_impersonation"),
)
_get = select(impersonation).where(*_one)
_by_hash = select(impersonation).where(impersonation.c.token_hash == bindparam("token_hash"))
_insert = impersonation.insert()
_end = update(impersonation).where(
    *_one, impersonation.c.ended_at.is_(None), impersonation.c.expires_at > bindparam("moment")
)
_of_user = (
    select(impersonation)
    .where(
        impersonation.c.organization_id == bindparam("of_organization"),
        impersonation.c.user_id == bindparam("of_user"),
        impersonation.c.created_at >= bindparam("since"),
    )
    .order_by(impersonation.c.created_at.desc(), impersonation.c.id.desc())
)
_delete_old = delete(impersonation).where(
    impersonation.c.organization_id == bindparam("of_organization"),
    impersonation.c.created_at < bindparam("moment"),
)
_impersonation = row_fields(Impersonation)


class SqlImpersonationStore:
    """The `ImpersonationStore` port. The end of one wakes who watches as the user."""

    def __init__(self, *, database: Database, wakeups: Wakeups) -> None:
        self._database = database
        self._wakeups = wakeups

    async def add(self, begun: Impersonation, audit: AuditEvent) -> None:
        wanted = {"of_organization": begun.organization_id, "moment": begun.created_at - SHOWN_FOR}

        def unit(connection: Connection) -> None:
            connection.execute(_delete_old, wanted)
            connection.execute(_insert, _impersonation.write(begun))
            record(connection, audit)

        await self._database.write(unit, scope=begun.organization_id)

    async def by_hash(self, token_hash: str) -> Impersonation | None:
        row = await self._database.read(
            lambda connection: connection.execute(_by_hash, {"token_hash": token_hash}).first(), scope=SYSTEM
        )
        return None if row is None else _impersonation.of_row(row)

    async def get(self, organization_id: OrganizationId, impersonation_id: ImpersonationId) -> Impersonation | None:
        wanted = {"of_organization": organization_id, "of_impersonation": impersonation_id}
        row = await self._database.read(
            lambda connection: connection.execute(_get, wanted).first(), scope=organization_id
        )
        return None if row is None else _impersonation.of_row(row)

    async def of_user(
        self, organization_id: OrganizationId, user_id: UserId, *, since: datetime
    ) -> tuple[Impersonation, ...]:
        wanted = {"of_organization": organization_id, "of_user": user_id, "since": since}
        rows = await self._database.read(
            lambda connection: connection.execute(_of_user, wanted).all(), scope=organization_id
        )
        return tuple(_impersonation.of_row(row) for row in rows)

    async def end(self, organization_id: OrganizationId, impersonation_id: ImpersonationId, audit: AuditEvent) -> bool:
        wanted = {"of_organization": organization_id, "of_impersonation": impersonation_id, "moment": audit.at}

        def unit(connection: Connection) -> bool:
            if connection.execute(_end.values(ended_at=audit.at), wanted).rowcount == 0:
                return False
            record(connection, audit)
            return True

        return await self._database.write(
            unit, scope=organization_id, after_commit=lambda _: self._wakeups.wake(access_topic(organization_id))
        )
