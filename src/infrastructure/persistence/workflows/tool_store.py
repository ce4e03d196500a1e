"""Registered tools of workflow runs in SQL. They are written and removed in the transactions of
their run."""

from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, select, tuple_, update

from domain.ids import OrganizationId, WorkflowRunId
from domain.tools.wired import RegisteredTool, WiredNodes
from infrastructure.persistence.columns.fields import row_fields
from infrastructure.persistence.columns.upsert import upsert
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.tables import workflow_tool

_new = upsert(workflow_tool)
_put = _new.on_conflict_do_update(
    index_elements=["workflow_run_id", "node_id"],
    set_={name: _new.excluded[name] for name in ("kind", "sealed", "registered_at", "bound", "expires_at")},
)
_of_run = workflow_tool.c.workflow_run_id == bindparam("of_run")
_get = select(workflow_tool).where(_of_run, workflow_tool.c.organization_id == bindparam("of_organization"))
_remove = delete(workflow_tool).where(_of_run)
_expired = (
    select(workflow_tool.c.workflow_run_id, workflow_tool.c.node_id)
    .where(
        workflow_tool.c.organization_id == bindparam("of_organization"),
        workflow_tool.c.bound.is_not(None),
        workflow_tool.c.expires_at <= bindparam("at", type_=workflow_tool.c.expires_at.type),
    )
    .limit(bindparam("at_most"))
)
_expire = (
    update(workflow_tool)
    .where(tuple_(workflow_tool.c.workflow_run_id, workflow_tool.c.node_id).in_(_expired))
    .values(bound=None)
)
_tool = row_fields(RegisteredTool)


class SqlWorkflowToolStore:
    """The ports `WorkflowToolStore` and `ExpiringTools`."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def of(self, organization_id: OrganizationId, nodes: WiredNodes) -> tuple[RegisteredTool, ...]:
        if not nodes.node_ids:
            return ()
        wanted = {"of_run": nodes.workflow_run_id, "of_organization": organization_id}

        def unit(connection: Connection) -> tuple[RegisteredTool, ...]:
            found = {row.node_id: _tool.of_row(row) for row in connection.execute(_get, wanted)}
            return tuple(found[node_id] for node_id in nodes.node_ids if node_id in found)

        return await self._database.read(unit, scope=organization_id)

    async def expire(self, organization_id: OrganizationId, at: datetime, *, limit: int) -> int:
        wanted = {"of_organization": organization_id, "at": at, "at_most": limit}
        return await self._database.write(
            lambda connection: connection.execute(_expire, wanted).rowcount, scope=organization_id
        )


def put_tools(connection: Connection, tools: tuple[RegisteredTool, ...]) -> None:
    """Store tools of a run whose row the caller has locked; one that is registered once more
    replaces the former."""
    if tools:
        connection.execute(
            _put,
            [
                {
                    "workflow_run_id": tool.workflow_run_id,
                    "node_id": tool.node_id,
                    "organization_id": tool.organization_id,
                    "kind": tool.kind,
                    "sealed": tool.sealed,
                    "registered_at": tool.registered_at,
                    "bound": tool.bound,
                    "expires_at": tool.expires_at,
                }
                for tool in tools
            ],
        )


def remove_tools(connection: Connection, run_id: WorkflowRunId) -> None:
    """The run has ended: it has no tools any more."""
    connection.execute(_remove, {"of_run": run_id})
