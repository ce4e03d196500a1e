"""Ports of the authorization server: stored grants, and metadata documents of clients."""

from collections.abc import Callable
from typing import Protocol

from domain.audit.event import AuditEvent
from domain.gateway.client_grant import ClientGrant
from domain.gateway.session import GatewaySession
from domain.ids import GatewaySessionId, OrganizationId
from domain.json_value import JsonObject
from domain.threads.thread import Thread

StoredGrant = tuple[ClientGrant, GatewaySession]
GrantChange = Callable[[ClientGrant, GatewaySession], StoredGrant]
"""Decides over the stored grant and its session, with the grant locked: both as they shall be. What
it raises changes nothing."""


class ClientGrantStore(Protocol):
    """Grants with their sessions. Reads are over all organizations: the caller is not known yet."""

    async def add(self, grant: ClientGrant, session: GatewaySession, audit: AuditEvent, *, thread: Thread) -> None: ...

    async def of_code(self, code_hash: str) -> StoredGrant | None:
        """The grant with this code, redeemed or not, ended or not."""

    async def of_family(self, family_hash: str) -> StoredGrant | None:
        """The grant with these refresh tokens, ended or not."""

    async def of_token(self, token_hash: str) -> StoredGrant | None:
        """The grant with this access token, ended or not."""

    async def change(self, organization_id: OrganizationId, session_id: GatewaySessionId, decide: GrantChange) -> bool:
        """Store a change: of the session, its token and times. False if the grant is gone."""

    async def is_known(self, client_hash: str) -> bool:
        """Whether a client has a grant of any organization, ended or not."""


class ClientDocuments(Protocol):
    """Metadata documents of clients, through the egress guard."""

    async def read(self, url: str) -> JsonObject:
        """Raises INVALID `invalid_client`."""
