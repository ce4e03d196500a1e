"""Headers of requests to a provider, with its key."""

from domain.model_providers.provider import ProviderKind
from infrastructure.http.sessions import ENCODINGS
from infrastructure.llm.providers import ProviderConfig

_ANTHROPIC_VERSION = "2023-06-01"
_KEY_HEADERS = {ProviderKind.ANTHROPIC: "x-api-key", ProviderKind.AZURE: "api-key"}
"""Of kinds that do not take the key as a bearer token."""


def call_headers(provider: ProviderConfig) -> dict[str, str]:
    """For calls of models, whose replies may be streams."""
    return {
        "content-type": "application/json",
        **headers_of(provider),
        "accept": "application/json, text/event-stream",
    }


def headers_of(provider: ProviderConfig) -> dict[str, str]:
    headers = {"accept": "application/json", "accept-encoding": ENCODINGS, "user-agent": "dragoman"}
    key = provider.header_key
    if provider.kind is ProviderKind.ANTHROPIC:
        headers["anthropic-version"] = _ANTHROPIC_VERSION
    if key is not None:
        name = _KEY_HEADERS.get(provider.kind)
        headers |= {"authorization": f"Bearer {key}"} if name is None else {name: key}
    return headers
