"""Entries and links of the audit chain exactly as stored: the input of seals and of their checks.

Values are not interpreted here, so that a damaged row is detected and does not fail the reader.
"""

from typing import Any, cast

from sqlalchemy import BigInteger, ColumnElement, Connection, Select, Text, bindparam, exists, select, type_coerce

from application.audit.ports import Place
from domain.audit.chain import SEALED_FIELDS, ChainHead, Entry, Link
from domain.audit.chain_check import StoredLink
from domain.ids import OrganizationId
from infrastructure.persistence.columns.paging import AnyRow
from infrastructure.persistence.engine.prepared import Prepared
from infrastructure.persistence.tables import audit_event, audit_head, audit_seal

RAW_AT = type_coerce(audit_event.c.at, BigInteger)
_RAW: dict[str, ColumnElement[Any]] = {"at": RAW_AT, "details": type_coerce(audit_event.c.details, Text)}
ENTRY: tuple[ColumnElement[Any], ...] = tuple(_RAW.get(name, audit_event.c[name]).label(name) for name in SEALED_FIELDS)
"""The columns of an entry, in the order in which they are sealed."""
IS_SEALED = exists().where(audit_seal.c.event_id == audit_event.c.id)

_LINK = (
    audit_seal.c.number,
    audit_seal.c.event_id.label("link_event_id"),
    audit_seal.c.key_id,
    audit_seal.c.seal,
    audit_seal.c.sealed_at,
)
LINKS = select(*_LINK, *ENTRY).where(
    audit_seal.c.organization_id == bindparam("of_organization"), audit_seal.c.number > bindparam("behind")
)
"""Links with their identifiers, to be joined and ordered."""
_all_links = (
    LINKS.select_from(audit_seal.outerjoin(audit_event, audit_event.c.id == audit_seal.c.event_id))
    .order_by(audit_seal.c.number)
    .limit(bindparam("at_most"))
)
_UNSEALED = select(*ENTRY).where(audit_event.c.organization_id == bindparam("of_organization"), ~IS_SEALED)
_unsealed = Prepared(
    _UNSEALED.where(bindparam("since", type_=BigInteger) <= RAW_AT)
    .order_by(audit_event.c.at, audit_event.c.id)
    .limit(bindparam("at_most"))
)
_head = select(audit_head).where(audit_head.c.organization_id == bindparam("of_organization"))
_locked_head = _head.with_for_update()


def links_behind(
    connection: Connection, organization_id: OrganizationId, number: int, limit: int
) -> tuple[StoredLink, ...]:
    """Links with their entries, in order."""
    parameters = {"of_organization": organization_id, "behind": number, "at_most": limit}
    return tuple(stored_link_of(row) for row in connection.execute(_all_links, parameters))


def unsealed_since(
    connection: Connection, organization_id: OrganizationId, since: Place, limit: int
) -> tuple[Entry, ...]:
    """Visible entries without a seal, oldest first."""
    parameters = {"of_organization": organization_id, "since": since.at, "at_most": limit}
    return tuple(_unsealed.ask(connection, parameters).all())


def stored_head(connection: Connection, organization_id: OrganizationId, *, lock: bool = False) -> ChainHead | None:
    """The head. `lock` excludes other changes until this transaction ends."""
    statement: Select[tuple[object, ...]] = _locked_head if lock else _head
    row = connection.execute(statement, {"of_organization": organization_id}).first()
    return None if row is None else ChainHead(**row._mapping)


def place_of(entry: Entry) -> Place:
    """The position of an entry by time; an entry without a readable time is first."""
    at = entry[SEALED_FIELDS.index("at")]
    return Place(at=at if isinstance(at, int) else 0, event_id=str(entry[0]))


def stored_link_of(row: AnyRow) -> StoredLink:
    """From a row of the link's columns, then the entry's."""
    number, event_id, key_id, seal, sealed_at = row[: len(_LINK)]
    link = Link(
        number=number,
        event_id=str(event_id),
        key_id=str(key_id),
        seal=str(seal),
        sealed_at=sealed_at if isinstance(sealed_at, int) else -1,
    )
    entry = cast(Entry, tuple(row[len(_LINK) :]))
    return StoredLink(link=link, entry=None if entry[0] is None else entry)
