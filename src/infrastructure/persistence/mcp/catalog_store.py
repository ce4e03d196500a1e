"""The newest catalog of each MCP server in SQL, with approvals."""

from collections.abc import Sequence

from sqlalchemy import Connection, Text, Update, and_, bindparam, delete, select, type_coerce, update

from application.system.turns import in_turns
from application.webhooks.notices import of_tools
from domain.audit.event import AuditEvent
from domain.ids import McpServerId, OrganizationId
from domain.mcp.catalog import McpCatalog, McpToolDefinition, Rejection
from domain.mcp.pinning import DefinitionState
from infrastructure.persistence.audit.rows import record
from infrastructure.persistence.columns.paging import AnyRow
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.mcp.definition_rows import (
    DefinitionPieces,
    drop_definitions,
    first_position,
    insert_definitions,
)
from infrastructure.persistence.mcp.rows import (
    DORMANT,
    LIST_RANGE,
    catalog_of,
    definition_rows,
    first_position_of,
    pinned_tool_of,
    state_row,
    text_of_rejection,
)
from infrastructure.persistence.tables import mcp_server, mcp_server_state, mcp_tool_definition
from infrastructure.persistence.webhooks.notice_rows import add_notices

_state = select(mcp_server_state).where(
    mcp_server_state.c.organization_id == bindparam("organization_id"),
    mcp_server_state.c.server_id == bindparam("server_id"),
)
_revision = select(mcp_server_state.c.revision).where(mcp_server_state.c.server_id == bindparam("server_id"))
# JSON as text: a list of 10,000 tools is decoded on the event loop in slices, in a thread it would
# hold the interpreter.
_pinned = select(
    type_coerce(mcp_tool_definition.c.definition, Text).label("definition"),
    mcp_tool_definition.c.standing,
    type_coerce(mcp_tool_definition.c.approved_definition, Text).label("approved_definition"),
    type_coerce(mcp_tool_definition.c.rejection, Text).label("rejection"),
)
_is_listed = and_(
    mcp_tool_definition.c.server_id == bindparam("of_server"),
    mcp_tool_definition.c.position >= bindparam("first"),
    mcp_tool_definition.c.position < bindparam("end"),
)
_definitions = _pinned.where(_is_listed).order_by(mcp_tool_definition.c.position)
_tool = _pinned.where(
    mcp_tool_definition.c.organization_id == bindparam("organization_id"),
    _is_listed,
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
_insert_state = mcp_server_state.insert()
_change_tool = update(mcp_tool_definition).where(_is_listed, mcp_tool_definition.c.name == bindparam("of_tool"))
_approve = _change_tool.values(standing=None, approved_definition=None, rejection=None)
_reject = _change_tool.values(rejection=bindparam("rejection_json", type_=Text))
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
            listed = _listed(server_id, first_position_of(state.description))
            return state, connection.execute(_definitions, listed).all()

        if (found := await self._database.read(unit, scope=organization_id)) is None:
            return None
        state, rows = found
        tools: list[McpToolDefinition] = []
        quarantined: dict[str, McpToolDefinition | None] = {}
        dormant: list[McpToolDefinition] = []
        rejected: dict[str, Rejection] = {}
        async for row in in_turns(rows):
            tool = pinned_tool_of(row)
            (dormant if row.standing == DORMANT else tools).append(tool.definition)
            if tool.approved is not tool.definition:
                quarantined[tool.definition.name] = tool.approved
            if tool.rejection is not None:
                rejected[tool.definition.name] = tool.rejection
        return catalog_of(state, tools, quarantined, dormant, rejected)

    async def save(
        self,
        organization_id: OrganizationId,
        catalog: McpCatalog,
        audit: tuple[AuditEvent, ...] = (),
        *,
        has_same_definitions: bool = False,
    ) -> bool:
        """Replace the snapshot that this one was made from, unless its server is gone."""
        pieces = DefinitionPieces(self._database, organization_id, catalog.server_id)
        count = len(catalog.tools) + len(catalog.dormant)
        if not has_same_definitions and await pieces.are_needed(count):
            return await self._save_in_pieces(organization_id, catalog, audit, pieces)
        rows = () if has_same_definitions else definition_rows(organization_id, catalog)
        definitions = [row async for row in in_turns(rows)]

        def unit(connection: Connection) -> bool:
            if (refused := _refusal(connection, organization_id, catalog)) is not None:
                return refused
            first = first_position(connection, catalog.server_id) if has_same_definitions else 0
            if not has_same_definitions:
                drop_definitions(connection, catalog.server_id)
                insert_definitions(connection, definitions)
            _replace_state(connection, state_row(organization_id, catalog, first_position=first))
            record(connection, *audit)
            add_notices(connection, of_tools(audit))
            return True

        return await self._database.write(unit, scope=organization_id)

    async def _save_in_pieces(
        self,
        organization_id: OrganizationId,
        catalog: McpCatalog,
        audit: tuple[AuditEvent, ...],
        pieces: DefinitionPieces,
    ) -> bool:
        rows = definition_rows(organization_id, catalog, first_position=pieces.first)
        await pieces.store(in_turns(rows), revision=catalog.revision)

        def unit(connection: Connection) -> bool:
            if (refused := _refusal(connection, organization_id, catalog)) is not None:
                return refused
            if not pieces.are_stored(connection, len(catalog.tools) + len(catalog.dormant)):
                return False
            _replace_state(connection, state_row(organization_id, catalog, first_position=pieces.first))
            record(connection, *audit)
            add_notices(connection, of_tools(audit))
            return True

        saved = await self._database.write(unit, scope=organization_id)
        await pieces.remove_unlisted()
        return saved

    async def approve(
        self,
        organization_id: OrganizationId,
        server_id: McpServerId,
        definition: McpToolDefinition,
        audit: AuditEvent,
    ) -> bool:
        """Take the tool out of quarantine, if it has this definition."""
        return await self._decide(organization_id, server_id, definition, audit, change=_approve, values={})

    async def reject(
        self,
        organization_id: OrganizationId,
        server_id: McpServerId,
        definition: McpToolDefinition,
        rejection: Rejection,
        audit: AuditEvent,
    ) -> bool:
        """Store the refusal, if the tool waits with this definition."""
        values = {"rejection_json": text_of_rejection(rejection)}
        return await self._decide(organization_id, server_id, definition, audit, change=_reject, values=values)

    async def _decide(
        self,
        organization_id: OrganizationId,
        server_id: McpServerId,
        definition: McpToolDefinition,
        audit: AuditEvent,
        *,
        change: Update,
        values: dict[str, str],
    ) -> bool:
        wanted = {"organization_id": organization_id, "server_id": server_id}

        def unit(connection: Connection) -> bool:
            connection.execute(_lock, wanted)
            listed = _listed(server_id, first_position(connection, server_id))
            row = connection.execute(_tool, {**wanted, **listed, "name": definition.name}).first()
            if row is None:
                return False
            tool = pinned_tool_of(row)
            waits = tool.state is DefinitionState.QUARANTINED
            may_change = waits or (tool.state is DefinitionState.REJECTED and change is _approve)
            if not may_change or tool.definition.digest != definition.digest:
                return False
            connection.execute(change, {**listed, **values, "of_tool": definition.name})
            connection.execute(_count_up, {"of_server": server_id})
            record(connection, audit)
            return True

        return await self._database.write(unit, scope=organization_id)


def _listed(server_id: McpServerId, first: int) -> dict[str, object]:
    """The rows of a list."""
    return {"of_server": server_id, "first": first, "end": first + LIST_RANGE}


def _refusal(connection: Connection, organization_id: OrganizationId, catalog: McpCatalog) -> bool | None:
    """What to answer if the catalog cannot be stored; None if it can be."""
    server = {"server_id": catalog.server_id}
    if connection.execute(_lock, {"organization_id": organization_id, **server}).first() is None:
        return True
    if (connection.execute(_revision, server).scalar_one_or_none() or 0) != catalog.revision:
        return False
    return None


def _replace_state(connection: Connection, row: dict[str, object]) -> None:
    connection.execute(_drop_state, {"server_id": row["server_id"]})
    connection.execute(_insert_state, row)
