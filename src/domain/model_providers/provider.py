"""Model providers of organizations: base URL, wire protocol and API key."""

import re
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from domain.errors import Violation, invalid
from domain.ids import OrganizationId
from domain.secrets.secret import SecretRef, SecretValue, violations_of

MAX_PROVIDERS = 100
"""Per organization."""
MAX_BASE_URL = 2_048
MAX_API_KEY = 8_192
SCRIPTED = "scripted"
"""The built-in provider without network access; its models are scripts."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_URL = re.compile(r"https?://(?P<authority>[^/?#]+)(?P<path>/[^?#]*)?(?P<rest>[?#].*)?", re.IGNORECASE)
_AUTHORITY = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?")
_KEY = re.compile(r"[\x21-\x7e]+")


class ProviderKind(StrEnum):
    """The wire protocol of a provider. The values are part of the public contract."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"


OFFICIAL_BASE_URLS = {
    ProviderKind.OPENAI: "https://api.openai.com/v1",
    ProviderKind.ANTHROPIC: "https://api.anthropic.com",
}


def is_legal_provider_name(name: str) -> bool:
    """Whether the name can be the first part of `PROVIDER:NAME`."""
    return _NAME.fullmatch(name) is not None and name != SCRIPTED


def is_legal_api_key(key: str) -> bool:
    """Whether the key can be sent in a header."""
    return _KEY.fullmatch(key) is not None


def base_url_fault(url: str, kind: ProviderKind) -> str | None:
    """Why the URL cannot be a base URL, judged by its text alone; None if it can."""
    if len(url) > MAX_BASE_URL or not url.isascii() or not url.isprintable() or " " in url:
        return f"must be up to {MAX_BASE_URL} printable ASCII characters without spaces"
    parts = _URL.fullmatch(url)
    if parts is None:
        return f"must look like {OFFICIAL_BASE_URLS[kind]}"
    if "@" in parts["authority"]:
        return "must not hold credentials"
    authority = _AUTHORITY.fullmatch(parts["authority"])
    if authority is None or (authority["port"] is not None and not 0 < int(authority["port"]) < 65_536):
        return f"must look like {OFFICIAL_BASE_URLS[kind]}"
    if parts["rest"] is not None:
        return "must not hold a query or fragment"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProvider:
    """A provider of one organization. `name` is the part before the colon in `PROVIDER:NAME`;
    `base_url` has the form that the vendor's own clients take. Without `api_key` none is sent.
    `version` counts its changes."""

    organization_id: OrganizationId
    name: str
    kind: ProviderKind
    base_url: str
    api_key: SecretValue | None = field(default=None, repr=False)
    version: int = 1
    created_at: datetime
    updated_at: datetime

    def __post_init__(self) -> None:
        wrong = []
        if not is_legal_provider_name(self.name):
            wrong.append(
                Violation(path="name", message=f"must match [a-z0-9][a-z0-9_-]{{0,63}} and not be {SCRIPTED!r}")
            )
        fault = base_url_fault(self.base_url, self.kind)
        if fault is not None:
            wrong.append(Violation(path="base_url", message=fault))
        wrong += key_violations(self.api_key)
        if wrong:
            raise invalid("model_provider_invalid", "The model provider is not valid.", *wrong)

    @property
    def secret_name(self) -> str | None:
        """The name of the secret that holds the key, if the key is a reference."""
        return self.api_key.name if isinstance(self.api_key, SecretRef) else None


def key_violations(key: SecretValue | None) -> list[Violation]:
    """The violations of a key, which never quote it."""
    if isinstance(key, SecretRef):
        return violations_of("api_key", key)
    if key is not None and (len(key) > MAX_API_KEY or not is_legal_api_key(key)):
        return [Violation(path="api_key", message="must be printable ASCII without spaces")]
    return []
