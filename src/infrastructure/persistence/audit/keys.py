"""Keys of audit seals: derived from the secret keys. Those of older secret keys are stored
encrypted, so that old seals stay valid after a rotation."""

from collections.abc import Sequence
from typing import Protocol

from sqlalchemy import Connection, select

from domain.audit.chain import ChainKey, ChainKeys, chain_key
from domain.errors import ServiceError
from infrastructure.persistence.columns.upsert import upsert
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.tables import audit_key

PURPOSE = b"dragoman/audit-seal/v1"

_stored = select(audit_key.c.id, audit_key.c.secret)
_keep = upsert(audit_key).on_conflict_do_nothing(index_elements=["id"])


class DerivingBox(Protocol):
    """The present secret keys."""

    def encrypt(self, plain: bytes, /) -> bytes:
        """Encrypts with the newest key."""

    def decrypt(self, sealed: bytes, /) -> bytes:
        """Decrypts with the matching key. Raises INTERNAL `secret_undecryptable`."""

    def derived(self, purpose: bytes, /) -> tuple[bytes, ...]:
        """32 bytes for this purpose from each key, newest first."""


class SqlSealKeys:
    """The `SealKeys` port. The key of the newest secret key is not stored: to encrypt it would load
    the library in an idle service. A stored key that no secret key decrypts is unknown. Keys that
    the present secret keys derive are not decrypted."""

    def __init__(self, *, database: Database, box: DerivingBox) -> None:
        self._database = database
        self._box = box

    def current(self) -> ChainKey:
        return chain_key(self._box.derived(PURPOSE)[0])

    async def all(self) -> ChainKeys:
        derived = [chain_key(secret) for secret in self._box.derived(PURPOSE)]
        current, *older = derived
        stored = await self._database.read(lambda connection: connection.execute(_stored).all(), scope=SYSTEM)
        encrypted = {row.id: row.secret for row in stored}
        await self._keep([key for key in older if key.id not in encrypted])
        known = {key.id: key for key in derived}
        opened = (self._opened(secret) for id_, secret in encrypted.items() if id_ not in known)
        known |= {key.id: key for key in (chain_key(secret) for secret in opened if secret is not None)}
        return ChainKeys(current=current, known=known)

    async def _keep(self, keys: Sequence[ChainKey]) -> None:
        if not keys:
            return
        rows = [{"id": key.id, "secret": self._box.encrypt(key.secret)} for key in keys]

        def keep(connection: Connection) -> None:
            connection.execute(_keep, rows)

        await self._database.write(keep, scope=SYSTEM)

    def _opened(self, encrypted: bytes) -> bytes | None:
        try:
            return self._box.decrypt(encrypted)
        except ServiceError:
            return None
