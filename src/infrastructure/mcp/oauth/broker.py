"""Access tokens for MCP servers: cached, renewed before they expire, one request for concurrent
callers. Above: endpoints of connections. Below: the token endpoint and stored grants."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from secrets import token_hex
from typing import TypeVar

from application.system.lru import LruCache
from application.system.ports import Clock
from application.system.shared_work import SharedWork
from domain.errors import ServiceError
from domain.ids import OrganizationId
from domain.mcp.auth import ClientCredentialsAuth
from domain.mcp.server import McpServer
from infrastructure.mcp.faults import TransportFailedError, auth_fault, needs_auth_fault
from infrastructure.mcp.oauth.challenge import Challenge
from infrastructure.mcp.oauth.grants import (
    Grant,
    GrantOwner,
    OAuthStore,
    binding_of,
    grant_owner,
)
from infrastructure.mcp.oauth.obtaining import MORE_WANTED, Obtaining
from infrastructure.mcp.oauth.on_behalf import OnBehalf
from infrastructure.mcp.oauth.tokens import TokenRefusedError
from infrastructure.mcp.secret_values import SecretValues

logger = logging.getLogger(__name__)

LOOK_AGAIN_S = 1.0
"""Interval of checks whether another process has renewed a token, if no notification arrives."""
_CAPACITY = 10_000
_NOT_AUTHORIZED = "The server requires authorization: none has been granted yet."
_NOT_SIGNED_IN = "The server is used on behalf of each person, whose sign-in is missing or outdated."
_SCOPES = "The server requires more scopes than its auth.scopes ask for."
_WITHDRAWN = "The server requires authorization: the grant has expired or was withdrawn."

_Key = tuple[GrantOwner, str]
_Kept = TypeVar("_Kept")


class TokenBroker:
    """One per process.

    - A renewal runs in its own task: cancelling a waiter must not lose the new refresh token.
    - A refresh token is valid once (OAuth 2.1, section 4.3.1): of several processes on one
      database, the one that claims the grant uses it; the others read its result.
    - `is_told` says whether notifications about changed grants currently arrive.
    """

    def __init__(
        self,
        *,
        store: OAuthStore,
        obtaining: Obtaining,
        on_behalf: OnBehalf,
        secrets: SecretValues,
        clock: Clock,
        is_told: Callable[[], bool],
    ) -> None:
        self._store = store
        self._obtaining = obtaining
        self._on_behalf = on_behalf
        self._secrets = secrets
        self._clock = clock
        self._is_told = is_told
        self._generation = 0
        self._news = asyncio.Event()
        self._cache: LruCache[_Key, Grant] = LruCache(_CAPACITY)
        self._challenges: LruCache[_Key, Challenge] = LruCache(_CAPACITY)
        self._under_way = SharedWork[_Key, Grant](name="mcp-oauth-token")

    async def close(self) -> None:
        """Cancel the renewals in progress."""
        await self._under_way.close()

    def forget_organization(self, organization_id: OrganizationId | None) -> None:
        """Grants of the organization, or of any, changed in this or another process."""
        self._generation += 1
        for key in self._cache:
            if organization_id in (None, key[0].organization_id):
                self._cache.pop(key)
        self._news.set()
        self._news = asyncio.Event()

    async def token(self, server: McpServer) -> str | None:
        """A valid token; None if the server's requirements are unknown. Raises
        TransportFailedError, with `needs_auth` if a person must authorize."""
        grant = await self.grant(server)
        if grant is not None and grant.access_token is None and grant.subject is not None:
            return (await self._once(server, lambda: self._renewed(server, grant))).access_token
        if grant is None or grant.access_token is None:
            if _is_consent(server):
                raise TransportFailedError(needs_auth_fault(_not_authorized(server) if grant is None else _WITHDRAWN))
            return None
        now = self._clock.now()
        if not grant.is_due(now) or (not grant.is_expired(now) and not self._can_renew(server, grant)):
            return grant.access_token
        try:
            renewed = await self._once(server, lambda: self._renewed(server, grant))
        except TransportFailedError as failed:
            if failed.fault.needs_auth or grant.is_expired(self._clock.now()):
                raise
            return grant.access_token  # an early renewal may fail and be repeated
        return renewed.access_token

    async def renew(self, server: McpServer, rejected: str | None, challenge: Challenge) -> None:
        """Renew after the server rejected `rejected`, or required a token. Raises
        TransportFailedError."""
        self._challenges.put(self._key(server), challenge)
        grant = await self._stored(server) or await self.grant(server)
        if grant is not None and grant.access_token is not None and grant.access_token != rejected:
            return  # it was renewed during the request
        if isinstance(server.config.auth, ClientCredentialsAuth):
            await self._once(server, lambda: self._first(server, challenge))
            return
        if challenge.error == "insufficient_scope" and server.config.is_on_behalf:
            raise TransportFailedError(auth_fault(_SCOPES))  # no sign-in changes what is asked for
        if challenge.error == "insufficient_scope":
            raise TransportFailedError(needs_auth_fault(MORE_WANTED))
        if grant is None:
            raise TransportFailedError(needs_auth_fault(_not_authorized(server)))
        await self._once(server, lambda: self._renewed(server, grant))

    def challenge(self, server: McpServer) -> Challenge | None:
        """The last challenge of the server."""
        return self._challenges.get(self._key(server))

    async def grant(self, server: McpServer) -> Grant | None:
        """The grant for this configuration of the server."""
        cached = self._cache.get(self._key(server))
        if cached is not None and self._is_told():
            return cached
        stored = await self._stored(server)
        if stored is None and not _is_consent(server):
            return cached  # a server that is only being tested has no stored grants
        return stored

    async def store(self, server: McpServer, grant: Grant, *, claim: str | None = None) -> bool:
        """Cache and store the grant; with `claim`, only in place of one that is claimed so. False
        if it was not stored: a consent is not used then."""
        generation, owner = self._generation, grant_owner(server)
        self._take(server, grant)
        if claim is None:
            is_stored = await self._store.save(owner, grant)
        else:
            is_stored = await self._store.replace(owner, grant, claim)
        if not is_stored and _is_consent(server):
            self._cache.pop(self._key(server))
        elif not is_stored or generation == self._generation:
            self._take(server, grant)  # again, in case the former was read during the save
        return is_stored

    async def remove(self, server: McpServer) -> bool:
        """Delete the grants of the server's owner. False if there are none."""
        removed = await self._store.remove(grant_owner(server))
        self.forget_organization(server.organization_id)
        return removed

    def _can_renew(self, server: McpServer, grant: Grant) -> bool:
        if isinstance(server.config.auth, ClientCredentialsAuth):
            return True
        return grant.refresh_token is not None or grant.has_subject(self._clock.now())

    async def _renewed(self, server: McpServer, grant: Grant) -> Grant:
        """Renew a token: by refresh, or by a new request. A sign-in that replaced the grant
        meanwhile is exchanged in turn."""
        renewed = await self._renewed_once(server, grant)
        return renewed if renewed.access_token is not None else await self._renewed_once(server, renewed)

    async def _renewed_once(self, server: McpServer, grant: Grant) -> Grant:
        if not self._can_renew(server, grant):
            return await self._claiming(server, grant, lambda claim: self._ended(server, grant, claim))
        return await self._claiming(server, grant, lambda claim: self._next(server, grant, claim))

    async def _claiming(
        self, server: McpServer, grant: Grant, work: Callable[[str | None], Coroutine[None, None, Grant]]
    ) -> Grant:
        """Run `work` with a claim while no other process renews the grant; else return the grant
        that another process stored. A grant that is not stored, of a server that is only being
        tested, has no claim."""
        owner = grant_owner(server)
        claim = token_hex(16)
        while True:
            news = self._news
            held = await self._store.claim(owner, grant.issuer, claim, now=self._clock.now())
            if held is not None:
                break
            stored = await self._stored(server)
            if stored is None and not _is_consent(server):
                return await work(None)
            if stored is None:
                self._cache.pop(self._key(server))
                raise TransportFailedError(needs_auth_fault(_WITHDRAWN))
            if stored.tokens != grant.tokens:
                return self._of_another(server, stored)
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_AGAIN_S):
                    await news.wait()
        try:
            if self._is_replaced(server, held, grant):
                return self._of_another(server, held)
            return await work(claim)
        finally:
            try:
                await self._store.release(owner, claim)
            except ServiceError as error:
                logger.warning("a claim to renew a token was not released; it will expire (%s)", error.code)

    def _is_replaced(self, server: McpServer, held: Grant, grant: Grant) -> bool:
        """Whether the stored grant is to be used in place of `grant`. One without a consent is for
        this configuration only."""
        if held.binding != grant.binding:
            return _is_consent(server)
        return held.tokens != grant.tokens

    def _of_another(self, server: McpServer, grant: Grant) -> Grant:
        """The grant that another process, or a person, stored instead."""
        is_usable = grant.access_token is not None or grant.has_subject(self._clock.now())
        if grant.binding != binding_of(server.config) or not is_usable:
            raise TransportFailedError(needs_auth_fault(_WITHDRAWN))
        self._take(server, grant)
        return grant

    async def _ended(self, server: McpServer, grant: Grant, claim: str | None) -> Grant:
        """Store that the grant is of no use any more; return the one that was stored instead
        meanwhile."""
        if not await self.store(
            server, replace(grant, access_token=None, refresh_token=None, subject=None), claim=claim
        ):
            return await self._stored_instead(server)
        raise TransportFailedError(needs_auth_fault(_WITHDRAWN))

    async def _stored_instead(self, server: McpServer) -> Grant:
        """The grant that a person stored during a renewal. Raises TransportFailedError if they
        deleted it."""
        stored = await self._stored(server)
        if stored is None:
            raise TransportFailedError(needs_auth_fault(_WITHDRAWN))
        return self._of_another(server, stored)

    async def _next(self, server: McpServer, grant: Grant, claim: str | None) -> Grant:
        try:
            by = self._obtaining.next if grant.subject is None else self._on_behalf.exchanged
            renewed = await by(server, grant)
        except TokenRefusedError:
            return await self._ended(server, grant, claim)
        return await self._stored_or_instead(server, renewed, claim)

    async def _stored_or_instead(self, server: McpServer, grant: Grant, claim: str | None) -> Grant:
        if not await self.store(server, grant, claim=claim) and _is_consent(server):
            return await self._stored_instead(server)
        return grant

    async def _first(self, server: McpServer, challenge: Challenge) -> Grant:
        """Request a token for the client, from the authorization server that the MCP server
        names."""
        former = await self.grant(server)

        async def request(claim: str | None) -> Grant:
            grant = await self._obtaining.first(server, challenge, former)
            return await self._stored_or_instead(server, grant, claim)

        return await request(None) if former is None else await self._claiming(server, former, request)

    async def _once(self, server: McpServer, work: Callable[[], Coroutine[None, None, Grant]]) -> Grant:
        """Run `work`, or wait for the one in progress for the same server."""
        return await self._under_way.result(self._key(server), work)

    def _key(self, server: McpServer) -> _Key:
        return grant_owner(server), binding_of(server.config)

    async def _stored(self, server: McpServer) -> Grant | None:
        generation, key = self._generation, self._key(server)
        for grant in await self._store.load(key[0]):
            if grant.binding == key[1]:
                self._hide(server, grant)
                if generation == self._generation:
                    self._cache.put(key, grant)
                return grant
        return None

    def _take(self, server: McpServer, grant: Grant) -> None:
        self._hide(server, grant)
        self._cache.put(self._key(server), grant)

    def _hide(self, server: McpServer, grant: Grant) -> None:
        tokens = (*grant.tokens, grant.client.secret)
        self._secrets.hide(server, *(token for token in tokens if token is not None))


def _is_consent(server: McpServer) -> bool:
    """Whether a person gave the grant, by a consent or a sign-in: it is used only while it is
    stored."""
    return not isinstance(server.config.auth, ClientCredentialsAuth)


def _not_authorized(server: McpServer) -> str:
    return _NOT_SIGNED_IN if server.config.is_on_behalf else _NOT_AUTHORIZED
