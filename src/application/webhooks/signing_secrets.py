"""Finds the address of an inbox's webhook, and the signing keys of a delivery: the secret that its
webhook names, otherwise the organization's key, created on first use."""

import secrets as randomness
from collections.abc import Callable

from application.secrets.ports import SecretStore
from application.system.ports import Clock, IdSource
from application.webhooks.ports import WebhookKeyStore
from domain.ids import OrganizationId
from domain.runs.webhook import Webhook
from domain.webhooks.signing import NEW_KEY_BYTES, WebhookKey, new_secret, signing_keys


class NoAddress(Exception):
    """The secret with the address of an inbox's webhook is missing, or is no address."""


class SigningSecrets:
    """Rules:
    - A named secret signs alone, with its current value.
    - An organization's key signs together with its predecessor for a day.
    """

    def __init__(
        self,
        *,
        secrets: SecretStore,
        keys: WebhookKeyStore,
        clock: Clock,
        ids: IdSource,
        random: Callable[[int], bytes] = randomness.token_bytes,
    ) -> None:
        self._secrets = secrets
        self._keys = keys
        self._clock = clock
        self._ids = ids
        self._random = random

    async def of(self, organization_id: OrganizationId, webhook: Webhook) -> tuple[bytes, ...]:
        """The signing keys, newest first. Raises ValueError if the named secret is missing or
        malformed."""
        if webhook.secret is not None:
            value = await self._secrets.value(organization_id, webhook.secret.name)
            if value is None:
                raise ValueError("there is no such secret")
            return signing_keys(value)
        found = await self._keys.in_force(organization_id, at=self._clock.now())
        if not any(key.expires_at is None for key in found):
            await self._keys.add_first(self.new_key(organization_id))
            found = await self._keys.in_force(organization_id, at=self._clock.now())
        return tuple(each for key in found for each in signing_keys(key.secret))

    async def inbox(self, organization_id: OrganizationId, secret: str) -> Webhook:
        """The webhook of an organization's inbox, whose address the secret has. Raises
        NoAddress."""
        value = await self._secrets.value(organization_id, secret)
        webhook = None if value is None else Webhook(url=value.strip())
        if webhook is None or not webhook.has_address:
            raise NoAddress
        return webhook

    def new_key(self, organization_id: OrganizationId) -> WebhookKey:
        """A new key that is not stored."""
        return WebhookKey(
            id=self._ids.new("whs"),
            organization_id=organization_id,
            secret=new_secret(self._random(NEW_KEY_BYTES)),
            created_at=self._clock.now(),
        )
