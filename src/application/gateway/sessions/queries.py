"""Queries of gateway sessions."""

from application.gateway.ports import GatewaySessionStore
from application.system.pages import Page, PageRequest
from domain.gateway.session import GatewaySession
from domain.identity.api_key import Principal
from domain.identity.permission import Permission


class ListGatewaySessions:
    """Operators see the sessions of their organization, and runners those that they opened, ended
    ones too."""

    def __init__(self, *, sessions: GatewaySessionStore) -> None:
        self._sessions = sessions

    async def execute(self, principal: Principal, page: PageRequest) -> Page[GatewaySession]:
        """Newest first. Raises FORBIDDEN, INVALID `cursor_invalid`."""
        principal.require(Permission.RUNS_START)
        own = None if principal.may(Permission.GATEWAY_OPEN) else principal.key_id
        return await self._sessions.page(principal.organization_id, page.seen_by(principal), created_by=own)
