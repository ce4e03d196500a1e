"""The newest catalog of each MCP server in SQL, with approvals."""

from sqlalchemy import Connection, bindparam, delete, select, update

from application.system.turns import in_turns
from domain.audit.event import AuditEvent
from domain.ids import McpServerId, OrganizationId
from domain.mcp.catalog import McpCatalog, McpToolDefinition
from domain.mcp.pinning import DefinitionState
from infrastructure.persistence.audit.rows import record
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.mcp.rows import DORMANT, catalog_of, definition_rows, pinned_tool_of, state_row
from infrastructure.persistence.tables import mcp_server, mcp_server_state, mcp_tool_definition

_state = select(mcp_server_state).where(
    mcp_server_state.c.organization_id == bindparam("organization_id"),
    mcp_server_state.c.server_id == bindparam("server_id"),
)
_revision = select(mcp_server_state.c.revision).where(mcp_server_state.c.server_id == bindparam("server_id"))
_pinned = select(
    mcp_tool_definition.c.definition, mcp_tool_definition.c.standing, mcp_tool_definition.c.approved_definition
)
_definitions = _pinned.where(mcp_tool_definition.c.server_id == bindparam("server_id")).order_by(
    mcp_tool_definition.c.position
)
_tool = _pinned.where(
    mcp_tool_definition.c.organization_id == bindparam("organization_id"),
    mcp_tool_definition.c.server_id == bindparam("server_id"),
    mcp_tool_definition.c.name == bindparam("name"),
    mcp_tool_definition.c.standing.is_distinct_from(DORMANT),
)
# The lock prevents two snapshots of one server from being mixed.
_lock = (
    select(mcp_server.c.id)
    .where(mcp_server.c.organization_id == bindparam("organization_id"), mcp_server.c.id == bindparam("server_id"))
    .with_for_update()
)
_drop_state = delete(mcp_server_state).where(mcp_server_state.c.server_id == bindparam("server_id"))
_drop_definitions = delete(mcp_tool_definition).where(mcp_tool_definition.c.server_id == bindparam("server_id"))
_insert_state = mcp_server_state.insert()
_insert_definition = mcp_tool_definition.insert()
_approve = (
    update(mcp_tool_definition)
    .where(
        mcp_tool_definition.c.server_id == bindparam("of_server"),
        mcp_tool_definition.c.name == bindparam("of_tool"),
    )
    .values(standing=None, approved_definition=None)
)
_count_up = (
    update(mcp_server_state)
    .where(mcp_server_state.c.server_id == bindparam("of_server"))
    .values(revision=mcp_server_state.c.revision + 1)
)


class SqlMcpCatalogStore:
    """The `McpCatalogStore` port."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def load(self, organization_id: OrganizationId, server_id: McpServerId) -> McpCatalog | None:

        def unit(connection: Connection) -> McpCatalog | None:
            wanted = {"organization_id": organization_id, "server_id": server_id}
            state = connection.execute(_state, wanted).first()
            if state is None:
                return None
            return catalog_of(state, connection.execute(_definitions, {"server_id": server_id}).all())

        return await self._database.read(unit, scope=organization_id)

    async def save(
        self,
        organization_id: OrganizationId,
        catalog: McpCatalog,
        audit: tuple[AuditEvent, ...] = (),
        *,
        has_same_definitions: bool = False,
    ) -> bool:
        """Replace the snapshot that this one was made from, unless its server is gone."""
        state = state_row(organization_id, catalog)
        rows = () if has_same_definitions else definition_rows(organization_id, catalog)
        definitions = [row async for row in in_turns(rows)]
        server = {"server_id": catalog.server_id}

        def unit(connection: Connection) -> bool:
            if connection.execute(_lock, {"organization_id": organization_id, **server}).first() is None:
                return True
            if (connection.execute(_revision, server).scalar_one_or_none() or 0) != catalog.revision:
                return False
            if not has_same_definitions:
                connection.execute(_drop_definitions, server)
            connection.execute(_drop_state, server)
            connection.execute(_insert_state, state)
            if definitions:
                connection.execute(_insert_definition, definitions)
            for event in audit:
                record(connection, event)
            return True

        return await self._database.write(unit, scope=organization_id)

    async def approve(
        self,
        organization_id: OrganizationId,
        server_id: McpServerId,
        definition: McpToolDefinition,
        audit: AuditEvent,
    ) -> bool:
        """Take the tool out of quarantine, if it has this definition."""
        wanted = {"organization_id": organization_id, "server_id": server_id}

        def unit(connection: Connection) -> bool:
            connection.execute(_lock, wanted)
            row = connection.execute(_tool, {**wanted, "name": definition.name}).first()
            if row is None:
                return False
            tool = pinned_tool_of(row)
            if tool.state is DefinitionState.APPROVED or tool.definition.digest != definition.digest:
                return False
            connection.execute(_approve, {"of_server": server_id, "of_tool": definition.name})
            connection.execute(_count_up, {"of_server": server_id})
            record(connection, audit)
            return True

        return await self._database.write(unit, scope=organization_id)
