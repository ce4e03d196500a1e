"""ConnectBySignIn: a person's sign-in is their account at servers that are used on behalf of
people."""

import logging
from datetime import timedelta

from application.audit.ports import AuditLog
from application.identity.ports import FinishedSignIn
from application.mcp.account_connected import AccountConnected
from application.mcp.authorization import McpAuthorizer, PersonSignIn
from application.mcp.ports import McpServerStore
from application.system.pages import MAX_PAGE_SIZE, PageRequest
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import ServiceError
from domain.identity.user import User
from domain.ids import AuditEventId, OrganizationId
from domain.mcp.server import McpServer

logger = logging.getLogger(__name__)


class ConnectBySignIn:
    """The port `SignInListener`. Rules:
    - Tokens of a sign-in are stored for enabled servers of the user's organization whose auth is on
      behalf of each person, and not at all where there are none.
    - They are used in place of those of an earlier sign-in, and of what was exchanged for them.
      Those of another identity provider stay stored, unused, until the account is disconnected.
    - The user's runs and calls that wait for the account continue.
    - Audited `account.connected` for each server.
    - A failure is logged: the person is signed in all the same.
    """

    def __init__(
        self,
        *,
        servers: McpServerStore,
        authorizer: McpAuthorizer,
        accounts: AccountConnected,
        audit_log: AuditLog,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._servers = servers
        self._authorizer = authorizer
        self._accounts = accounts
        self._audit_log = audit_log
        self._clock = clock
        self._ids = ids

    async def signed_in(self, finished: FinishedSignIn) -> None:
        user, lasts = finished.user, finished.tokens.access_token_lasts_s
        sign_in = PersonSignIn(
            provider_id=finished.provider.id,
            issuer=finished.provider.issuer,
            id_token=finished.tokens.id_token,
            id_token_expires_at=finished.id_token_expires_at,
            access_token=finished.tokens.access_token,
            access_token_expires_at=None if lasts is None else self._clock.now() + timedelta(seconds=lasts),
        )
        try:
            for server in await self._on_behalf(user.organization_id):
                await self._connect(server.acting_for(user.id), user, sign_in)
        except ServiceError as error:
            ids = {"organization_id": user.organization_id, "user_id": user.id, "code": error.code}
            logger.warning("a sign-in did not connect the accounts of its person", extra=ids)

    async def _on_behalf(self, organization_id: OrganizationId) -> list[McpServer]:
        servers, cursor = list[McpServer](), None
        while True:
            page = await self._servers.page(organization_id, PageRequest(limit=MAX_PAGE_SIZE, cursor=cursor))
            servers += [each for each in page.items if each.config.enabled and each.config.is_on_behalf]
            if (cursor := page.next_cursor) is None:
                return servers

    async def _connect(self, server: McpServer, user: User, sign_in: PersonSignIn) -> None:
        if not await self._authorizer.signed_in(server, sign_in):
            return
        await self._audit_log.record(
            AuditEvent(
                id=AuditEventId(self._ids.new("aud")),
                organization_id=server.organization_id,
                action=AuditAction.ACCOUNT_CONNECTED,
                actor=user.actor,
                resource=server.id,
                at=self._clock.now(),
                server_id=server.id,
                details={"slug": server.config.slug, "issuer": sign_in.issuer, "by": "sign-in"},
            )
        )
        # Connections show the token of each request: the open ones stay.
        await self._accounts.continue_what_waits(server, had_account=False)
