"""Validates a webhook when an object that carries it is stored."""

from application.secrets.ports import SecretStore
from application.system.ports import OutboundPolicy
from domain.errors import Violation, invalid
from domain.ids import OrganizationId
from domain.runs.webhook import Webhook
from domain.webhooks.signing import signing_keys


class WebhookCheck:
    """Rules:
    - The URL is http or https, without credentials, and its address may be requested as far as the
      text shows. Host names are checked again when they are resolved.
    - The events are known.
    - A named secret exists and is a signing secret.
    """

    def __init__(self, *, outbound: OutboundPolicy, secrets: SecretStore) -> None:
        self._outbound = outbound
        self._secrets = secrets

    async def require_usable(self, organization_id: OrganizationId, webhook: Webhook, *, path: str = "webhook") -> None:
        """Raise INVALID `webhook_invalid` with all violations."""
        refusal = self._outbound.refusal(webhook.url)
        found = webhook.violations(path)
        if refusal is not None:
            found.insert(0, Violation(path=f"{path}.url", message=refusal))
        if webhook.secret is not None and not found:
            found += await self._secret_violations(organization_id, webhook.secret.name, f"{path}.secret")
        if found:
            raise invalid("webhook_invalid", "The webhook cannot be used.", *found)

    async def _secret_violations(self, organization_id: OrganizationId, name: str, path: str) -> list[Violation]:
        value = await self._secrets.value(organization_id, name)
        if value is None:
            return [Violation(path=path, message=f"there is no secret {name!r}")]
        try:
            signing_keys(value)
        except ValueError:
            return [Violation(path=path, message="must name a signing secret: whsec_ and 24 to 64 bytes in base64")]
        return []
