"""Which audit entries someone sees who does not see what every team owns."""

from typing import Any

from sqlalchemy import ColumnElement, Table, and_, exists, not_, or_, select

from domain.teams import Teams
from infrastructure.persistence.columns.teams import seen_by
from infrastructure.persistence.tables import (
    agent,
    audit_event,
    gateway_session,
    mcp_server,
    run,
    schedule,
    source,
    thread,
)
from infrastructure.persistence.tables.owners import team_of_agent, team_of_thread

_OWNED: tuple[tuple[str, Table, ColumnElement[Any]], ...] = (
    ("agt", agent, agent.c.team),
    ("mcp", mcp_server, mcp_server.c.team),
    ("thr", thread, thread.c.team),
    ("run", run, run.c.team),
    ("sch", schedule, team_of_agent(schedule.c.agent_id)),
    ("gws", gateway_session, team_of_agent(gateway_session.c.agent_id)),
    ("src", source, team_of_thread(source.c.thread_id)),
)
"""What teams own, by the prefix of its ids, with its team."""
_OWNERS = (agent, mcp_server, thread)


def seen_entries(teams: Teams) -> tuple[ColumnElement[bool], ...]:
    """The condition on entries; none for who sees what every team owns.

    Where teams own something, an entry is seen if what it is about is there and seen: whose a deleted thing was is not known.
    """
    if teams is None:
        return ()
    entry = audit_event.c
    about = [
        or_(column.is_(None), _is_seen(teams, column, table, owner))
        for column, (_, table, owner) in ((entry.run_id, _OWNED[3]), (entry.server_id, _OWNED[1]))
    ]
    about += [
        or_(
            not_(entry.resource.startswith(f"{prefix}_", autoescape=True)),
            _is_seen(teams, entry.resource, table, owner),
        )
        for prefix, table, owner in _OWNED
    ]
    return (or_(and_(*about), not_(or_(*map(_owns_something, _OWNERS)))),)


def _is_seen(teams: Teams, column: ColumnElement[Any], table: Table, owner: ColumnElement[Any]) -> ColumnElement[bool]:
    return exists(select(table.c.id).where(table.c.id == column, *seen_by(teams, owner)).correlate(audit_event))


def _owns_something(table: Table) -> ColumnElement[bool]:
    mine = table.c.organization_id == audit_event.c.organization_id
    return exists(select(table.c.id).where(mine, table.c.team.is_not(None)).correlate(audit_event))
