"""ClientHandshakes: handshake settings of clients with older MCP versions, sealed into the client's
id."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from application.gateway.ports import GatewayClientStore
from application.system.lru import LruCache
from application.system.ports import Clock, IdSource
from application.tools.ports import Box
from domain.errors import ErrorKind, ServiceError
from domain.gateway.client import ClientSettings, GatewayClient
from domain.gateway.session import GatewaySession
from domain.ids import GatewayClientId, OrganizationId, derived_id
from domain.json_value import JsonObject

CAPACITY = 10_000
MAX_CAPABILITIES_BYTES = 2_048
"""Limit of capabilities as JSON, because each request carries them; above it only the names are
stored."""
_PURPOSE = "gateway client"
"""Other values that this box encrypts are rejected as ids."""
_MAX_SEALED = 8_192


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    organization_id: OrganizationId
    settings: ClientSettings
    at: float


class ClientHandshakes:
    """Rules:
    - A client's id contains its handshake, sealed with the service's key, so any process serves it.
    - An id that was changed, belongs to another token, or to an ended client, is unknown.
    - Each handshake of a token's holder creates another client.
    - Settings are cached for `fresh_s`; while this process gets change notifications
      (`is_notified`), until the next change.
    - `on_change` is called after a change here. Ids of a key's daily sessions stay valid on the
      next day.
    """

    def __init__(
        self,
        *,
        clients: GatewayClientStore,
        box: Box,
        clock: Clock,
        ids: IdSource,
        is_notified: Callable[[], bool],
        fresh_s: float = 0.5,
        on_change: Callable[[OrganizationId], None] = lambda _: None,
    ) -> None:
        self._clients = clients
        self._on_change = on_change
        self._box = box
        self._clock = clock
        self._ids = ids
        self._is_notified = is_notified
        self._fresh_s = fresh_s
        self._opened: LruCache[tuple[str, str], GatewayClient] = LruCache(CAPACITY)
        self._read: LruCache[GatewayClientId, _Read] = LruCache(CAPACITY)
        self._generation = 0

    def shaken(self, session: GatewaySession, version: str, capabilities: JsonObject) -> str:
        """The id of a new client: visible ASCII."""
        told: JsonObject = {
            "purpose": _PURPOSE,
            "holder": _holder(session),
            "client": self._ids.new("gwc"),
            "version": version,
            "capabilities": _bounded(capabilities),
        }
        return self._box.encrypt(json.dumps(told, separators=(",", ":")).encode()).decode()

    async def of(self, session: GatewaySession, sealed: str) -> GatewayClient:
        """The client of that id. Raises NOT_FOUND `gateway_client_not_found`."""
        client = self._client(session, sealed)
        if (await self.settings(client)).ended_at is not None:
            raise _unknown()
        return client

    async def settings(self, client: GatewayClient) -> ClientSettings:
        """The client's settings, cached as the rules allow."""
        known = self._read.get(client.id)
        if known is not None and (self._is_notified() or self._clock.monotonic() - known.at < self._fresh_s):
            return known.settings
        generation, at = self._generation, self._clock.monotonic()
        settings = await self._clients.settings(client.organization_id, client.id)
        if generation == self._generation:
            self._read.put(client.id, _Read(organization_id=client.organization_id, settings=settings, at=at))
        return settings

    async def change(self, client: GatewayClient, change: Callable[[ClientSettings], ClientSettings]) -> ClientSettings:
        """Store a change. Raises what `change` raises, and NOT_FOUND `gateway_client_not_found`."""
        changed = await self._clients.change(client, change)
        # A read under way may return old settings.
        self._generation += 1
        self._read.pop(client.id)
        if changed is None:
            raise _unknown()
        self._on_change(client.organization_id)
        return changed

    async def end(self, client: GatewayClient) -> None:
        """End the client: its id becomes invalid. Raises NOT_FOUND `gateway_client_not_found`."""
        now = self._clock.now()
        await self.change(client, lambda known: known.ended(now))

    def forget_organization(self, organization_id: OrganizationId | None) -> None:
        """Invalidate settings after a change elsewhere. None: of all organizations."""
        self._generation += 1
        for client_id, read in self._read.items():
            if organization_id is None or read.organization_id == organization_id:
                self._read.pop(client_id)

    def _client(self, session: GatewaySession, sealed: str) -> GatewayClient:
        key = (session.id, sealed)
        client = self._opened.get(key)
        if client is None:
            client = self._unsealed(session, sealed)
            self._opened.put(key, client)
        return client

    def _unsealed(self, session: GatewaySession, sealed: str) -> GatewayClient:
        if len(sealed) > _MAX_SEALED:
            raise _unknown()
        try:
            told = json.loads(self._box.decrypt(sealed.encode("latin-1", "replace")))
        except (ServiceError, ValueError) as exc:
            raise _unknown() from exc
        if not isinstance(told, dict) or (told.get("purpose"), told.get("holder")) != (_PURPOSE, _holder(session)):
            raise _unknown()
        return GatewayClient(
            id=GatewayClientId(str(told["client"])),
            organization_id=session.organization_id,
            session_id=session.id,
            version=str(told["version"]),
            capabilities=cast(JsonObject, told["capabilities"]),
        )


def _holder(session: GatewaySession) -> str:
    """The owner of the id: the session, or, without a token, the key and its agent."""
    if session.token_hash is not None:
        return session.id
    return derived_id("gwh", session.created_by, session.agent_id)


def _bounded(capabilities: JsonObject) -> JsonObject:
    if len(json.dumps(capabilities)) <= MAX_CAPABILITIES_BYTES:
        return capabilities
    names = (name for name, value in capabilities.items() if len(name) <= 32 and isinstance(value, dict))
    return {name: {} for name, _ in zip(sorted(names), range(16), strict=False)}


def _unknown() -> ServiceError:
    return ServiceError(
        "gateway_client_not_found",
        ErrorKind.NOT_FOUND,
        "There is no client of this Mcp-Session-Id any more: initialize again.",
    )
