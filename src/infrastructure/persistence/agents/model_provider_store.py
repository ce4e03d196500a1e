"""Model providers in SQL; keys are stored encrypted only."""

from sqlalchemy import Connection, bindparam, delete, func, select, update

from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.errors import ServiceError, conflict, existing, require_version
from domain.ids import OrganizationId
from domain.model_providers.provider import MAX_PROVIDERS, ModelProvider
from domain.secrets.secret import SecretRef, SecretValue
from infrastructure.persistence.agents.deployment_columns import read_deployments, written_deployments
from infrastructure.persistence.audit.rows import record, recorded_change
from infrastructure.persistence.columns.fields import row_fields
from infrastructure.persistence.columns.paging import AnyRow, newest_page
from infrastructure.persistence.engine.database import Database, duplicates_as
from infrastructure.persistence.secrets.box import SecretBox
from infrastructure.persistence.tables import model_provider, organization

_of = (
    model_provider.c.organization_id == bindparam("of_organization"),
    model_provider.c.name == bindparam("named"),
)
_all = (
    select(model_provider)
    .where(model_provider.c.organization_id == bindparam("of_organization"))
    .order_by(model_provider.c.name)
    .limit(MAX_PROVIDERS)
)
_count = (
    select(func.count())
    .select_from(model_provider)
    .where(model_provider.c.organization_id == bindparam("of_organization"))
)
# Parallel additions are counted one after the other.
_lock_organization = (
    select(organization.c.id).where(organization.c.id == bindparam("of_organization")).with_for_update(key_share=True)
)
_lock = select(model_provider.c.version).where(*_of).with_for_update()
_insert = model_provider.insert()
_change = update(model_provider).where(*_of)
_delete = delete(model_provider).where(*_of)

_provider = row_fields(ModelProvider, without={"api_key", "deployments"})


class SqlModelProviderStore:
    """The `ModelProviderStore` port."""

    def __init__(self, *, database: Database, box: SecretBox) -> None:
        self._database = database
        self._box = box

    async def add(self, provider: ModelProvider, audit: AuditEvent) -> None:
        row = self._row(provider)
        wanted = {"of_organization": provider.organization_id}

        def unit(connection: Connection) -> None:
            connection.execute(_lock_organization, wanted)
            if connection.execute(_count, wanted).scalar_one() >= MAX_PROVIDERS:
                raise too_many_providers()
            connection.execute(_insert, row)
            record(connection, audit)

        with duplicates_as(name_taken(provider.name)):
            await self._database.write(unit, scope=provider.organization_id)

    async def save(self, changed: ModelProvider, *, expected_version: int, audit: AuditEvent) -> None:
        wanted = {"of_organization": changed.organization_id, "named": changed.name}
        values = self._row(changed)

        def unit(connection: Connection) -> None:
            stored = existing(connection.execute(_lock, wanted).scalar_one_or_none(), "model provider", changed.name)
            require_version("model provider", stored, expected=expected_version)
            connection.execute(_change.values(values), wanted)
            record(connection, audit)

        await self._database.write(unit, scope=changed.organization_id)

    async def all(self, organization_id: OrganizationId) -> tuple[ModelProvider, ...]:
        wanted = {"of_organization": organization_id}
        rows = await self._database.read(
            lambda connection: connection.execute(_all, wanted).all(), scope=organization_id
        )
        return tuple(self._provider_of(row) for row in rows)

    async def page(self, organization_id: OrganizationId, request: PageRequest) -> Page[ModelProvider]:
        statement = select(model_provider).where(model_provider.c.organization_id == organization_id)
        return await self._database.read(
            newest_page(statement, request, model_provider.c, self._provider_of, identifier="name"),
            scope=organization_id,
        )

    async def delete(self, organization_id: OrganizationId, name: str, audit: AuditEvent) -> bool:
        return await self._database.write(
            recorded_change(_delete, {"of_organization": organization_id, "named": name}, audit), scope=organization_id
        )

    def _row(self, provider: ModelProvider) -> dict[str, object]:
        key = provider.api_key
        return {
            **_provider.write(provider),
            "api_key": self._box.encrypt(key.encode()) if isinstance(key, str) else None,
            "secret_name": provider.secret_name,
            **written_deployments(provider.deployments, self._box),
        }

    def _provider_of(self, row: AnyRow) -> ModelProvider:
        deployments = read_deployments(row.deployments, row.deployment_keys, self._box)
        return _provider.of_row(row, api_key=self._key_of(row), deployments=deployments)

    def _key_of(self, row: AnyRow) -> SecretValue | None:
        if row.secret_name is not None:
            return SecretRef(row.secret_name)
        return None if row.api_key is None else self._box.decrypt(row.api_key).decode()


def name_taken(name: str) -> ServiceError:
    return conflict("model_provider_exists", f"There is a model provider {name!r} already.")


def too_many_providers() -> ServiceError:
    return conflict("too_many_model_providers", f"An organization has at most {MAX_PROVIDERS} model providers.")
