"""Origin of a provider's items: decides which requests they go back with."""

import re
from urllib.parse import urlsplit

from infrastructure.llm.providers import ProviderConfig

_SNAPSHOT = re.compile(r"[-@:](?:latest|20[0-9]{2}-?[01][0-9]-?[0-3][0-9])$")


def items_origin(provider: ProviderConfig, wire: str, model_name: str) -> str:
    """Provider, its address, wire and model family. The address is in it because a provider may be
    changed to another vendor under the same name."""
    address = urlsplit(provider.base_url)
    return f"{provider.name} {address.netloc}{address.path.rstrip('/')} {wire} {model_family(model_name)}"


def model_family(model_name: str) -> str:
    """The model's name without the date of its snapshot: snapshots of one model accept each other's
    items."""
    return _SNAPSHOT.sub("", model_name.lower())
