"""The newest catalog of each MCP server in SQL."""

from sqlalchemy import Connection, bindparam, delete, select

from domain.ids import McpServerId, OrganizationId
from domain.mcp.catalog import McpCatalog
from infrastructure.persistence.database import Database
from infrastructure.persistence.mcp_rows import catalog_of, definition_rows, state_row
from infrastructure.persistence.tables import mcp_server, mcp_server_state, mcp_tool_definition

_state = select(mcp_server_state).where(
    mcp_server_state.c.organization_id == bindparam("organization_id"),
    mcp_server_state.c.server_id == bindparam("server_id"),
)
_definitions = (
    select(mcp_tool_definition.c.definition)
    .where(mcp_tool_definition.c.server_id == bindparam("server_id"))
    .order_by(mcp_tool_definition.c.position)
)
# The lock keeps two snapshots of one server from being written into each other.
_lock = (
    select(mcp_server.c.id)
    .where(mcp_server.c.organization_id == bindparam("organization_id"), mcp_server.c.id == bindparam("server_id"))
    .with_for_update()
)
_drop_state = delete(mcp_server_state).where(mcp_server_state.c.server_id == bindparam("server_id"))
_drop_definitions = delete(mcp_tool_definition).where(mcp_tool_definition.c.server_id == bindparam("server_id"))
_insert_state = mcp_server_state.insert()
_insert_definition = mcp_tool_definition.insert()


class SqlMcpCatalogStore:
    """The `McpCatalogStore` port."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def load(self, organization_id: OrganizationId, server_id: McpServerId) -> McpCatalog | None:
        """The stored snapshot, or None."""

        def unit(connection: Connection) -> McpCatalog | None:
            wanted = {"organization_id": organization_id, "server_id": server_id}
            state = connection.execute(_state, wanted).first()
            if state is None:
                return None
            definitions = connection.execute(_definitions, {"server_id": server_id}).scalars()
            return catalog_of(state, list(definitions))

        return await self._database.read(unit)

    async def save(self, organization_id: OrganizationId, catalog: McpCatalog) -> None:
        """Replace the snapshot, unless its server is gone."""
        state = state_row(organization_id, catalog)
        definitions = definition_rows(organization_id, catalog)
        server = {"server_id": catalog.server_id}

        def unit(connection: Connection) -> None:
            if connection.execute(_lock, {"organization_id": organization_id, **server}).first() is None:
                return
            connection.execute(_drop_definitions, server)
            connection.execute(_drop_state, server)
            connection.execute(_insert_state, state)
            if definitions:
                connection.execute(_insert_definition, definitions)

        await self._database.write(unit)
