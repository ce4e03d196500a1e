"""ListGatewaySessions: who can reach which agent's tools, without the tokens."""

from dataclasses import dataclass

from application.gateway.ports import GatewaySessionStore
from application.system.pages import Page, PageRequest
from domain.gateway.session import GatewaySession
from domain.identity.api_key import Principal
from domain.identity.role import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class ListGatewaySessionsCommand:
    """One page."""

    principal: Principal
    page: PageRequest


class ListGatewaySessions:
    """Operators see the sessions of their organization, ended ones too."""

    def __init__(self, *, sessions: GatewaySessionStore) -> None:
        self._sessions = sessions

    async def execute(self, command: ListGatewaySessionsCommand) -> Page[GatewaySession]:
        """Newest first. Raises FORBIDDEN, INVALID `cursor_invalid`."""
        command.principal.require(Role.OPERATOR)
        return await self._sessions.page(command.principal.organization_id, command.page)
