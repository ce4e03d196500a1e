"""Teams: groups that own agents, MCP servers, workflows and threads. What no team owns belongs to
the whole organization."""

Teams = frozenset[str] | None
"""Names of the groups whose things someone sees, beside those of the organization; None: of every
group."""


def sees(teams: Teams, team: str | None) -> bool:
    """Whether who sees the things of `teams` sees one that `team` owns."""
    return team is None or teams is None or team in teams


def may_use(team: str | None, used: str | None) -> bool:
    """Whether an agent, a workflow or a thread of `team` may use a server or an agent of the team
    `used`."""
    return used is None or used == team


def teams_of(team: str | None) -> frozenset[str]:
    """The teams whose things an agent or a workflow of `team` may use, beside those of the
    organization."""
    return frozenset() if team is None else frozenset({team})
