"""Which audit entries someone sees who does not see what every team owns."""

from collections.abc import Mapping
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
    organization,
    run,
    schedule,
    source,
    thread,
    webhook_delivery,
    workflow,
    workflow_run,
)
from infrastructure.persistence.tables.owners import team_of_agent, team_of_delivery, team_of_thread

_OWNED: Mapping[str, tuple[Table, tuple[ColumnElement[Any], ...]]] = {
    "agt": (agent, (agent.c.team,)),
    "mcp": (mcp_server, (mcp_server.c.team,)),
    "thr": (thread, (thread.c.team,)),
    "run": (run, (run.c.team,)),
    "sch": (schedule, (team_of_agent(schedule.c.agent_id), team_of_thread(schedule.c.thread_id))),
    "gws": (gateway_session, (team_of_thread(gateway_session.c.thread_id),)),
    "src": (source, (team_of_thread(source.c.thread_id),)),
    "whk": (webhook_delivery, (team_of_delivery(),)),
    "wfl": (workflow, (workflow.c.team,)),
    "wfr": (workflow_run, (workflow_run.c.team,)),
}
"""What teams own, by the prefix of its ids, with its teams."""
_OWNERS = (agent, mcp_server, thread, workflow, workflow_run)
_PREFIX = 4
_had_teams = exists(
    select(organization.c.id)
    .where(organization.c.id == audit_event.c.organization_id, organization.c.had_teams.is_(True))
    .correlate(audit_event)
)


class _NamedIn(FunctionElement[str]):
    """The id that details have under `key`. Quotes in their texts are escaped, so that no text
    looks like a key."""

    type = Text()
    inherit_cache = True
    key: str


class _SessionOf(_NamedIn):
    inherit_cache = True
    key = "gateway_session_id"


class _WorkflowRunOf(_NamedIn):
    inherit_cache = True
    key = "workflow_run_id"


@compiles(_NamedIn)
def _by_expression(element: _NamedIn, compiler: Any, **options: Any) -> str:
    # PostgreSQL refuses to read JSON that has an escaped NUL.
    return f"""substring({compiler.process(element.clauses, **options)} from '"{element.key}":"([^"]+)"')"""


@compiles(_NamedIn, "sqlite")
def _by_path(element: _NamedIn, compiler: Any, **options: Any) -> str:
    return f"json_extract({compiler.process(element.clauses, **options)}, '$.{element.key}')"


def seen_entries(teams: Teams) -> tuple[ColumnElement[bool], ...]:
    """The condition on entries; none for who sees what every team owns.

    - Where teams own something, or have owned it, an entry is seen if what it is about is there and
      seen: whose a deleted thing was is not known.
    - An entry that names neither a run nor anything with an owner is seen if its action is one of
      `OF_ORGANIZATION`. That of a call without a run is seen with its gateway session or its
      workflow run.
    """
    if teams is None:
        return ()
    entry = audit_event.c
    about = [
        or_(column.is_(None), _is_seen(teams, column, prefix))
        for column, prefix in ((entry.run_id, "run"), (entry.server_id, "mcp"))
    ]
    begins = func.substr(entry.resource, 1, _PREFIX)
    owned = [and_(begins == f"{prefix}_", _is_seen(teams, entry.resource, prefix)) for prefix in _OWNED]
    unowned = and_(
        begins.not_in([f"{prefix}_" for prefix in _OWNED]),
        or_(
            entry.run_id.is_not(None),
            entry.action.in_([action.value for action in OF_ORGANIZATION]),
            and_(entry.action.startswith("tool."), _is_seen_call(teams)),
        ),
    )
    about.append(or_(*owned, unowned))
    # Processes of before revision 0111 give things to groups without a note.
    return (or_(and_(*about), not_(or_(_had_teams, *map(_owns_something, _OWNERS)))),)


def _is_seen_call(teams: Teams) -> ColumnElement[bool]:
    details = type_coerce(audit_event.c.details, Text)
    session_id, workflow_run_id = _SessionOf(details), _WorkflowRunOf(details)
    return or_(
        _is_seen(teams, session_id, "gws"),
        and_(session_id.is_(None), _is_seen(teams, workflow_run_id, "wfr")),
    )


def _is_seen(teams: Teams, column: ColumnElement[Any], prefix: str) -> ColumnElement[bool]:
    table, owners = _OWNED[prefix]
    seen = [condition for owner in owners for condition in seen_by(teams, owner)]
    return exists(select(table.c.id).where(table.c.id == column, *seen).correlate(audit_event))


def _owns_something(table: Table) -> ColumnElement[bool]:
    mine = table.c.organization_id == audit_event.c.organization_id
    return exists(select(table.c.id).where(mine, table.c.team.is_not(None)).correlate(audit_event))
