"""Model providers as JSON: never their keys."""

from typing import TypedDict

from domain.model_providers.deployment import Deployment
from domain.model_providers.provider import ModelProvider
from domain.threads.message_json import timestamp
from interfaces.http.secrets.reference_views import WriteOnlyView, write_only_view


class DeploymentView(TypedDict):
    """A deployment; null is the provider's own `base_url` or `api_key`."""

    name: str
    base_url: str | None
    api_key: WriteOnlyView | None
    weight: int


class ModelProviderView(TypedDict):
    """A provider; `api_key` is `[hidden]`, the name of a secret, or null."""

    name: str
    kind: str
    base_url: str
    wire: str
    echo_reasoning: str
    api_key: WriteOnlyView | None
    deployments: list[DeploymentView]
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
        "wire": provider.wire.value,
        "echo_reasoning": provider.echo_reasoning.value,
        "api_key": None if provider.api_key is None else write_only_view(provider.api_key),
        "deployments": [_deployment_view(deployment) for deployment in provider.deployments],
        "version": provider.version,
        "created_at": timestamp(provider.created_at),
        "updated_at": timestamp(provider.updated_at),
    }


def _deployment_view(deployment: Deployment) -> DeploymentView:
    return {
        "name": deployment.name,
        "base_url": deployment.base_url,
        "api_key": None if deployment.api_key is None else write_only_view(deployment.api_key),
        "weight": deployment.weight,
    }
