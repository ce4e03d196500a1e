"""Reports of processes about their connections to MCP servers, in SQL: one row per process and
server."""

from sqlalchemy import Connection, Row, bindparam, delete, select, update

from application.mcp.ports import ServerStatus
from application.mcp.server_reports import REPORT_EXPIRES, ServerReport
from application.system.ports import Clock
from domain.ids import McpServerId
from domain.mcp.server import McpServer
from infrastructure.persistence.columns.fields import row_fields
from infrastructure.persistence.columns.upsert import upsert
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.tables import mcp_connection_state, mcp_server

_new = upsert(mcp_connection_state)
_publish = _new.on_conflict_do_update(
    index_elements=["server_id", "process"],
    set_={
        name: _new.excluded[name]
        for name in ("server_version", "state", "since", "last_error", "protocol_version", "tool_count", "seen_at")
    },
)
_server = (
    select(mcp_server.c.id)
    .where(mcp_server.c.organization_id == bindparam("of_organization"), mcp_server.c.id == bindparam("of_server"))
    .with_for_update(key_share=True)
)
_of_process = mcp_connection_state.c.process == bindparam("of_process")
_gone = delete(mcp_connection_state).where(_of_process, mcp_connection_state.c.server_id == bindparam("of_server"))
_withdraw = delete(mcp_connection_state).where(_of_process)
_alive = update(mcp_connection_state).where(_of_process).values(seen_at=bindparam("at"))
_expire = delete(mcp_connection_state).where(mcp_connection_state.c.seen_at < bindparam("before"))
_of = (
    select(mcp_connection_state)
    .where(
        mcp_connection_state.c.server_id == bindparam("of_server"),
        mcp_connection_state.c.organization_id == bindparam("of_organization"),
        mcp_connection_state.c.server_version == bindparam("of_version"),
        mcp_connection_state.c.seen_at >= bindparam("since"),
    )
    .order_by(mcp_connection_state.c.process)
)
_report = row_fields(ServerReport, without={"process", "status"})
_status = row_fields(ServerStatus, only=("state", "since", "last_error", "protocol_version", "tool_count"))


class SqlServerReports:
    """The `ServerReports` port. Moments are those of this machine's clock."""

    def __init__(self, *, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def publish(self, process: str, reports: tuple[ServerReport, ...], gone: tuple[McpServerId, ...]) -> None:
        now = self._clock.now()

        def unit(connection: Connection) -> None:
            for server_id in sorted(gone):
                connection.execute(_gone, {"of_process": process, "of_server": server_id})
            for report in sorted(reports, key=lambda report: report.server_id):
                wanted = {"of_organization": report.organization_id, "of_server": report.server_id}
                if connection.execute(_server, wanted).first() is not None:
                    connection.execute(_publish, {**_to_row(report), "process": process, "seen_at": now})

        await self._database.write(unit, scope=SYSTEM)

    async def alive(self, process: str) -> None:
        now = self._clock.now()

        def unit(connection: Connection) -> None:
            connection.execute(_alive, {"of_process": process, "at": now})
            connection.execute(_expire, {"before": now - REPORT_EXPIRES})

        await self._database.write(unit, scope=SYSTEM)

    async def withdraw(self, process: str) -> None:
        await self._database.write(
            lambda connection: connection.execute(_withdraw, {"of_process": process}), scope=SYSTEM
        )

    async def of(self, server: McpServer) -> tuple[ServerReport, ...]:
        wanted = {
            "of_server": server.id,
            "of_organization": server.organization_id,
            "of_version": server.version,
            "since": self._clock.now() - REPORT_EXPIRES,
        }
        rows = await self._database.read(
            lambda connection: connection.execute(_of, wanted).all(), scope=server.organization_id
        )
        return tuple(_from_row(row) for row in rows)


def _to_row(report: ServerReport) -> dict[str, object]:
    return {**_report.write(report), **_status.write(report.status)}


def _from_row(row: Row[tuple[object, ...]]) -> ServerReport:
    return _report.of_row(row, process=row.process, status=_status.of_row(row))
