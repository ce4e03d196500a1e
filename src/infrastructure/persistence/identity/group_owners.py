"""What belongs to a group."""

from sqlalchemy import Column, ColumnElement, Connection, Select, Table, bindparam, select

from domain.ids import OrganizationId
from infrastructure.persistence.tables import agent, mcp_server, thread, workflow, workflow_run

_OWNED_SHOWN = 5


def _owned_by(table: Table, shown: Column[str], *conditions: ColumnElement[bool]) -> Select[str]:
    of_team = (table.c.organization_id == bindparam("of_organization"), table.c.team == bindparam("of_team"))
    return select(shown).where(*of_team, *conditions).order_by(shown).limit(_OWNED_SHOWN)


_owned = {
    "agents": _owned_by(agent, agent.c.name, agent.c.deleted_at.is_(None)),
    "MCP servers": _owned_by(mcp_server, mcp_server.c.slug),
    "workflows": _owned_by(workflow, workflow.c.name, workflow.c.deleted_at.is_(None)),
    "threads": _owned_by(thread, thread.c.id),
    "workflow runs": _owned_by(workflow_run, workflow_run.c.id),
}


def owned_by_group(connection: Connection, organization_id: OrganizationId, name: str) -> dict[str, list[str]]:
    """The first names by kind; empty if the group owns nothing."""
    wanted = {"of_organization": organization_id, "of_team": name}
    found = {
        kind: [str(each) for each in connection.execute(statement, wanted).scalars()]
        for kind, statement in _owned.items()
    }
    return {kind: names for kind, names in found.items() if names}
