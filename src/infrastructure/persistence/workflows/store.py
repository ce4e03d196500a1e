"""Workflows and their versions in SQL."""

from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Select, bindparam, select, update

from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.errors import ServiceError, conflict, existing, require_version
from domain.ids import OrganizationId, WorkflowId
from domain.workflows.compiler import secret_names
from domain.workflows.definition_json import definition_from_json, graph_to_json
from domain.workflows.graph import Workflow
from infrastructure.persistence.audit.rows import record
from infrastructure.persistence.columns.paging import AnyRow, decode_cursor, encode_cursor, newest_page, page_of
from infrastructure.persistence.engine.database import Database, duplicates_as
from infrastructure.persistence.identity.group_owners import require_group
from infrastructure.persistence.tables import workflow, workflow_version

_listed: Select[Any] = select(
    workflow.c.id,
    workflow.c.organization_id,
    workflow.c.created_at,
    workflow_version.c.version,
    workflow_version.c.name,
    workflow_version.c.graph,
    workflow_version.c.updated_at,
    workflow_version.c.team,
).join_from(workflow, workflow_version, workflow_version.c.workflow_id == workflow.c.id)
_is_newest = workflow_version.c.version == workflow.c.version
_select_one = _listed.add_columns(workflow_version.c.source_text)

_of_organization = workflow.c.organization_id == bindparam("organization_id")
_in_use = workflow.c.deleted_at.is_(None)
_this = workflow.c.id == bindparam("workflow_id")

_get = _select_one.where(_is_newest, _of_organization, _this, _in_use)
_get_version = _select_one.where(
    workflow_version.c.version == bindparam("wanted_version"), _of_organization, _this, _in_use
)
_find = _select_one.where(_is_newest, _of_organization, workflow.c.name == bindparam("name"), _in_use)
_lock = select(workflow.c.version, workflow.c.team).where(_of_organization, _this, _in_use).with_for_update()
_move = (
    update(workflow)
    .where(_this)
    .values(
        name=bindparam("new_name"),
        version=bindparam("new_version"),
        secrets=bindparam("new_secrets"),
        team=bindparam("new_team"),
    )
)
_delete = update(workflow).where(_this).values(deleted_at=bindparam("moment"))
_versions = (
    _listed.where(_of_organization, _this, workflow_version.c.version < bindparam("before"))
    .order_by(workflow_version.c.version.desc())
    .limit(bindparam("limit"))
)
_insert = workflow.insert()
_insert_version = workflow_version.insert()
_ABOVE_ALL_VERSIONS = 2**31 - 1


class SqlWorkflowStore:
    """The `WorkflowStore` port."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def add(self, new: Workflow, audit: AuditEvent) -> None:
        row = {
            "id": new.id,
            "organization_id": new.organization_id,
            "name": new.definition.name,
            "version": new.version,
            "secrets": list(secret_names(new.definition)),
            "created_at": new.created_at,
            "team": new.team,
        }

        def unit(connection: Connection) -> None:
            require_group(connection, new.organization_id, new.team)
            connection.execute(_insert, row)
            connection.execute(_insert_version, _version_row(new))
            record(connection, audit)

        with duplicates_as(_taken(new)):
            await self._database.write(unit, scope=new.organization_id)

    async def save(self, changed: Workflow, *, expected_version: int, audit: AuditEvent) -> None:
        wanted = _wanted(changed.organization_id, changed.id)
        moved = {
            "workflow_id": changed.id,
            "new_name": changed.definition.name,
            "new_version": changed.version,
            "new_secrets": list(secret_names(changed.definition)),
            "new_team": changed.team,
        }

        def unit(connection: Connection) -> None:
            stored = existing(connection.execute(_lock, wanted).one_or_none(), "workflow", changed.id)
            require_version("workflow", stored.version, expected=expected_version)
            require_group(connection, changed.organization_id, changed.team, former=stored.team)
            connection.execute(_move, moved)
            connection.execute(_insert_version, _version_row(changed))
            record(connection, audit)

        with duplicates_as(_taken(changed)):
            await self._database.write(unit, scope=changed.organization_id)

    async def get(self, organization_id: OrganizationId, workflow_id: WorkflowId) -> Workflow | None:
        wanted = _wanted(organization_id, workflow_id)
        return await self._database.read(
            lambda connection: _one(connection.execute(_get, wanted).first()), scope=organization_id
        )

    async def version(self, organization_id: OrganizationId, workflow_id: WorkflowId, version: int) -> Workflow | None:
        wanted = _wanted(organization_id, workflow_id) | {"wanted_version": min(max(version, 0), _ABOVE_ALL_VERSIONS)}
        return await self._database.read(
            lambda connection: _one(connection.execute(_get_version, wanted).first()), scope=organization_id
        )

    async def find(self, organization_id: OrganizationId, name: str) -> Workflow | None:
        wanted = {"organization_id": organization_id, "name": name}
        return await self._database.read(
            lambda connection: _one(connection.execute(_find, wanted).first()), scope=organization_id
        )

    async def page(self, organization_id: OrganizationId, request: PageRequest) -> Page[Workflow]:
        statement = _listed.where(_is_newest, workflow.c.organization_id == organization_id, _in_use)
        return await self._database.read(newest_page(statement, request, workflow.c, _listed_of), scope=organization_id)

    async def versions(
        self, organization_id: OrganizationId, workflow_id: WorkflowId, request: PageRequest
    ) -> Page[Workflow]:
        before = _ABOVE_ALL_VERSIONS if request.cursor is None else decode_cursor(request.cursor)[0]
        wanted = {
            **_wanted(organization_id, workflow_id),
            "before": min(before, _ABOVE_ALL_VERSIONS),
            "limit": request.limit + 1,
        }

        def unit(connection: Connection) -> Page[Workflow]:
            rows = connection.execute(_versions, wanted).all()
            return page_of(
                rows[: request.limit],
                _listed_of,
                more=len(rows) > request.limit,
                cursor=lambda row: encode_cursor(row.version),
            )

        return await self._database.read(unit, scope=organization_id)

    async def delete(self, organization_id: OrganizationId, workflow_id: WorkflowId, audit: AuditEvent) -> bool:
        wanted = _wanted(organization_id, workflow_id)

        def unit(connection: Connection) -> bool:
            if connection.execute(_lock, wanted).first() is None:
                return False
            connection.execute(_delete, {"workflow_id": workflow_id, "moment": audit.at})
            record(connection, audit)
            return True

        return await self._database.write(unit, scope=organization_id)


def _wanted(organization_id: OrganizationId, workflow_id: WorkflowId) -> dict[str, str | int]:
    return {"organization_id": organization_id, "workflow_id": workflow_id}


def _version_row(stored: Workflow) -> dict[str, object]:
    return {
        "workflow_id": stored.id,
        "version": stored.version,
        "organization_id": stored.organization_id,
        "name": stored.definition.name,
        "graph": graph_to_json(stored.definition),
        "updated_at": stored.updated_at,
        "source_text": stored.text,
        "team": stored.team,
    }


def _one(row: AnyRow | None) -> Workflow | None:
    return None if row is None else replace(_listed_of(row), text=row.source_text)


def _listed_of(row: AnyRow) -> Workflow:
    return Workflow(
        id=WorkflowId(row.id),
        organization_id=OrganizationId(row.organization_id),
        version=row.version,
        definition=definition_from_json(row.name, row.graph, team=row.team),
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def _taken(refused: Workflow) -> ServiceError:
    return conflict("workflow_name_taken", f"There is a workflow {refused.definition.name!r} already.")
