"""ExplainedPeople: the person or key that a policy is explained for, and whether the agent is there
for them."""

from application.identity.caller_teams import CallerTeams
from application.identity.ports import IdentityStore, UserStore
from domain.errors import existing
from domain.identity.api_key import Principal, person_of
from domain.identity.permission import Permission
from domain.identity.user import User, UserStatus
from domain.ids import ApiKeyId
from domain.teams import sees

_SCHEDULE = "schedule:"


class ExplainedPeople:
    """Rules:
    - Everyone asks for themselves, and for the keys that they created.
    - For another person or key this needs `groups.manage`, as reading groups: the answer shows who
      is in which.
    - A schedule is no person: everyone asks for it.
    """

    def __init__(self, *, identities: IdentityStore, users: UserStore, caller_teams: CallerTeams) -> None:
        self._identities = identities
        self._users = users
        self._teams = caller_teams

    async def acting(self, principal: Principal, asked: ApiKeyId | None) -> ApiKeyId:
        """Who acts; the caller if no one is named. Raises FORBIDDEN `role_insufficient`, NOT_FOUND
        `user_not_found`, `api_key_not_found`."""
        if asked is None or asked == principal.key_id or asked.startswith(_SCHEDULE):
            return asked or principal.key_id
        if (user_id := person_of(asked)) is not None:
            if user_id != principal.acts_for:
                principal.require(Permission.GROUPS_MANAGE)
            user = await self._users.get(principal.organization_id, user_id)
            existing(_kept(user), "user", user_id)
            return asked
        key = await self._identities.key(principal.organization_id, asked)
        if key is None or key.person_id is None or key.person_id != principal.acts_for:
            principal.require(Permission.GROUPS_MANAGE)
        existing(key, "API key", asked)
        return asked

    async def absence(self, principal: Principal, actor: ApiKeyId, team: str | None) -> str | None:
        """Why what `team` owns is not there for who acts, as a sentence; None if it is. The caller
        is known to see it."""
        if team is None or actor == principal.key_id or actor.startswith(_SCHEDULE):
            return None
        if sees(await self._teams.of_actor(principal.organization_id, actor), team):
            return None
        return f"Hidden: the agent belongs to the team {team}, and is not there for {actor}."


def _kept(user: User | None) -> User | None:
    return None if user is None or user.status is UserStatus.REMOVED else user
