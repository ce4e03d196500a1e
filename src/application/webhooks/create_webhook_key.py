"""CreateWebhookKey: create a new signing key for an organization's webhooks."""

from dataclasses import dataclass
from datetime import datetime

from application.audit.entries import audit_entry
from application.system.ports import Clock, IdSource
from application.webhooks.ports import WebhookKeyStore
from application.webhooks.signing_secrets import SigningSecrets
from domain.audit.event import AuditAction
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.webhooks.signing import OVERLAP, WebhookKey


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedWebhookKey:
    """The key with its secret, which is shown only once. The previous key signs too until
    `former_signs_until`."""

    key: WebhookKey
    former_signs_until: datetime | None


class CreateWebhookKey:
    """Rules:
    - Admins create keys.
    - The new key signs at once, the previous one also signs for a day, and older ones stop. Two new
      keys in a row thus disable a leaked key.
    - Audited as `webhook_key.created`, without the secret.

    Raises: ServiceError role_insufficient.
    """

    def __init__(self, *, keys: WebhookKeyStore, secrets: SigningSecrets, clock: Clock, ids: IdSource) -> None:
        self._keys = keys
        self._secrets = secrets
        self._clock = clock
        self._ids = ids

    async def execute(self, principal: Principal) -> CreatedWebhookKey:
        principal.require(Permission.WEBHOOKS_MANAGE)
        principal.require_self()
        key = self._secrets.new_key(principal.organization_id)
        until = self._clock.now() + OVERLAP
        audit = audit_entry(
            principal, AuditAction.WEBHOOK_KEY_CREATED, principal.organization_id, ids=self._ids, at=key.created_at
        )
        had_one = await self._keys.replace(key, former_until=until, audit=audit)
        return CreatedWebhookKey(key=key, former_signs_until=until if had_one else None)
