"""RotateSecretKey: bring everything that is encrypted under the newest key, a step at a time."""

from dataclasses import dataclass

from application.audit.entries import audit_entry
from application.audit.ports import AuditLog
from application.secrets.ports import KeyRing, SecretVault
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.identity.api_key import Principal
from domain.identity.role import Role

STEP = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class RotateSecretKeyCommand:
    """Begin, or go on."""

    principal: Principal


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationProgress:
    """What this step did. With nothing remaining the rotation is complete."""

    reencrypted: int
    remaining: int


class RotateSecretKey:
    """Holders of a platform key rotate, for all organizations at once.

    Each execution does a bounded step; repeat it until nothing remains. A key of ours is replaced by a new one at the
    first step and thrown away after the last; keys the operator gives (DRAGOMAN_SECRET_KEY, newest first) stay theirs.
    An interrupted rotation loses nothing: the keys are on disk before anything is encrypted with them, and the next
    execution goes on. Completion is audited `secret.key_rotated`.
    """

    def __init__(
        self,
        *,
        vault: SecretVault,
        key_ring: KeyRing,
        audit_log: AuditLog,
        clock: Clock,
        ids: IdSource,
        step: int = STEP,
    ) -> None:
        self._vault = vault
        self._key_ring = key_ring
        self._audit_log = audit_log
        self._clock = clock
        self._ids = ids
        self._step = step

    async def execute(self, command: RotateSecretKeyCommand) -> RotationProgress:
        """One step. Raises FORBIDDEN, INTERNAL `secret_undecryptable`, `secret_key_unusable`."""
        principal = command.principal
        principal.require(Role.ADMIN)
        principal.require_platform()
        self._key_ring.begin_rotation()
        done = await self._vault.reencrypt(self._step)
        if done.remaining == 0:
            self._key_ring.finish_rotation()
            await self._audit_log.record(
                audit_entry(
                    principal, AuditAction.SECRET_KEY_ROTATED, "secret-key", ids=self._ids, at=self._clock.now()
                )
            )
        return RotationProgress(reencrypted=done.reencrypted, remaining=done.remaining)
