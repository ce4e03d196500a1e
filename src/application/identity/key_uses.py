"""When keys were last used: noted in memory with each request, stored now and then, so that reading stays reading."""

import logging
from datetime import datetime

from application.identity.ports import IdentityStore
from domain.ids import ApiKeyId

logger = logging.getLogger(__name__)

STORE_EVERY_S = 30.0


class KeyUses:
    """Uses that are not stored yet. A process that is killed forgets those of the last half minute."""

    def __init__(self, *, identities: IdentityStore) -> None:
        self._identities = identities
        self._noted: dict[ApiKeyId, datetime] = {}

    def note(self, key_id: ApiKeyId, at: datetime) -> None:
        """The key was used."""
        self._noted[key_id] = at

    async def store(self) -> None:
        """Store what was noted. If that fails it stays noted."""
        noted, self._noted = self._noted, {}
        if not noted:
            return
        try:
            await self._identities.record_uses(noted)
        except BaseException:
            self._noted = noted | self._noted
            raise

    async def settle(self) -> None:
        """Store what was noted; a failure is logged."""
        try:
            await self.store()
        except Exception:
            logger.exception("storing the last uses of keys failed")
