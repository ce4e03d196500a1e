"""Sealing the audit trail in SQL: extending and pruning chains, each under the lock of its
organization's head."""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import BigInteger, Connection, bindparam, delete, exists, func, select, tuple_

from application.audit.ports import Place, PruneEntry, Scanned, Sealed, Waiting
from domain.audit.chain import ChainHead, ChainKeys, Link, continuable, extended, first_head, pruned
from domain.audit.chain_check import ChainCheck, leading
from domain.errors import ServiceError, conflict
from domain.ids import OrganizationId
from infrastructure.persistence.audit.entries import (
    IS_SEALED,
    RAW_AT,
    links_behind,
    place_of,
    stored_head,
    unsealed_since,
)
from infrastructure.persistence.audit.rows import record
from infrastructure.persistence.columns.column_types import micros
from infrastructure.persistence.columns.fields import row_fields
from infrastructure.persistence.columns.upsert import upsert
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.engine.prepared import prepared_insert
from infrastructure.persistence.tables import audit_event, audit_head, audit_seal, organization
from infrastructure.persistence.usage.tool_rows import Sums, add_calls_of_tools, sums_of_calls

_organizations = select(organization.c.id).order_by(organization.c.id)
# Reading the start of sealing here avoids another scan of sealed entries.
_oldest_unsealed = (
    select(RAW_AT)
    .where(
        audit_event.c.organization_id == organization.c.id,
        bindparam("since", type_=BigInteger) <= RAW_AT,
        ~IS_SEALED,
    )
    .order_by(audit_event.c.at, audit_event.c.id)
    .limit(1)
    .scalar_subquery()
)
_under_another_key = exists().where(
    audit_head.c.organization_id == organization.c.id, audit_head.c.key_id != bindparam("current_key")
)
_waiting = _organizations.add_columns(_oldest_unsealed, _under_another_key)
_scan = (
    select(RAW_AT, audit_event.c.id, IS_SEALED)
    .where(
        audit_event.c.organization_id == bindparam("of_organization"),
        tuple_(audit_event.c.at, audit_event.c.id)
        > tuple_(bindparam("after_at", type_=BigInteger), bindparam("after_id", type_=audit_event.c.id.type)),
    )
    .order_by(audit_event.c.at, audit_event.c.id)
    .limit(bindparam("at_most"))
)
_insert_seal = prepared_insert(audit_seal)
_first_head = upsert(audit_head).on_conflict_do_nothing(index_elements=["organization_id"])
_save_head = audit_head.update().where(audit_head.c.organization_id == bindparam("of_organization"))
_last_key = (
    select(audit_seal.c.key_id)
    .where(audit_seal.c.organization_id == bindparam("of_organization"))
    .order_by(audit_seal.c.number.desc())
    .limit(1)
)
_any_seal = select(func.count()).select_from(
    select(audit_seal.c.number).where(audit_seal.c.organization_id == bindparam("of_organization")).limit(1).subquery()
)
_forget_entry = delete(audit_event).where(audit_event.c.id == bindparam("of_event"))
_forget_seals = delete(audit_seal).where(
    audit_seal.c.organization_id == bindparam("of_organization"), audit_seal.c.number <= bindparam("through")
)
_chain_head = row_fields(ChainHead)
_link = row_fields(Link)


class _Extension(NamedTuple):
    """New rows of a chain with this head, the head after them, the position of the last entry, and
    the sums of the calls among the entries."""

    head: ChainHead
    rows: list[dict[str, object]]
    after: ChainHead
    last: Place | None
    calls: Sums


