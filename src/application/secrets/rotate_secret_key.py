"""RotateSecretKey: encrypt everything with the newest key, step by step."""

from dataclasses import dataclass

from application.audit.entries import audit_entry
from application.audit.ports import AuditLog, SealKeys
from application.secrets.ports import KeyRing, SecretVault
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.identity.api_key import Principal
from domain.identity.role import Role

STEP = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationProgress:
    """The result of one step. The rotation is complete when nothing remains."""

    reencrypted: int
    remaining: int


class RotateSecretKey:
    """Rules:
    - Requires a platform key; applies to all organizations.
    - Each execution is one bounded step; repeat until nothing remains.
    - A generated key is replaced by a new one in the first step and deleted after the last. Keys of
      the operator (DRAGOMAN_SECRET_KEY, newest first) are not changed.
    - Seals of the audit trail stay valid: the sealing keys of older secret keys are stored first.
    - An interrupted rotation loses nothing: keys are on disk before they are used, and the next
      execution continues.
    - Completion is audited as `secret.key_rotated`.

    Raises: ServiceError role_insufficient, platform_key_required, secret_undecryptable,
    secret_key_unusable.
    """

    def __init__(
        self,
        *,
        vault: SecretVault,
        key_ring: KeyRing,
        seal_keys: SealKeys,
        audit_log: AuditLog,
        clock: Clock,
        ids: IdSource,
        step: int = STEP,
    ) -> None:
        self._vault = vault
        self._key_ring = key_ring
        self._seal_keys = seal_keys
        self._audit_log = audit_log
        self._clock = clock
        self._ids = ids
        self._step = step

    async def execute(self, principal: Principal) -> RotationProgress:
        principal.require(Role.ADMIN)
        principal.require_platform()
        self._key_ring.begin_rotation()
        await self._seal_keys.all()
        done = await self._vault.reencrypt(self._step)
        if done.remaining == 0:
            self._key_ring.finish_rotation()
            await self._audit_log.record(
                audit_entry(
                    principal, AuditAction.SECRET_KEY_ROTATED, "secret-key", ids=self._ids, at=self._clock.now()
                )
            )
        return RotationProgress(reencrypted=done.reencrypted, remaining=done.remaining)
