"""Registered MCP servers in SQL; environment and headers are stored encrypted only."""

from sqlalchemy import Connection, bindparam, delete, or_, select, update

from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.errors import ServiceError, conflict, existing, require_version
from domain.ids import McpServerId, OrganizationId
from domain.mcp.server import McpServer
from infrastructure.persistence.audit.rows import record, recorded_change
from infrastructure.persistence.columns.paging import AnyRow, newest_page
from infrastructure.persistence.engine.database import SYSTEM, Database, duplicates_as
from infrastructure.persistence.identity.group_owners import require_group
from infrastructure.persistence.mcp.definition_rows import DefinitionPieces
from infrastructure.persistence.mcp.rows import server_of, server_row
from infrastructure.persistence.secrets.box import SecretBox
from infrastructure.persistence.tables import mcp_server

_get = select(mcp_server).where(
    mcp_server.c.organization_id == bindparam("organization_id"),
    or_(mcp_server.c.id == bindparam("id_or_slug"), mcp_server.c.slug == bindparam("id_or_slug")),
)
_lock = (
    select(mcp_server.c.version, mcp_server.c.team)
    .where(mcp_server.c.organization_id == bindparam("organization_id"), mcp_server.c.id == bindparam("server_id"))
    .with_for_update(key_share=True)
)
_change = update(mcp_server).where(mcp_server.c.id == bindparam("server_id"))
_delete = delete(mcp_server).where(
    mcp_server.c.organization_id == bindparam("organization_id"), mcp_server.c.id == bindparam("server_id")
)
_insert = mcp_server.insert()
_any = select(mcp_server.c.id).limit(1)


class SqlMcpServerStore:
    """The `McpServerStore` port."""

    def __init__(self, *, database: Database, box: SecretBox) -> None:
        self._database = database
        self._box = box

    async def add(self, server: McpServer, audit: AuditEvent) -> None:
        row = server_row(server, self._box)

        def unit(connection: Connection) -> None:
            require_group(connection, server.organization_id, server.team)
            connection.execute(_insert, row)
            record(connection, audit)

        with duplicates_as(_taken(server)):
            await self._database.write(unit, scope=server.organization_id)

    async def save(self, server: McpServer, *, expected_version: int, audit: AuditEvent) -> None:
        wanted = {"organization_id": server.organization_id, "server_id": server.id}
        changed = {
            column: value
            for column, value in server_row(server, self._box).items()
            if column not in {"id", "organization_id", "created_at"}
        }

        def unit(connection: Connection) -> None:
            stored = existing(connection.execute(_lock, wanted).one_or_none(), "MCP server", server.id)
            require_version("MCP server", stored.version, expected=expected_version)
            require_group(connection, server.organization_id, server.team, former=stored.team)
            connection.execute(_change, {"server_id": server.id, **changed})
            record(connection, audit)

        with duplicates_as(_taken(server)):
            await self._database.write(unit, scope=server.organization_id)

    async def get(self, organization_id: OrganizationId, id_or_slug: str) -> McpServer | None:
        wanted = {"organization_id": organization_id, "id_or_slug": id_or_slug}
        row = await self._database.read(
            lambda connection: connection.execute(_get, wanted).first(), scope=organization_id
        )
        return None if row is None else server_of(row, self._box)

    async def page(self, organization_id: OrganizationId, request: PageRequest) -> Page[McpServer]:
        statement = select(mcp_server).where(mcp_server.c.organization_id == organization_id)

        def convert(row: AnyRow) -> McpServer:
            return server_of(row, self._box)

        return await self._database.read(newest_page(statement, request, mcp_server.c, convert), scope=organization_id)

    async def is_empty(self) -> bool:
        return await self._database.read(lambda connection: connection.execute(_any).first(), scope=SYSTEM) is None

    async def delete(self, organization_id: OrganizationId, server_id: McpServerId, audit: AuditEvent) -> bool:
        wanted = {"organization_id": organization_id, "server_id": server_id}
        pieces = DefinitionPieces(self._database, organization_id, server_id)
        if await pieces.are_needed(0):
            await pieces.empty()

        return await self._database.write(recorded_change(_delete, wanted, audit), scope=organization_id)


def _taken(refused: McpServer) -> ServiceError:
    return conflict("mcp_server_slug_taken", f"There is already an MCP server {refused.config.slug!r}.")
