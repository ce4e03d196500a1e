"""Builders of webhooks and their keys."""

import base64
from dataclasses import replace

from domain.ids import OrganizationId
from domain.runs.events import RunEventType
from domain.runs.run import Run
from domain.runs.webhook import WEBHOOK_EVENTS, Webhook
from domain.secrets.secret import SecretRef
from domain.webhooks.signing import WebhookKey, new_secret
from tests.builders import ORG, START, a_run, after

RECEIVER = "hooks.example.com:443"
URL = f"https://{RECEIVER}/T0K3N"


def a_webhook(
    url: str = URL, *, secret: str | None = None, events: tuple[RunEventType, ...] = WEBHOOK_EVENTS
) -> Webhook:
    return Webhook(url=url, secret=None if secret is None else SecretRef(secret), events=events)


def announcing(run: Run | None = None, webhook: Webhook | None = None) -> Run:
    """The run with a webhook, which is at `https://RECEIVER/T0K3N` when it is stored."""
    return replace(run or a_run(), webhook=(webhook or a_webhook()).note)


def a_signing_secret(seed: int = 1) -> str:
    """`whsec_` and 32 bytes."""
    return new_secret(bytes([seed]) * 32)


def key_bytes(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix("whsec_"))


def a_webhook_key(number: int = 1, *, organization_id: OrganizationId = ORG) -> WebhookKey:
    """Made at that many seconds."""
    return WebhookKey(
        id=f"whs_{number:026d}",
        organization_id=organization_id,
        secret=a_signing_secret(number),
        created_at=START if number == 0 else after(number),
    )
