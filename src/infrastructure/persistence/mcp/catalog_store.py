"""The newest catalog of each MCP server in SQL, with approvals."""

from collections.abc import Sequence

from sqlalchemy import Connection, Text, bindparam, delete, select, type_coerce, update

from application.system.turns import in_turns
from domain.audit.event import AuditEvent
from domain.ids import McpServerId, OrganizationId
from domain.mcp.catalog import McpCatalog, McpToolDefinition
from domain.mcp.pinning import DefinitionState
from infrastructure.persistence.audit.rows import record
from infrastructure.persistence.columns.paging import AnyRow
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.mcp.rows import DORMANT, catalog_of, definition_rows, pinned_tool_of, state_row
from infrastructure.persistence.tables import mcp_server, mcp_server_state, mcp_tool_definition

_state = select(mcp_server_state).where(
    mcp_server_state.c.organization_id == bindparam("organization_id"),
    mcp_server_state.c.server_id == bindparam("server_id"),
)
_revision = select(mcp_server_state.c.revision).where(mcp_server_state.c.server_id == bindparam("server_id"))
# JSON as text: a list of 10,000 tools is decoded on the event loop in slices, in a thread it would hold the interpreter.
_pinned = select(
    type_coerce(mcp_tool_definition.c.definition, Text).label("definition"),
    mcp_tool_definition.c.standing,
    type_coerce(mcp_tool_definition.c.approved_definition, Text).label("approved_definition"),
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
_insert_definition = mcp_tool_definition.insert().values(
    definition=bindparam("definition_json", type_=Text), approved_definition=bindparam("approved_json", type_=Text)
)
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

        def unit(connection: Connection) -> tuple[AnyRow, Sequence[AnyRow]] | None:
            wanted = {"organization_id": organization_id, "server_id": server_id}
            state = connection.execute(_state, wanted).first()
            if state is None:
                return None
            return state, connection.execute(_definitions, {"server_id": server_id}).all()

        if (found := await self._database.read(unit, scope=organization_id)) is None:
            return None
        state, rows = found
        tools: list[McpToolDefinition] = []
        quarantined: dict[str, McpToolDefinition | None] = {}
        dormant: list[McpToolDefinition] = []
        async for row in in_turns(rows):
            tool = pinned_tool_of(row)
            (dormant if row.standing == DORMANT else tools).append(tool.definition)
            if tool.approved is not tool.definition:
                quarantined[tool.definition.name] = tool.approved
        return catalog_of(state, tools, quarantined, dormant)

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
                _insert(connection, definitions)
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


def _insert(connection: Connection, rows: list[dict[str, object]]) -> None:
    """Insert definitions. On SQLite without SQLAlchemy's work for each row: 10,000 take half the time, in which the only
    writer does nothing else."""
    if connection.dialect.name != "sqlite":
        connection.execute(_insert_definition, rows)
        return
    compiled = _insert_definition.compile(connection.engine, column_keys=list(rows[0]))
    names = compiled.positiontup or ()
    connection.exec_driver_sql(str(compiled), [tuple(map(row.__getitem__, names)) for row in rows])
