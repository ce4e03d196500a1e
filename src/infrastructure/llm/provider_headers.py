"""Headers of requests to a provider, with its key."""

from typing import assert_never

from domain.model_providers.provider import ProviderKind
from infrastructure.http.sessions import ENCODINGS
from infrastructure.llm.providers import ProviderConfig

_ANTHROPIC_VERSION = "2023-06-01"


def call_headers(provider: ProviderConfig) -> dict[str, str]:
    """For calls of models, whose replies may be streams."""
    return {
        "content-type": "application/json",
        **headers_of(provider),
        "accept": "application/json, text/event-stream",
    }


def headers_of(provider: ProviderConfig) -> dict[str, str]:
    headers = {"accept": "application/json", "accept-encoding": ENCODINGS, "user-agent": "dragoman"}
    key = provider.api_key
    match provider.kind:
        case ProviderKind.ANTHROPIC:
            headers["anthropic-version"] = _ANTHROPIC_VERSION
            if key is not None:
                headers["x-api-key"] = key
        case ProviderKind.OPENAI:
            if key is not None:
                headers["authorization"] = f"Bearer {key}"
        case _:
            assert_never(provider.kind)
    return headers
