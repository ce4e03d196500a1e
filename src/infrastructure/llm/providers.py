"""A provider of models as a value: where it is reached and with which key."""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import urlsplit


class ProviderKind(StrEnum):
    """The wire a provider speaks; values are part of the public contract."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"


OFFICIAL_BASE_URLS = {
    ProviderKind.OPENAI: "https://api.openai.com/v1",
    ProviderKind.ANTHROPIC: "https://api.anthropic.com",
}
SCRIPTED = "scripted"
"""The provider that needs no network, always there; its models are scripts."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_KEY = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderConfig:
    """A provider. `name` is what stands before the colon in `PROVIDER:NAME`.

    `base_url` is as the provider's own clients take it (`https://api.openai.com/v1`, `https://api.anthropic.com`);
    `api_key` None sends none, for servers that want none. Providers whose models cannot see get `image_input` False:
    images then reach them described in words. Raises ValueError for values that cannot work, never naming the key.
    """

    name: str
    kind: ProviderKind
    base_url: str
    api_key: str | None = field(default=None, repr=False)
    image_input: bool = True

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or self.name == SCRIPTED:
            raise ValueError(f"provider name {self.name!r} must match [a-z0-9][a-z0-9_-]* and not be {SCRIPTED!r}")
        if self.api_key is not None and not _KEY.fullmatch(self.api_key):
            raise ValueError(f"the API key of provider {self.name!r} must be printable ASCII without spaces")
        url = urlsplit(self.base_url)
        if url.username is not None or url.password is not None:
            raise ValueError(f"the base URL of provider {self.name!r} must not hold credentials")
        if url.scheme not in {"http", "https"} or not url.hostname:
            raise ValueError(f"the base URL of provider {self.name!r} must look like {OFFICIAL_BASE_URLS[self.kind]}")
        if url.query or url.fragment:
            raise ValueError(f"the base URL of provider {self.name!r} must not hold a query or fragment")

    @property
    def is_official(self) -> bool:
        """Whether this is the vendor itself rather than a server that speaks its wire."""
        return urlsplit(self.base_url).hostname == urlsplit(OFFICIAL_BASE_URLS[self.kind]).hostname

    @property
    def lacks_key(self) -> bool:
        """Whether calls are bound to be refused for want of a key."""
        return self.is_official and self.api_key is None
