"""Organizations and API keys in SQL."""

from collections.abc import Collection, Mapping
from datetime import datetime

from sqlalchemy import Connection, bindparam, or_, select, text, update

from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.identity.api_key import ApiKey
from domain.identity.organization import Organization
from domain.ids import ApiKeyId, OrganizationId, UserId
from domain.rate_limit import RateLimit
from infrastructure.persistence.audit.rows import record, recorded_change
from infrastructure.persistence.columns.fields import row_fields
from infrastructure.persistence.columns.paging import AnyRow, newest_page
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.identity.organization_rows import organization_row
from infrastructure.persistence.tables import api_key, organization

_any_organization = select(organization.c.id).limit(1)
_of_organization = select(api_key).where(
    api_key.c.organization_id == bindparam("of_organization"), api_key.c.id == bindparam("key_id")
)
_creators = select(api_key.c.id, api_key.c.person_id).where(
    api_key.c.organization_id == bindparam("of_organization"),
    api_key.c.id.in_(bindparam("key_ids", expanding=True)),
    api_key.c.person_id.is_not(None),
)
_used = (
    update(api_key)
    .where(
        api_key.c.id == bindparam("key_id"),
        or_(api_key.c.last_used_at.is_(None), api_key.c.last_used_at < bindparam("moment")),
    )
    .values(last_used_at=bindparam("moment"))
)
_by_hash = select(api_key).where(api_key.c.token_hash == bindparam("token_hash"))
_revoke = (
    update(api_key)
    .where(
        api_key.c.organization_id == bindparam("of_organization"),
        api_key.c.id == bindparam("key_id"),
        api_key.c.revoked_at.is_(None),
    )
    .values(revoked_at=bindparam("moment"))
)
_insert_organization = organization.insert()
_insert_key = api_key.insert()
_key = row_fields(ApiKey, without={"rate_limit"})
# Of several processes that start on an empty database, one creates the first organization.
_one_bootstrap_at_a_time = text("LOCK TABLE organization IN SHARE ROW EXCLUSIVE MODE")


class SqlIdentityStore:
    """The `IdentityStore` port."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def bootstrap(self, first: Organization, key: ApiKey) -> bool:

        def unit(connection: Connection) -> bool:
            if connection.dialect.name != "sqlite":
                connection.execute(_one_bootstrap_at_a_time)
            if connection.execute(_any_organization).first() is not None:
                return False
            add_organization(connection, first)
            insert_key(connection, key)
            return True

        return await self._database.write(unit, scope=SYSTEM)

    async def add_key(self, key: ApiKey, audit: AuditEvent) -> None:

        def unit(connection: Connection) -> None:
            insert_key(connection, key)
            record(connection, audit)

        await self._database.write(unit, scope=key.organization_id)

    async def revoke_key(self, organization_id: OrganizationId, key_id: ApiKeyId, audit: AuditEvent) -> bool:
        wanted = {"of_organization": organization_id, "key_id": key_id, "moment": audit.at}
        return await self._database.write(recorded_change(_revoke, wanted, audit), scope=organization_id)

    async def record_uses(self, uses: Mapping[ApiKeyId, datetime]) -> None:
        # In one order everywhere, to avoid deadlocks between processes.
        rows = [{"key_id": key_id, "moment": uses[key_id]} for key_id in sorted(uses)]

        def unit(connection: Connection) -> None:
            connection.execute(_used, rows)

        await self._database.write(unit, scope=SYSTEM)

    async def key(self, organization_id: OrganizationId, key_id: ApiKeyId) -> ApiKey | None:
        wanted = {"of_organization": organization_id, "key_id": key_id}
        row = await self._database.read(
            lambda connection: connection.execute(_of_organization, wanted).first(), scope=organization_id
        )
        return None if row is None else _key_of(row)

    async def creators(
        self, organization_id: OrganizationId, key_ids: Collection[ApiKeyId]
    ) -> Mapping[ApiKeyId, UserId]:
        if not key_ids:
            return {}
        wanted = {"of_organization": organization_id, "key_ids": list(key_ids)}
        rows = await self._database.read(
            lambda connection: connection.execute(_creators, wanted).all(), scope=organization_id
        )
        return {ApiKeyId(row.id): UserId(row.person_id) for row in rows}

    async def key_by_hash(self, token_hash: str) -> ApiKey | None:

        def unit(connection: Connection) -> ApiKey | None:
            row = connection.execute(_by_hash, {"token_hash": token_hash}).first()
            return None if row is None else _key_of(row)

        return await self._database.read(unit, scope=SYSTEM)

    async def keys(self, organization_id: OrganizationId, request: PageRequest) -> Page[ApiKey]:
        statement = select(api_key).where(api_key.c.organization_id == organization_id)
        return await self._database.read(newest_page(statement, request, api_key.c, _key_of), scope=organization_id)


def add_organization(connection: Connection, new: Organization) -> None:
    connection.execute(_insert_organization, organization_row(new))


def insert_key(connection: Connection, key: ApiKey) -> None:
    connection.execute(_insert_key, _key_row(key))


def _key_row(key: ApiKey) -> dict[str, object]:
    limit = key.rate_limit
    return {
        **_key.write(key),
        "rate_calls": None if limit is None else limit.calls,
        "rate_per_s": None if limit is None else limit.per_s,
    }


def _key_of(row: AnyRow) -> ApiKey:
    limit = None if row.rate_calls is None else RateLimit(calls=row.rate_calls, per_s=row.rate_per_s)
    return _key.of_row(row, rate_limit=limit)
