"""Numbers of tools that wait for a person, without their definitions."""

from collections.abc import Mapping

from sqlalchemy import Connection, Text, bindparam, func, select, type_coerce

from domain.ids import McpServerId, OrganizationId
from domain.teams import Teams
from infrastructure.persistence.columns.teams import seen_by
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.mcp.definition_rows import first_position
from infrastructure.persistence.mcp.rows import CHANGED, LIST_RANGE, NEW
from infrastructure.persistence.tables import mcp_server, mcp_tool_definition

_tool = mcp_tool_definition.c
_list = (_tool.position // LIST_RANGE).label("list")
awaiting = (
    select(_tool.server_id, _list, func.count().label("tools"))
    .select_from(mcp_server.join(mcp_tool_definition, _tool.server_id == mcp_server.c.id))
    .where(
        mcp_server.c.organization_id == bindparam("organization_id"),
        _tool.standing.in_((NEW, CHANGED)),
        type_coerce(_tool.rejection, Text).is_(None),
    )
    .group_by(_tool.server_id, _list)
)


class SqlQuarantineCounts:
    """The `QuarantineCounts` port."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def awaiting(self, organization_id: OrganizationId, *, teams: Teams = None) -> Mapping[McpServerId, int]:
        statement = awaiting.where(*seen_by(teams, mcp_server.c.team))

        def unit(connection: Connection) -> dict[McpServerId, int]:
            return {
                McpServerId(row.server_id): row.tools
                for row in connection.execute(statement, {"organization_id": organization_id}).all()
                if row.list == first_position(connection, row.server_id) // LIST_RANGE
            }

        return await self._database.read(unit, scope=organization_id)
