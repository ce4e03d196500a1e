"""GrantAccess: a person's consent, as a code that the client redeems."""

from dataclasses import dataclass
from datetime import timedelta

from application.audit.entries import audit_entry
from application.gateway.authorization.check_authorization import CheckAuthorization, CheckAuthorizationCommand
from application.gateway.authorization.oauth_client import host_of
from application.gateway.authorization.ports import ClientGrantStore
from application.gateway.sessions.open_session import own_thread
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.errors import invalid
from domain.gateway.client_grant import CODE_PREFIX, ClientGrant
from domain.gateway.session import GatewaySession, ToolNames
from domain.identity.api_key import TOKEN_PREFIX, hash_token
from domain.ids import GatewaySessionId, ThreadId

CODE_LASTS = timedelta(seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantAccessCommand:
    """The request is checked again, as it was for the page on which the person consents."""

    request: CheckAuthorizationCommand


class GrantAccess:
    """Rules:
    - The grant is of this person, for one agent, client and resource. Audited
      `gateway_session.created`.
    - The code is valid for a minute. Until it is redeemed the grant has no token that works.
    - Only hashes of codes and tokens are stored.

    Raises: as `CheckAuthorization`; INVALID `agent_missing`.
    """

    def __init__(
        self, *, check_authorization: CheckAuthorization, grants: ClientGrantStore, clock: Clock, ids: IdSource
    ) -> None:
        self._check = check_authorization
        self._grants = grants
        self._clock = clock
        self._ids = ids

    async def execute(self, command: GrantAccessCommand) -> str:
        """The URL to which the browser goes, with the code."""
        principal = command.request.principal
        asked = await self._check.execute(command.request)
        if asked.agent is None:
            raise invalid("agent_missing", "Choose an agent.")
        now = self._clock.now()
        code = CODE_PREFIX + self._secret()
        session = GatewaySession(
            id=GatewaySessionId(self._ids.new("gws")),
            organization_id=principal.organization_id,
            agent_id=asked.agent.id,
            thread_id=ThreadId(self._ids.new("thr")),
            names=ToolNames.NAMESPACED,
            created_by=principal.key_id,
            created_at=now,
            expires_at=now + CODE_LASTS,
            token_hash=hash_token(self._secret()),
            token_expires_at=now,
            client_id=asked.client.id,
            client_name=asked.client.name,
        )
        grant = ClientGrant(
            session_id=session.id,
            organization_id=session.organization_id,
            client_hash=hash_token(asked.client.id),
            redirect_uri=asked.redirect_uri,
            resource=asked.resource,
            challenge=asked.challenge,
            code_hash=hash_token(code),
            code_expires_at=now + CODE_LASTS,
        )
        details = {
            "agent_id": session.agent_id,
            "client": asked.client.name,
            "client_host": asked.client.host or "",
            "redirects_to": host_of(asked.redirect_uri),
        }
        audit = audit_entry(
            principal, AuditAction.GATEWAY_SESSION_CREATED, session.id, ids=self._ids, at=now, details={**details}
        )
        await self._grants.add(grant, session, audit, thread=own_thread(session, asked.agent.team))
        return asked.answer(code=code)

    def _secret(self) -> str:
        return self._ids.new_token().removeprefix(TOKEN_PREFIX)
