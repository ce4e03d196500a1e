"""Model providers as JSON: never their keys."""

from typing import TypedDict

from domain.model_providers.provider import ModelProvider
from domain.threads.message_json import timestamp
from interfaces.http.secrets.reference_views import WriteOnlyView, write_only_view


class ModelProviderView(TypedDict):
    """A provider; `api_key` is `[hidden]`, the name of a secret, or null."""

    name: str
    kind: str
    base_url: str
    api_key: WriteOnlyView | None
    version: int
    created_at: str
    updated_at: str


class ModelProviderPage(TypedDict):
    """A page of providers; `next_cursor` is null on the last one."""

    data: list[ModelProviderView]
    next_cursor: str | None


def model_provider_view(provider: ModelProvider) -> ModelProviderView:
    return {
        "name": provider.name,
        "kind": provider.kind.value,
        "base_url": provider.base_url,
        "api_key": None if provider.api_key is None else write_only_view(provider.api_key),
        "version": provider.version,
        "created_at": timestamp(provider.created_at),
        "updated_at": timestamp(provider.updated_at),
    }
