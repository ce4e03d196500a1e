"""Which audit entries someone sees who does not see what every team owns."""

from typing import Any

from sqlalchemy import ColumnElement, Table, Text, and_, exists, func, not_, or_, select, type_coerce
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from domain.audit.event import OF_ORGANIZATION
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
    webhook_delivery,
)
from infrastructure.persistence.tables.owners import team_of_agent, team_of_run, team_of_thread

_OWNED: tuple[tuple[str, Table, tuple[ColumnElement[Any], ...]], ...] = (
    ("agt", agent, (agent.c.team,)),
    ("mcp", mcp_server, (mcp_server.c.team,)),
    ("thr", thread, (thread.c.team,)),
    ("run", run, (run.c.team,)),
    ("sch", schedule, (team_of_agent(schedule.c.agent_id), team_of_thread(schedule.c.thread_id))),
    ("gws", gateway_session, (team_of_thread(gateway_session.c.thread_id),)),
    ("src", source, (team_of_thread(source.c.thread_id),)),
    ("whk", webhook_delivery, (team_of_run(webhook_delivery.c.run_id),)),
)
"""What teams own, by the prefix of its ids, with its teams."""
_OWNERS = (agent, mcp_server, thread)
_PREFIX = 4
_OF_WORKFLOW = '"workflow_run_id":"'


class _SessionOf(FunctionElement[str]):
    """The gateway session that details name. Quotes in their texts are escaped, so that no text looks like its key."""

    type = Text()
    inherit_cache = True


@compiles(_SessionOf)
def _by_expression(element: _SessionOf, compiler: Any, **options: Any) -> str:
    # PostgreSQL refuses to read JSON that has an escaped NUL.
    return f"""substring({compiler.process(element.clauses, **options)} from '"gateway_session_id":"([^"]+)"')"""


@compiles(_SessionOf, "sqlite")
def _by_path(element: _SessionOf, compiler: Any, **options: Any) -> str:
    return f"json_extract({compiler.process(element.clauses, **options)}, '$.gateway_session_id')"


def seen_entries(teams: Teams) -> tuple[ColumnElement[bool], ...]:
    """The condition on entries; none for who sees what every team owns.

    - Where teams own something, an entry is seen if what it is about is there and seen: whose a deleted thing was is not known.
    - An entry that names neither a run nor anything with an owner is seen if its action is one of `OF_ORGANIZATION`. That of a
      call without a run is seen with its gateway session; with its workflow run, by everyone.
    """
    if teams is None:
        return ()
    entry = audit_event.c
    about = [
        or_(column.is_(None), _is_seen(teams, column, table, owners))
        for column, (_, table, owners) in ((entry.run_id, _OWNED[3]), (entry.server_id, _OWNED[1]))
    ]
    begins = func.substr(entry.resource, 1, _PREFIX)
    owned = [
        and_(begins == f"{prefix}_", _is_seen(teams, entry.resource, table, owners)) for prefix, table, owners in _OWNED
    ]
    unowned = and_(
        begins.not_in([f"{prefix}_" for prefix, _, _ in _OWNED]),
        or_(
            entry.run_id.is_not(None),
            entry.action.in_([action.value for action in OF_ORGANIZATION]),
            and_(entry.action.startswith("tool."), _is_seen_call(teams)),
        ),
    )
    about.append(or_(*owned, unowned))
    return (or_(and_(*about), not_(or_(*map(_owns_something, _OWNERS)))),)


def _is_seen_call(teams: Teams) -> ColumnElement[bool]:
    details = type_coerce(audit_event.c.details, Text)
    session_id = _SessionOf(details)
    _, sessions, owners = _OWNED[5]
    return or_(
        _is_seen(teams, session_id, sessions, owners),
        and_(session_id.is_(None), details.contains(_OF_WORKFLOW)),
    )


def _is_seen(
    teams: Teams, column: ColumnElement[Any], table: Table, owners: tuple[ColumnElement[Any], ...]
) -> ColumnElement[bool]:
    seen = [condition for owner in owners for condition in seen_by(teams, owner)]
    return exists(select(table.c.id).where(table.c.id == column, *seen).correlate(audit_event))


def _owns_something(table: Table) -> ColumnElement[bool]:
    mine = table.c.organization_id == audit_event.c.organization_id
    return exists(select(table.c.id).where(mine, table.c.team.is_not(None)).correlate(audit_event))
