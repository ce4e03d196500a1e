"""Named secrets in SQL; values are stored encrypted only."""

from typing import cast

from sqlalchemy import Connection, bindparam, delete, select

from application.secrets.ports import SecretUser, users_in_words
from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.errors import conflict
from domain.ids import McpServerId, OrganizationId, ScheduleId, WorkflowId
from domain.secrets.secret import Secret
from infrastructure.persistence.audit.rows import record
from infrastructure.persistence.columns.fields import row_fields
from infrastructure.persistence.columns.paging import newest_page
from infrastructure.persistence.columns.upsert import upsert
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.secrets.box import SecretBox
from infrastructure.persistence.tables import mcp_server, model_provider, schedule, secret, workflow

_dates = (secret.c.organization_id, secret.c.name, secret.c.created_at, secret.c.updated_at)
_of = (secret.c.organization_id == bindparam("of_organization"), secret.c.name == bindparam("named"))
_get = select(*_dates).where(*_of)
_lock = select(secret.c.created_at).where(*_of).with_for_update()
_value = select(secret.c.value).where(*_of)
_delete = delete(secret).where(*_of)
_new = upsert(secret)
_put = _new.on_conflict_do_update(
    index_elements=["organization_id", "name"],
    set_={"value": _new.excluded.value, "updated_at": _new.excluded.updated_at},
)
_servers = (
    select(mcp_server.c.id, mcp_server.c.slug, mcp_server.c.config)
    .where(mcp_server.c.organization_id == bindparam("of_organization"))
    .order_by(mcp_server.c.slug)
)

_providers = (
    select(model_provider.c.name, model_provider.c.secret_name, model_provider.c.deployments)
    .where(model_provider.c.organization_id == bindparam("of_organization"))
    .order_by(model_provider.c.name)
)
_workflows = (
    select(workflow.c.id, workflow.c.name, workflow.c.secrets)
    .where(workflow.c.organization_id == bindparam("of_organization"), workflow.c.deleted_at.is_(None))
    .order_by(workflow.c.name)
)
_schedules = (
    select(schedule.c.id, schedule.c.name, schedule.c.webhook)
    .where(schedule.c.organization_id == bindparam("of_organization"), schedule.c.webhook.is_not(None))
    .order_by(schedule.c.name)
)
_secret = row_fields(Secret)


class SqlSecretStore:
    """The `SecretStore` port."""

    def __init__(self, *, database: Database, box: SecretBox) -> None:
        self._database = database
        self._box = box

    async def put(self, new: Secret, value: str, audit: AuditEvent) -> bool:
        row = {
            "organization_id": new.organization_id,
            "name": new.name,
            "value": self._box.encrypt(value.encode()),
            "created_at": new.created_at,
            "updated_at": new.updated_at,
        }
        wanted = _wanted(new.organization_id, new.name)

        def unit(connection: Connection) -> bool:
            is_new = connection.execute(_lock, wanted).first() is None
            connection.execute(_put, row)
            record(connection, audit)
            return is_new

        return await self._database.write(unit, scope=new.organization_id)

    async def get(self, organization_id: OrganizationId, name: str) -> Secret | None:
        wanted = _wanted(organization_id, name)
        row = await self._database.read(
            lambda connection: connection.execute(_get, wanted).first(), scope=organization_id
        )
        return None if row is None else _secret.of_row(row)

    async def page(self, organization_id: OrganizationId, request: PageRequest) -> Page[Secret]:
        statement = select(*_dates).where(secret.c.organization_id == organization_id)
        return await self._database.read(
            newest_page(statement, request, secret.c, _secret.of_row, identifier="name"), scope=organization_id
        )

    async def delete(self, organization_id: OrganizationId, name: str, audit: AuditEvent) -> bool:
        wanted = _wanted(organization_id, name)

        def unit(connection: Connection) -> bool:
            if connection.execute(_lock, wanted).first() is None:
                return False
            users = _users(connection, organization_id, name)
            if users:
                detail = f"The secret {name!r} is used by {users_in_words(users)}."
                raise conflict("secret_in_use", detail, used_by=", ".join(user.name for user in users))
            connection.execute(_delete, wanted)
            record(connection, audit)
            return True

        return await self._database.write(unit, scope=organization_id)

    async def users(self, organization_id: OrganizationId, name: str) -> tuple[SecretUser, ...]:
        return await self._database.read(
            lambda connection: _users(connection, organization_id, name), scope=organization_id
        )

    async def value(self, organization_id: OrganizationId, name: str) -> str | None:
        wanted = _wanted(organization_id, name)
        sealed = await self._database.read(
            lambda connection: connection.execute(_value, wanted).scalar_one_or_none(), scope=organization_id
        )
        return None if sealed is None else self._box.decrypt(sealed).decode()


def _wanted(organization_id: OrganizationId, name: str) -> dict[str, str]:
    return {"of_organization": organization_id, "named": name}


def _users(connection: Connection, organization_id: OrganizationId, name: str) -> tuple[SecretUser, ...]:
    rows = connection.execute(_servers, {"of_organization": organization_id})
    servers = [
        SecretUser(server_id=McpServerId(row.id), name=row.slug)
        for row in rows
        if name in cast("dict[str, list[str]]", row.config).get("secrets", ())
    ]
    providers = [
        SecretUser(name=row.name)
        for row in connection.execute(_providers, {"of_organization": organization_id})
        if row.secret_name == name or name in _secrets_of_deployments(row.deployments)
    ]
    workflows = [
        SecretUser(workflow_id=WorkflowId(row.id), name=row.name)
        for row in connection.execute(_workflows, {"of_organization": organization_id})
        if name in cast("list[str]", row.secrets)
    ]
    schedules = [
        SecretUser(schedule_id=ScheduleId(row.id), name=row.name)
        for row in connection.execute(_schedules, {"of_organization": organization_id})
        if cast("dict[str, object]", row.webhook)["secret"] == name
    ]
    return (*servers, *providers, *workflows, *schedules)


def _secrets_of_deployments(stored: object) -> frozenset[str]:
    keys = [entry["api_key"] for entry in cast("list[dict[str, object]]", stored or [])]
    return frozenset(cast("str", key["secret"]) for key in keys if isinstance(key, dict))
