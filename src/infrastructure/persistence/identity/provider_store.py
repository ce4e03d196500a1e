"""Identity providers in SQL; client secrets are stored encrypted only."""

from sqlalchemy import Connection, bindparam, delete, func, or_, select, text, update

from domain.audit.event import AuditEvent
from domain.errors import ServiceError, conflict, existing, require_version
from domain.identity.identity_provider import MAX_IDENTITY_PROVIDERS, IdentityProvider
from domain.ids import IdentityProviderId, OrganizationId
from infrastructure.persistence.audit.rows import record, recorded_change
from infrastructure.persistence.columns.fields import row_fields
from infrastructure.persistence.columns.paging import AnyRow
from infrastructure.persistence.engine.database import SYSTEM, Database, Unit, duplicates_as
from infrastructure.persistence.secrets.box import SecretBox
from infrastructure.persistence.tables import identity_provider, organization

_of = (
    identity_provider.c.organization_id == bindparam("of_organization"),
    identity_provider.c.id == bindparam("of_provider"),
)
_all = (
    select(identity_provider)
    .where(identity_provider.c.organization_id == bindparam("of_organization"))
    .order_by(identity_provider.c.name)
)
_count = (
    select(func.count())
    .select_from(identity_provider)
    .where(identity_provider.c.organization_id == bindparam("of_organization"))
)
# Parallel additions are counted one after the other.
_lock_organization = (
    select(organization.c.id).where(organization.c.id == bindparam("of_organization")).with_for_update(key_share=True)
)
_lock = select(identity_provider.c.version).where(*_of).with_for_update()
_of_issuer = select(identity_provider).where(identity_provider.c.issuer == bindparam("of_issuer"))
_named = select(identity_provider).where(identity_provider.c.id == bindparam("of_provider"))
_any = select(identity_provider.c.id).limit(1)
_offered = (
    select(identity_provider)
    .where(
        or_(
            identity_provider.c.installation.is_(True),
            identity_provider.c.organization_id == bindparam("of_organization"),
        )
    )
    .order_by(identity_provider.c.name, identity_provider.c.id)
    .limit(2 * MAX_IDENTITY_PROVIDERS)
)
# Parallel writes about one issuer see each other's audiences.
_lock_issuer = text("SELECT pg_advisory_xact_lock(hashtextextended('issuer:' || :of_issuer, 0))")
_insert = identity_provider.insert()
_change = update(identity_provider).where(*_of)
_delete = delete(identity_provider).where(*_of)

_provider = row_fields(IdentityProvider, without={"client_secret"})


class SqlIdentityProviderStore:
    """The ports `IdentityProviderStore` and `IdentityProviderDirectory`."""

    def __init__(self, *, database: Database, box: SecretBox) -> None:
        self._database = database
        self._box = box

    async def add(self, provider: IdentityProvider, audit: AuditEvent) -> None:
        row = self._row(provider)
        wanted = {"of_organization": provider.organization_id}

        def unit(connection: Connection) -> None:
            connection.execute(_lock_organization, wanted)
            if connection.execute(_count, wanted).scalar_one() >= MAX_IDENTITY_PROVIDERS:
                raise too_many_identity_providers()
            self._require_free(connection, provider)
            connection.execute(_insert, row)
            record(connection, audit)

        await self._write(unit, provider)

    async def save(self, changed: IdentityProvider, *, expected_version: int, audit: AuditEvent) -> None:
        wanted = {"of_organization": changed.organization_id, "of_provider": changed.id}
        row = self._row(changed)

        def unit(connection: Connection) -> None:
            stored = existing(connection.execute(_lock, wanted).scalar_one_or_none(), "identity provider", changed.id)
            require_version("identity provider", stored, expected=expected_version)
            self._require_free(connection, changed)
            connection.execute(_change.values(row), wanted)
            record(connection, audit)

        await self._write(unit, changed)

    async def delete(self, organization_id: OrganizationId, provider_id: IdentityProviderId, audit: AuditEvent) -> bool:
        wanted = {"of_organization": organization_id, "of_provider": provider_id}
        return await self._database.write(recorded_change(_delete, wanted, audit), scope=organization_id)

    async def all(self, organization_id: OrganizationId) -> tuple[IdentityProvider, ...]:
        rows = await self._database.read(
            lambda connection: connection.execute(_all, {"of_organization": organization_id}).all(),
            scope=organization_id,
        )
        return tuple(self._provider_of(row) for row in rows)

    async def of_issuer(self, issuer: str) -> tuple[IdentityProvider, ...]:
        rows = await self._database.read(
            lambda connection: connection.execute(_of_issuer, {"of_issuer": issuer}).all(), scope=SYSTEM
        )
        return tuple(self._provider_of(row) for row in rows)

    async def named(self, provider_id: IdentityProviderId) -> IdentityProvider | None:
        row = await self._database.read(
            lambda connection: connection.execute(_named, {"of_provider": provider_id}).first(), scope=SYSTEM
        )
        return None if row is None else self._provider_of(row)

    async def exist(self) -> bool:
        found = await self._database.read(lambda connection: connection.execute(_any).first(), scope=SYSTEM)
        return found is not None

    async def offered(self, organization_id: OrganizationId | None) -> tuple[IdentityProvider, ...]:
        rows = await self._database.read(
            lambda connection: connection.execute(_offered, {"of_organization": organization_id}).all(), scope=SYSTEM
        )
        return tuple(self._provider_of(row) for row in rows)

    async def _write(self, unit: Unit[None], provider: IdentityProvider) -> None:
        # Audiences are distinct over all organizations.
        with duplicates_as(identity_provider_exists(provider.name)):
            await self._database.write(unit, scope=SYSTEM)

    def _require_free(self, connection: Connection, provider: IdentityProvider) -> None:
        wanted = {"of_issuer": provider.issuer}
        if connection.dialect.name == "postgresql":
            connection.execute(_lock_issuer, wanted)
        for row in connection.execute(_of_issuer, wanted).all():
            other = self._provider_of(row)
            shared = set(other.accepted_audiences).intersection(provider.accepted_audiences)
            if other.id != provider.id and shared:
                raise audience_taken(min(shared))

    def _row(self, provider: IdentityProvider) -> dict[str, object]:
        secret = provider.client_secret
        return {
            **_provider.write(provider),
            "client_secret": None if secret is None else self._box.encrypt(secret.encode()),
        }

    def _provider_of(self, row: AnyRow) -> IdentityProvider:
        sealed = row.client_secret
        return _provider.of_row(row, client_secret=None if sealed is None else self._box.decrypt(sealed).decode())


def identity_provider_exists(name: str) -> ServiceError:
    return conflict("identity_provider_exists", f"There is an identity provider {name!r} already.")


def audience_taken(audience: str) -> ServiceError:
    detail = f"Another identity provider accepts tokens of this issuer for {audience!r}."
    return conflict("identity_provider_audience_taken", detail)


def too_many_identity_providers() -> ServiceError:
    detail = f"An organization has at most {MAX_IDENTITY_PROVIDERS} identity providers."
    return conflict("too_many_identity_providers", detail)
