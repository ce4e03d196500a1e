"""What belongs to a group, and giving something to it."""

from sqlalchemy import Column, ColumnElement, Connection, Select, Table, bindparam, select, update

from domain.identity.organization_group import team_gone
from domain.ids import OrganizationId
from infrastructure.persistence.tables import (
    agent,
    mcp_server,
    organization,
    organization_group,
    thread,
    user_group,
    workflow,
    workflow_run,
)

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


# Conflicts with the lock of who deletes or renames the group, and with nothing else.
_hold = (
    select(organization_group.c.id)
    .where(
        organization_group.c.organization_id == bindparam("of_organization"),
        organization_group.c.name == bindparam("of_team"),
    )
    .with_for_update(read=True, key_share=True)
)
# A directory deletes its groups whatever they own.
_of_directory = select(user_group.c.id).where(
    user_group.c.organization_id == bindparam("of_organization"), user_group.c.name == bindparam("of_team")
)

# Read by `seen_entries`. Entries about deleted things do not say which group owned them.
_note = (
    update(organization)
    .where(organization.c.id == bindparam("of_organization"), organization.c.had_teams.is_(False))
    .values(had_teams=True)
)


def require_group(
    connection: Connection, organization_id: OrganizationId, team: str | None, *, former: str | None = None
) -> None:
    """Hold the group that something is given to until the transaction ends, so that it is not
    deleted meanwhile. What stays with its `former` team is not held. The organization is noted as
    one with teams. Raises CONFLICT `team_gone`."""
    if team is None or team == former:
        return
    wanted = {"of_organization": organization_id, "of_team": team}
    if connection.execute(_hold, wanted).first() is None and connection.execute(_of_directory, wanted).first() is None:
        raise team_gone(team)
    connection.execute(_note, wanted)


def owned_by_group(connection: Connection, organization_id: OrganizationId, name: str) -> dict[str, list[str]]:
    """The first names by kind; empty if the group owns nothing."""
    wanted = {"of_organization": organization_id, "of_team": name}
    found = {
        kind: [str(each) for each in connection.execute(statement, wanted).scalars()]
        for kind, statement in _owned.items()
    }
    return {kind: names for kind, names in found.items() if names}
