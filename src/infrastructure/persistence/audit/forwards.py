"""How far audit chains were sent to their receiver, in SQL."""

from datetime import datetime

from sqlalchemy import Connection, bindparam, case, func, select

from application.audit.ports import Unsent
from domain.ids import OrganizationId
from infrastructure.persistence.columns.column_types import moment_of
from infrastructure.persistence.columns.upsert import upsert
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.tables import audit_forward, audit_head, audit_seal

_sent = func.coalesce(audit_forward.c.number, 0)
_after = case((_sent < audit_head.c.pruned_through, audit_head.c.pruned_through), else_=_sent)
# Seals and not numbers alone: a missing seal must not hold back the entries after it.
_since = (
    select(audit_seal.c.sealed_at)
    .where(audit_seal.c.organization_id == audit_head.c.organization_id, audit_seal.c.number > _after)
    .order_by(audit_seal.c.number)
    .limit(1)
    .scalar_subquery()
)
_heads = (
    select(
        audit_head.c.organization_id,
        audit_forward.c.number.label("sent"),
        _after.label("after"),
        _since.label("since"),
    )
    .select_from(audit_head.outerjoin(audit_forward, audit_forward.c.organization_id == audit_head.c.organization_id))
    .where(audit_head.c.number > _after)
    .subquery()
)
_unsent = (
    select(_heads)
    .where(_heads.c.since.is_not(None))
    .order_by(_heads.c.since, _heads.c.organization_id)
    .limit(bindparam("at_most"))
)
_new = upsert(audit_forward)
_advance = _new.on_conflict_do_update(
    index_elements=["organization_id"],
    set_={"number": _new.excluded.number, "sent_at": _new.excluded.sent_at},
    where=audit_forward.c.number < _new.excluded.number,
)


class SqlAuditForwards:
    """The `AuditForwards` port."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def unsent(self, limit: int) -> tuple[Unsent, ...]:
        rows = await self._database.read(
            lambda connection: connection.execute(_unsent, {"at_most": limit}).all(), scope=SYSTEM
        )
        return tuple(
            Unsent(
                organization_id=OrganizationId(row.organization_id),
                after=row.after,
                since=moment_of(row.since),
                lost=0 if row.sent is None else row.after - row.sent,
            )
            for row in rows
        )

    async def sent(self, organization_id: OrganizationId, number: int, at: datetime) -> None:
        row = {"organization_id": organization_id, "number": number, "sent_at": at}

        def unit(connection: Connection) -> None:
            connection.execute(_advance, row)

        await self._database.write(unit, scope=SYSTEM)
