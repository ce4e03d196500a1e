"""Signatures per Standard Webhooks (github.com/standard-webhooks/standard-webhooks, 1.0.0),
symmetric scheme v1."""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from domain.ids import OrganizationId

SECRET_PREFIX = "whsec_"
MIN_KEY_BYTES, MAX_KEY_BYTES = 24, 64
NEW_KEY_BYTES = 32
OVERLAP = timedelta(hours=24)
"""How long a replaced key continues to sign beside its successor."""
_MAX_KEYS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookKey:
    """An organization's signing key, valid until `expires_at`; None for the newest key."""

    id: str
    organization_id: OrganizationId
    secret: str = field(repr=False)
    created_at: datetime
    expires_at: datetime | None = None


def new_secret(random: bytes) -> str:
    """The text form of a key of NEW_KEY_BYTES random bytes."""
    return SECRET_PREFIX + base64.b64encode(random).decode()


def signing_keys(text: str) -> tuple[bytes, ...]:
    """The keys in `whsec_<base64>`, or in several of them separated by spaces, which all sign. A
    named secret is rotated that way.

    Raises ValueError for other input, without quoting it.
    """
    found = tuple(_key(each) for each in text.split())
    if not 1 <= len(found) <= _MAX_KEYS:
        raise ValueError(f"between 1 and {_MAX_KEYS} signing secrets are required")
    return found


def signed_headers(message_id: str, at: datetime, body: bytes, keys: Sequence[bytes]) -> dict[str, str]:
    """`webhook-id`, `webhook-timestamp` (whole seconds), and `webhook-signature` with one signature
    per key."""
    stamp = str(int(at.timestamp()))
    content = b".".join((message_id.encode(), stamp.encode(), body))
    signatures = [base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode() for key in keys]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": stamp,
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
    }


def _key(text: str) -> bytes:
    if not text.startswith(SECRET_PREFIX):
        raise ValueError(f"a signing secret begins with {SECRET_PREFIX}")
    try:
        key = base64.b64decode(text.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("a signing secret is base64") from None
    if not MIN_KEY_BYTES <= len(key) <= MAX_KEY_BYTES:
        raise ValueError(f"a signing key has {MIN_KEY_BYTES} to {MAX_KEY_BYTES} bytes")
    return key
