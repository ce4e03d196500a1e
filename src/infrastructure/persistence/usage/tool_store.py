"""Daily sums of tool calls, in SQL."""

from datetime import date
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, bindparam, exists, func, literal, or_, select

from application.system.pages import Page, PageRequest
from application.usage.ports import ToolUsageFilter
from domain.ids import OrganizationId
from domain.teams import Teams
from domain.tools.names import AGENT_PREFIX
from domain.usage.daily_usage import UsageKey
from domain.usage.tool_usage import ToolUsageSum
from domain.workflows.tool_names import RESERVED_NAMES
from infrastructure.persistence.columns.paging import AnyRow, decode_cursor, encode_cursor, page_of
from infrastructure.persistence.columns.teams import seen_by
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.tables import agent, mcp_server, tool_usage
from infrastructure.persistence.usage.tool_rows import SUMMED

_columns = tool_usage.c
_MAX_ORDINAL = date.max.toordinal()
_first_day = select(func.min(_columns.day)).where(_columns.organization_id == bindparam("of_organization"))


class SqlToolUsage:
    """The `ToolUsageReports` port."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def page(
        self, organization_id: OrganizationId, wanted: ToolUsageFilter, request: PageRequest
    ) -> Page[ToolUsageSum]:
        statement = _after(_grouped(organization_id, wanted), request.cursor).limit(request.limit + 1)

        def unit(connection: Connection) -> Page[ToolUsageSum]:
            rows = connection.execute(statement).all()
            return page_of(rows[: request.limit], _sum_of, more=len(rows) > request.limit, cursor=_cursor)

        return await self._database.read(unit, scope=organization_id)

    async def first_day(self, organization_id: OrganizationId) -> date | None:
        wanted = {"of_organization": organization_id}
        day = await self._database.read(
            lambda connection: connection.execute(_first_day, wanted).scalar_one(), scope=organization_id
        )
        return None if day is None else date.fromordinal(day)


def _grouped(organization_id: OrganizationId, wanted: ToolUsageFilter) -> Select[Any]:
    """Sums by the wanted keys; other keys are 0 or empty, so that one order fits all."""
    keys: list[tuple[str, ColumnElement[Any], ColumnElement[Any], bool]] = [
        ("day", _columns.day, literal(0), UsageKey.DAY in wanted.by),
        ("tool", _columns.tool, literal(""), UsageKey.TOOL in wanted.by),
    ]
    selected = [(column if is_wanted else empty).label(name) for name, column, empty, is_wanted in keys]
    sums = [func.sum(_columns[name]).label(name) for name in SUMMED]
    statement = select(*selected, *sums).where(_columns.organization_id == organization_id)
    statement = statement.where(*_seen_tools(wanted.teams))
    if wanted.since is not None:
        statement = statement.where(_columns.day >= wanted.since.toordinal())
    if wanted.until is not None:
        statement = statement.where(_columns.day <= wanted.until.toordinal())
    if wanted.tool is not None:
        statement = statement.where(_columns.tool == wanted.tool)
    return statement.group_by(*(column for _, column, _, is_wanted in keys if is_wanted))


def _seen_tools(teams: Teams) -> tuple[ColumnElement[bool], ...]:
    """Tools of seen servers and agents by their names, and the service's own. Who does not see all
    teams loses what does not say whose it is: tools of workflows and of clients, and names that
    were fitted to the limits."""
    if teams is None:
        return ()
    is_of_server, is_agent = (
        _columns.tool.like("mcp\\_\\_%", escape="\\"),
        _columns.tool.like("agent\\_\\_%", escape="\\"),
    )
    servers = select(mcp_server.c.id).where(
        mcp_server.c.organization_id == _columns.organization_id,
        func.substr(_columns.tool, 1, func.length(mcp_server.c.slug) + 7) == "mcp__" + mcp_server.c.slug + "__",
        *seen_by(teams, mcp_server.c.team),
    )
    agents = select(agent.c.id).where(
        agent.c.organization_id == _columns.organization_id,
        _columns.tool == AGENT_PREFIX + agent.c.name,
        *seen_by(teams, agent.c.team),
    )
    return (
        or_(
            _columns.tool.in_(sorted(RESERVED_NAMES)),
            and_(is_of_server, exists(servers.correlate(tool_usage))),
            and_(is_agent, exists(agents.correlate(tool_usage))),
        ),
    )


def _after(grouped: Select[Any], cursor: str | None) -> Select[Any]:
    rows = grouped.subquery()
    # Without grouping, a sum over nothing is one empty row.
    statement = select(rows).where(rows.c.calls.is_not(None)).order_by(rows.c.day.desc(), rows.c.tool)
    if cursor is None:
        return statement
    day, tool = decode_cursor(cursor)
    last = min(day, _MAX_ORDINAL)
    return statement.where(or_(rows.c.day < last, and_(rows.c.day == last, rows.c.tool > tool)))


def _cursor(row: AnyRow) -> str:
    return encode_cursor(row.day, row.tool)


def _sum_of(row: AnyRow) -> ToolUsageSum:
    return ToolUsageSum(
        day=date.fromordinal(row.day) if row.day else None,
        tool=row.tool or None,
        calls=int(row.calls),
        failed_calls=int(row.failed_calls),
        blocked_calls=int(row.blocked_calls),
        duration_ms=int(row.duration_ms),
    )
