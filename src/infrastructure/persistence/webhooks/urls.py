"""URLs of webhooks, which may contain secrets: encrypted in a separate column beside the readable
note."""

from domain.json_value import JsonObject
from domain.runs.webhook import Webhook, WebhookNote
from infrastructure.persistence.secrets.box import SecretBox


def sealed_url(url: str | None, box: SecretBox) -> bytes | None:
    """The column's value; None without a webhook."""
    return None if url is None else box.encrypt(url.encode("utf-8", "surrogatepass"))


def webhook_of(note: JsonObject, sealed: bytes, box: SecretBox) -> Webhook:
    """From the two columns. Raises INTERNAL `secret_undecryptable`, and ValueError, TypeError or
    KeyError for invalid values."""
    return WebhookNote.from_json(note).at(box.decrypt(sealed).decode("utf-8", "surrogatepass"))
