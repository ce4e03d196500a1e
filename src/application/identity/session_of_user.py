"""SessionOfUser: the caller behind a session that a user began in the console."""

from dataclasses import dataclass
from datetime import datetime

from application.identity.authenticate_person import invalid_token
from application.identity.caller_teams import CallerTeams
from application.identity.granted import granted_to
from application.identity.key_limits import KeyLimits
from application.identity.ports import RoleGrants, UserAccess
from application.system.ports import Clock
from domain.identity.api_key import Principal
from domain.ids import OrganizationId, UserId


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOfUserCommand:
    organization_id: OrganizationId
    user_id: UserId
    expires_at: datetime


class SessionOfUser:
    """Rules:
    - Role, permissions and teams are what the user has now.
    - A deactivated or removed user is refused, and one whose identity provider was deleted.
    - The service's rate limit and the organization's apply to each user.

    Raises: ServiceError token_invalid (UNAUTHENTICATED), rate_limited (LIMIT).
    """

    def __init__(
        self,
        *,
        user_access: UserAccess,
        custom_roles: RoleGrants,
        caller_teams: CallerTeams,
        limits: KeyLimits,
        clock: Clock,
    ) -> None:
        self._teams = caller_teams
        self._users = user_access
        self._roles = custom_roles
        self._limits = limits
        self._clock = clock

    async def execute(self, command: SessionOfUserCommand) -> Principal:
        user = None
        if command.expires_at > self._clock.now():
            user = await self._users.admitted(command.organization_id, command.user_id)
        if user is None:
            raise invalid_token()
        await self._limits.take_of_user(command.organization_id, user.id)
        return await self._teams.told(user.principal(command.expires_at, await granted_to(user, self._roles)))
