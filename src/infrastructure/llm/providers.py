"""A provider of models as a value: where it is reached and with which key."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from domain.model_providers.provider import (
    OFFICIAL_BASE_URLS,
    SCRIPTED,
    ProviderKind,
    base_url_fault,
    is_legal_api_key,
    is_legal_provider_name,
)
from infrastructure.secrets.redaction import Redactor


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderConfig:
    """A provider. `name` is what stands before the colon in `PROVIDER:NAME`.

    `base_url` is as the provider's own clients take it (`https://api.openai.com/v1`, `https://api.anthropic.com`);
    `api_key` None sends none, for servers that want none. Providers whose models cannot see get `image_input` False:
    images then reach them described in words. `guarded` is False for those that the operator set up, whose addresses are
    not held to the egress guard. Raises ValueError for values that cannot work, never naming the key.
    """

    name: str
    kind: ProviderKind
    base_url: str
    api_key: str | None = field(default=None, repr=False)
    image_input: bool = True
    guarded: bool = False

    def __post_init__(self) -> None:
        if not is_legal_provider_name(self.name):
            raise ValueError(f"provider name {self.name!r} must match [a-z0-9][a-z0-9_-]* and not be {SCRIPTED!r}")
        if self.api_key is not None and not is_legal_api_key(self.api_key):
            raise ValueError(f"the API key of provider {self.name!r} must be printable ASCII without spaces")
        fault = base_url_fault(self.base_url, self.kind)
        if fault is not None:
            raise ValueError(f"the base URL of provider {self.name!r} {fault}")

    def redactor(self) -> Redactor:
        """Hides the key. It knows no other secret: a provider must not learn whether its words are one of another
        organization."""
        return Redactor(() if self.api_key is None else (self.api_key,))

    @property
    def is_official(self) -> bool:
        """Whether this is the vendor itself rather than a server that speaks its wire."""
        return urlsplit(self.base_url).hostname == urlsplit(OFFICIAL_BASE_URLS[self.kind]).hostname

    @property
    def lacks_key(self) -> bool:
        """Whether calls are bound to be refused for want of a key."""
        return self.api_key is None and self.is_official
