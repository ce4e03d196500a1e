"""The team of an MCP server that is saved."""

from application.identity.team_checks import TeamChecks
from domain.errors import invalid
from domain.identity.api_key import Principal


async def require_team(
    checks: TeamChecks, principal: Principal, team: str | None, *, former: str | None = None
) -> None:
    """Raises INVALID `mcp_server_invalid`, as `TeamChecks`."""
    if (wrong := await checks.violation(principal, team, former=former)) is not None:
        raise invalid("mcp_server_invalid", "The MCP server is not valid.", wrong)
