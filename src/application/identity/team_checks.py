"""TeamChecks: whether a caller may give something to a team."""

from application.identity.ports import Memberships
from domain.errors import Violation
from domain.identity.api_key import Principal


class TeamChecks:
    """Rules:
    - A team is a group of the organization, by its name: one that the caller is in. Who sees what
      every group owns names any.
    - A team that stays is accepted, also when its group is gone.
    """

    def __init__(self, *, memberships: Memberships) -> None:
        self._memberships = memberships

    async def violation(self, principal: Principal, team: str | None, *, former: str | None = None) -> Violation | None:
        """What is wrong with it. The same for a group that does not exist and one that the caller
        is not in."""
        if team is None or team == former:
            return None
        if principal.sees(team) and team in await self._memberships.group_names(principal.organization_id):
            return None
        whose = "" if principal.visible_teams is None else " that you are in"
        return Violation(path="team", message=f"there is no group {team[:200]!r}{whose}")
