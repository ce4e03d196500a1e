"""Model providers as JSON: never their keys."""

from typing import Annotated, TypedDict, cast

from domain.model_providers.cloud import CloudIdentity, CloudSettings
from domain.model_providers.deployment import Deployment
from domain.model_providers.provider import EchoReasoning, ModelProvider, ProviderKind, ProviderWire
from domain.model_providers.provider_check import (
    ProviderCheck,
    ProviderCheckName,
    ProviderCheckOutcome,
    ProviderCheckResult,
)
from domain.threads.message_json import timestamp
from interfaces.http.runs.views import ProviderErrorView
from interfaces.http.secrets.reference_views import WriteOnlyView, write_only_view
from interfaces.http.view_fields import CreatedAt, Items, NextCursor, UpdatedAt, Version


class DeploymentView(TypedDict):
    """A deployment; null is the provider's own `base_url` or `api_key`."""

    name: Annotated[str, "`[a-z0-9][a-z0-9_-]{0,63}`, unique in the provider."]
    base_url: Annotated[str | None, "Its address; null: the provider's."]
    api_key: Annotated[WriteOnlyView | None, "Its key: `[hidden]`, or the name of a secret; null: the provider's."]
    weight: Annotated[int, "Its share of the threads."]


class CloudView(TypedDict):
    """Region, project and identity of a provider in a cloud."""

    region: Annotated[str | None, "Of Vertex AI and Bedrock, such as `europe-west1` or `eu-central-1`."]
    project: Annotated[str | None, "The project of Google Cloud, for kind vertex."]
    identity: Annotated[
        CloudIdentity,
        "`key`: the provider's key. `service`: the identity of the machine that Dragoman runs on, if the operator permits it; "
        "only in the default organization.",
    ]
    role: Annotated[str | None, "ARN of a role of AWS that is assumed."]
    profile: Annotated[str | None, "Profile of the machine's configuration of AWS, with the identity `service`."]
    tenant_id: Annotated[
        str | None, "Tenant of Microsoft Entra, for kind azure; the key is then the application's secret."
    ]
    client_id: Annotated[str | None, "The application of Microsoft Entra, or the managed identity of the machine."]


class ModelProviderView(TypedDict):
    """A provider; `api_key` is `[hidden]`, the name of a secret, or null."""

    name: Annotated[str, "`[a-z0-9][a-z0-9_-]{0,63}`; models are then `NAME:model`."]
    kind: Annotated[ProviderKind, "The vendor of its API."]
    base_url: Annotated[str, "Its address. Default: the vendor's own."]
    wire: Annotated[
        ProviderWire,
        "`responses`, `chat`, `native`, or `auto`: `responses` at OpenAI itself, `native` at Vertex AI and at addresses of "
        "Bedrock without a path, `chat` elsewhere. Only `auto` for kind anthropic. `native` is the vendor's own API (kinds "
        "bedrock, google, vertex) and needs the extra `providers`.",
    ]
    echo_reasoning: Annotated[
        EchoReasoning,
        "Of chat completions: where a provider that shows the model's reasoning gets it back. `tool_loop`: after the "
        "last message of the user, and before it where the model requires it; `always`; `never`.",
    ]
    api_key: Annotated[
        WriteOnlyView | None,
        "Its key: `[hidden]`, or the name of a secret; null: no key is sent. Of kind vertex the JSON of a service account, of "
        "kind bedrock an API key or `ID:SECRET` of an access key.",
    ]
    cloud: Annotated[CloudView | None, "Of kinds azure, bedrock and vertex: region, project and identity."]
    deployments: Annotated[
        list[DeploymentView],
        "Places that serve its models; each thread uses one of them, and another one while that one refuses.",
    ]
    version: Version
    created_at: CreatedAt
    updated_at: UpdatedAt


class ProviderCheckView(TypedDict):
    """One line of a test."""

    deployment: Annotated[str | None, "The deployment that was tested; null: the provider itself."]
    check: Annotated[ProviderCheckName, "What was tested."]
    outcome: Annotated[ProviderCheckOutcome, "`skipped` after a failure, or without a model."]
    detail: Annotated[str, "The outcome in a sentence."]
    latency_ms: Annotated[int, "How long the provider took."]
    provider_error: Annotated[ProviderErrorView | None, "What the provider said, without its key; null if nothing."]


class ProviderTestView(TypedDict):
    """The outcome of a test."""

    ok: Annotated[bool, "Whether every check succeeded."]
    provider: Annotated[str, "The provider."]
    model: Annotated[str | None, "The model that was tested, as `PROVIDER:NAME`; null: none."]
    checks: Annotated[list[ProviderCheckView], "Credentials, model, tool call and streaming of each deployment."]


class ModelNamesView(TypedDict):
    """Models as the provider lists them, which may be more than the key may use."""

    data: Annotated[list[str], "Names as `PROVIDER:NAME`, at most 2000."]


class ModelProviderPage(TypedDict):
    """A page of providers; `next_cursor` is null on the last one."""

    data: Items[ModelProviderView]
    next_cursor: NextCursor


def model_provider_view(provider: ModelProvider) -> ModelProviderView:
    return {
        "name": provider.name,
        "kind": provider.kind,
        "base_url": provider.base_url,
        "wire": provider.wire,
        "echo_reasoning": provider.echo_reasoning,
        "api_key": None if provider.api_key is None else write_only_view(provider.api_key),
        "cloud": None if provider.cloud is None else _cloud_view(provider.cloud),
        "deployments": [_deployment_view(deployment) for deployment in provider.deployments],
        "version": provider.version,
        "created_at": timestamp(provider.created_at),
        "updated_at": timestamp(provider.updated_at),
    }


def provider_test_view(result: ProviderCheckResult) -> ProviderTestView:
    return {
        "ok": result.ok,
        "provider": result.provider,
        "model": result.model,
        "checks": [_check_view(check) for check in result.checks],
    }


def _check_view(check: ProviderCheck) -> ProviderCheckView:
    said = check.provider_error
    return {
        "deployment": check.deployment,
        "check": check.check,
        "outcome": check.outcome,
        "detail": check.detail,
        "latency_ms": check.latency_ms,
        "provider_error": None if said is None else cast(ProviderErrorView, said.to_json()),
    }


def _cloud_view(cloud: CloudSettings) -> CloudView:
    return {
        "region": cloud.region,
        "project": cloud.project,
        "identity": cloud.identity,
        "role": cloud.role,
        "profile": cloud.profile,
        "tenant_id": cloud.tenant_id,
        "client_id": cloud.client_id,
    }


def _deployment_view(deployment: Deployment) -> DeploymentView:
    return {
        "name": deployment.name,
        "base_url": deployment.base_url,
        "api_key": None if deployment.api_key is None else write_only_view(deployment.api_key),
        "weight": deployment.weight,
    }
