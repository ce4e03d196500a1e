"""Notices that a person must authorize an MCP server, in SQL."""

from datetime import datetime

from sqlalchemy import Connection, bindparam, func, select

from application.system.wakeups import Wakeups
from application.webhooks.notices import of_missing_grant
from application.webhooks.ports import WEBHOOKS_TOPIC
from domain.mcp.server import McpServer
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.mcp.oauth_store import stored_server
from infrastructure.persistence.tables import oauth_grant
from infrastructure.persistence.webhooks.notice_rows import add_notices

_granted_at = select(func.max(oauth_grant.c.updated_at)).where(
    oauth_grant.c.organization_id == bindparam("of_organization"), oauth_grant.c.server_id == bindparam("of_server")
)


class SqlMissingGrantNotices:
    """The `MissingGrantNotices` port."""

    def __init__(self, *, database: Database, wakeups: Wakeups) -> None:
        self._database = database
        self._wakeups = wakeups

    async def add(self, server: McpServer, *, at: datetime) -> None:
        wanted = {"of_organization": server.organization_id, "of_server": server.id}

        def unit(connection: Connection) -> None:
            if connection.execute(stored_server, wanted).first() is None:
                return
            granted_at = connection.execute(_granted_at, wanted).scalar_one()
            if granted_at is not None and granted_at > at:
                return
            add_notices(connection, [of_missing_grant(server, granted_at=granted_at, at=at)])

        await self._database.write(
            unit, scope=server.organization_id, after_commit=lambda _: self._wakeups.wake(WEBHOOKS_TOPIC)
        )