class SqlAuditSeals:
    """The `AuditSeals` port."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def waiting(self, since: Place, current_key: str) -> tuple[Waiting, ...]:
        wanted = {"since": since.at, "current_key": current_key}
        found = await self._database.read(lambda connection: connection.execute(_waiting, wanted).all(), scope=SYSTEM)
        return tuple(
            Waiting(organization_id=OrganizationId(one), since=since if oldest is None else Place(at=oldest))
            for one, oldest, under_another_key in found
            if oldest is not None or under_another_key
        )

    async def organizations(self) -> tuple[OrganizationId, ...]:
        found = await self._database.read(
            lambda connection: connection.execute(_organizations).scalars().all(), scope=SYSTEM
        )
        return tuple(OrganizationId(one) for one in found)

    async def scan(self, organization_id: OrganizationId, after: Place, limit: int) -> Scanned:
        wanted = {
            "of_organization": organization_id,
            "after_at": after.at,
            "after_id": after.event_id,
            "at_most": limit,
        }
        rows = await self._database.read(lambda connection: connection.execute(_scan, wanted).all(), scope=SYSTEM)
        places = [(place_of_row(at, event_id), bool(is_sealed)) for at, event_id, is_sealed in rows]
        return Scanned(
            unsealed=tuple(place for place, is_sealed in places if not is_sealed),
            next=places[-1][0] if len(places) == limit else None,
        )

    async def seal(
        self, organization_id: OrganizationId, since: Place, *, keys: ChainKeys, at: datetime, limit: int
    ) -> Sealed:
        """Seal visible entries. The seals are computed outside the writer, and computed again if
        the chain has changed: entries are immutable, and every sealing or removal changes the
        head."""

        def ready(connection: Connection, head: ChainHead) -> _Extension:
            entries = unsealed_since(connection, organization_id, since, limit)
            links, after = extended(head, entries, key=keys.current, sealed_at=micros(at))
            rows = [_row(organization_id, link) for link in links]
            return _Extension(head, rows, after, place_of(entries[-1]) if entries else None, sums_of_calls(entries))

        def looked_ahead(connection: Connection) -> _Extension | None:
            head = stored_head(connection, organization_id)
            return None if head is None else ready(connection, head)

        ahead = await self._database.read(looked_ahead, scope=SYSTEM)

        def unit(connection: Connection) -> Sealed:
            head = own_head(connection, organization_id, keys)
            extension = ahead if ahead is not None and ahead.head == head else ready(connection, head)
            if extension.rows:
                _insert_seal.run(connection, *extension.rows)
                add_calls_of_tools(connection, organization_id, extension.calls)
            if extension.after != head:
                save_head(connection, extension.after)
            return Sealed(count=len(extension.rows), last=extension.last)

        return await self._database.write(unit, scope=SYSTEM)

    async def prune(
        self,
        organization_id: OrganizationId,
        before: datetime,
        *,
        keys: ChainKeys,
        audit: PruneEntry,
        limit: int,
        through: int | None = None,
    ) -> int:

        def unit(connection: Connection) -> int:
            if stored_head(connection, organization_id) is None:
                return 0
            head = own_head(connection, organization_id, keys)
            old = leading(links_behind(connection, organization_id, head.pruned_through, limit), micros(before))
            old = tuple(stored for stored in old if through is None or stored.link.number <= through)
            if not old:
                return 0
            check = ChainCheck(keys.known, head.pruned_through, head.pruned_seal)
            # A seal under an unknown key is unchecked: it must not permit the removal of entries.
            if check.take(old) is not None or check.unknown:
                raise broken(organization_id)
            last = old[-1].link
            connection.execute(_forget_entry, [{"of_event": stored.link.event_id} for stored in old])
            connection.execute(_forget_seals, {"of_organization": organization_id, "through": last.number})
            save_head(connection, pruned(head, last, key=keys.current))
            record(connection, audit(last.number, len(old)))
            return len(old)

        return await self._database.write(unit, scope=SYSTEM)


def place_of_row(at: object, event_id: str) -> Place:
    return Place(at=at if isinstance(at, int) else 0, event_id=event_id)


def own_head(connection: Connection, organization_id: OrganizationId, keys: ChainKeys) -> ChainHead:
    """The head, locked and verified. Raises CONFLICT `audit_chain_broken`."""
    wanted = {"of_organization": organization_id}
    head = stored_head(connection, organization_id, lock=True)
    if head is None:
        first = first_head(keys.current, organization_id)
        created = connection.execute(_first_head, _chain_head.write(first)).rowcount == 1
        if created and connection.execute(_any_seal, wanted).scalar_one():
            raise broken(organization_id)
        head = stored_head(connection, organization_id, lock=True) or first

    def last_key_id() -> str | None:
        return connection.execute(_last_key, wanted).scalar_one_or_none()

    if not continuable(head, keys, last_key_id):
        raise broken(organization_id)
    return head


def save_head(connection: Connection, head: ChainHead) -> None:
    values = _chain_head.write(head)
    connection.execute(_save_head, {"of_organization": values.pop("organization_id"), **values})


def _row(organization_id: OrganizationId, link: Link) -> dict[str, object]:
    return {"organization_id": organization_id, **_link.write(link)}


def broken(organization_id: OrganizationId) -> ServiceError:
    return conflict(
        "audit_chain_broken",
        f"The audit chain of {organization_id} has been changed and is not continued: see `audit verify`.",
        organization_id=organization_id,
    )
