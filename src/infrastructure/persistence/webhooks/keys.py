"""Keys that sign webhooks, in SQL; stored encrypted only."""

from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, or_, select, update

from domain.audit.event import AuditEvent
from domain.ids import OrganizationId
from domain.webhooks.signing import WebhookKey
from infrastructure.persistence.audit.rows import record
from infrastructure.persistence.columns.paging import AnyRow
from infrastructure.persistence.columns.upsert import upsert
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.secrets.box import SecretBox
from infrastructure.persistence.tables import organization, webhook_key

_of = webhook_key.c.organization_id == bindparam("of_organization")
_in_force = (
    select(webhook_key)
    .where(_of, or_(webhook_key.c.expires_at.is_(None), webhook_key.c.expires_at > bindparam("moment")))
    .order_by(webhook_key.c.created_at.desc(), webhook_key.c.id.desc())
)
# The unique index over keys without an end decides between two first keys.
_add_first = upsert(webhook_key).on_conflict_do_nothing()
_insert = webhook_key.insert()
_forget_older = delete(webhook_key).where(_of, webhook_key.c.expires_at.is_not(None))
_end_present = update(webhook_key).where(_of, webhook_key.c.expires_at.is_(None)).values(expires_at=bindparam("end"))
_lock = (
    select(organization.c.id).where(organization.c.id == bindparam("of_organization")).with_for_update(key_share=True)
)


class SqlWebhookKeyStore:
    """The `WebhookKeyStore` port."""

    def __init__(self, *, database: Database, box: SecretBox) -> None:
        self._database = database
        self._box = box

    async def in_force(self, organization_id: OrganizationId, *, at: datetime) -> tuple[WebhookKey, ...]:
        wanted = {"of_organization": organization_id, "moment": at}
        rows = await self._database.read(
            lambda connection: connection.execute(_in_force, wanted).all(), scope=organization_id
        )
        return tuple(map(self._key_of, rows))

    async def add_first(self, key: WebhookKey) -> None:
        row = self._row(key)

        def unit(connection: Connection) -> None:
            connection.execute(_lock, {"of_organization": key.organization_id})  # excludes a concurrent `replace`
            connection.execute(_add_first, row)

        await self._database.write(unit, scope=key.organization_id)

    async def replace(self, key: WebhookKey, *, former_until: datetime, audit: AuditEvent) -> bool:
        of_organization = {"of_organization": key.organization_id}
        row = self._row(key)

        def unit(connection: Connection) -> bool:
            connection.execute(_lock, of_organization)  # one at a time
            connection.execute(_forget_older, of_organization)
            had_one = connection.execute(_end_present, {**of_organization, "end": former_until}).rowcount > 0
            connection.execute(_insert, row)
            record(connection, audit)
            return had_one

        return await self._database.write(unit, scope=key.organization_id)

    def _row(self, key: WebhookKey) -> dict[str, object]:
        return {
            "id": key.id,
            "organization_id": key.organization_id,
            "secret": self._box.encrypt(key.secret.encode()),
            "created_at": key.created_at,
            "expires_at": key.expires_at,
        }

    def _key_of(self, row: AnyRow) -> WebhookKey:
        return WebhookKey(
            id=row.id,
            organization_id=OrganizationId(row.organization_id),
            secret=self._box.decrypt(row.secret).decode(),
            created_at=row.created_at,
            expires_at=row.expires_at,
        )
