"""Ends connections with secrets that their person has replaced or deleted. Above: the pool."""

import asyncio
import logging
from collections.abc import Callable, Mapping

from application.mcp.account_secrets import PersonSecretStore
from application.mcp.ports import McpFailure
from domain.errors import ServiceError
from domain.ids import OrganizationId
from infrastructure.mcp.connections.connection import McpConnection
from infrastructure.mcp.connections.connection_key import ConnectionKey, given_revision
from infrastructure.mcp.connections.connection_life import ConnectionLife

logger = logging.getLogger(__name__)


class ReplacedSecrets:
    """Rules:
    - A connection of `live` whose secrets are no longer those of its person, or whose person is not
      active, gets no new calls and ends with its last one (`end`).
    - Connections of others stay open.
    - Changes during a look are looked at afterwards, together. What storage did not tell is looked
      at with the next change.
    """

    def __init__(
        self,
        live: Mapping[McpConnection, ConnectionLife],
        *,
        end: Callable[[McpConnection], None],
        person_secrets: PersonSecretStore | None,
    ) -> None:
        self._live = live
        self._end = end
        self._person_secrets = person_secrets
        self._changed: set[OrganizationId | None] = set()
        self._looking: asyncio.Task[None] | None = None

    def look(self, organization_id: OrganizationId | None) -> None:
        """Accounts of the organization may have changed; None is any organization."""
        if any(key.secrets is not None for life in self._live.values() if (key := life.key) is not None):
            self._changed.add(organization_id)
            if self._looking is None:
                self._looking = asyncio.get_running_loop().create_task(self._look(), name="mcp-replaced-secrets")

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])

    async def _look(self) -> None:
        unseen = set[OrganizationId | None]()
        try:
            while self._changed:
                changed, self._changed = self._changed, set()
                for connection, life in list(self._live.items()):
                    key = life.key
                    if key is None or key.secrets is None or changed.isdisjoint({None, key.organization_id}):
                        continue
                    try:
                        if await self._is_replaced(life, key):
                            self._end(connection)
                    except ServiceError as error:  # no call uses the connection, and the idle timeout ends it
                        unseen.add(key.organization_id)
                        logger.warning("a connection with secrets was not looked at", extra={"code": error.code})
        finally:
            self._changed |= unseen
            self._looking = None

    async def _is_replaced(self, life: ConnectionLife, key: ConnectionKey) -> bool:
        try:
            revision = await given_revision(life.record.server.acting_for(key.person_id), self._person_secrets)
        except McpFailure:
            return True
        return revision != key.secrets
