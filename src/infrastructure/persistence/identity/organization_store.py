"""Organizations and their settings in SQL."""

from sqlalchemy import Connection, bindparam, select, update

from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.errors import existing, require_version
from domain.identity.api_key import ApiKey
from domain.identity.organization import Organization
from domain.ids import OrganizationId
from infrastructure.persistence.audit.rows import record
from infrastructure.persistence.columns.paging import newest_page
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.identity.organization_rows import changed_row, organization_of
from infrastructure.persistence.identity.store import add_organization, insert_key
from infrastructure.persistence.tables import organization

_get = select(organization).where(organization.c.id == bindparam("organization_id"))
_first = select(organization).order_by(organization.c.created_at, organization.c.id).limit(1)
_lock = (
    select(organization.c.version)
    .where(organization.c.id == bindparam("organization_id"))
    .with_for_update(key_share=True)
)
_change = update(organization).where(organization.c.id == bindparam("of_organization"))


class SqlOrganizationStore:
    """The `OrganizationStore` port."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def get(self, organization_id: OrganizationId) -> Organization | None:
        wanted = {"organization_id": organization_id}
        row = await self._database.read(
            lambda connection: connection.execute(_get, wanted).first(), scope=organization_id
        )
        return None if row is None else organization_of(row)

    async def first(self) -> Organization | None:
        row = await self._database.read(lambda connection: connection.execute(_first).first(), scope=SYSTEM)
        return None if row is None else organization_of(row)

    async def page(self, request: PageRequest) -> Page[Organization]:
        return await self._database.read(
            newest_page(select(organization), request, organization.c, organization_of), scope=SYSTEM
        )

    async def add(self, new: Organization, key: ApiKey, audit: tuple[AuditEvent, ...]) -> None:

        def unit(connection: Connection) -> None:
            add_organization(connection, new)
            insert_key(connection, key)
            record(connection, *audit)

        await self._database.write(unit, scope=SYSTEM)

    async def add_key(self, key: ApiKey, audit: tuple[AuditEvent, ...]) -> None:

        def unit(connection: Connection) -> None:
            insert_key(connection, key)
            record(connection, *audit)

        await self._database.write(unit, scope=SYSTEM)

    async def save(self, changed: Organization, *, expected_version: int, audit: tuple[AuditEvent, ...]) -> None:

        def unit(connection: Connection) -> None:
            stored = existing(
                connection.execute(_lock, {"organization_id": changed.id}).scalar_one_or_none(),
                "organization",
                changed.id,
            )
            require_version("organization", stored, expected=expected_version)
            connection.execute(_change, {"of_organization": changed.id, **changed_row(changed)})
            record(connection, *audit)

        # Changes by a platform key are also in the audit trail of the key's organization.
        is_own = all(entry.organization_id == changed.id for entry in audit)
        await self._database.write(unit, scope=changed.id if is_own else SYSTEM)
