"""Times of last use of keys: recorded in memory per request and stored periodically, so that reads
cause no write."""

import logging
from datetime import datetime

from application.identity.ports import IdentityStore
from domain.ids import ApiKeyId

logger = logging.getLogger(__name__)

STORE_EVERY_S = 30.0


class KeyUses:
    """Times of use that are not stored yet. A killed process loses those of the last half
    minute."""

    def __init__(self, *, identities: IdentityStore) -> None:
        self._identities = identities
        self._noted: dict[ApiKeyId, datetime] = {}

    def note(self, key_id: ApiKeyId, at: datetime) -> None:
        self._noted[key_id] = at

    async def store(self) -> None:
        """Store the recorded times. They stay recorded if that fails."""
        noted, self._noted = self._noted, {}
        if not noted:
            return
        try:
            await self._identities.record_uses(noted)
        except BaseException:
            self._noted = noted | self._noted
            raise

    async def settle(self) -> None:
        """Store the recorded times; a failure is logged."""
        try:
            await self.store()
        except Exception:
            logger.exception("storing the last uses of keys failed")
