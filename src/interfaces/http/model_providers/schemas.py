"""Bodies of the model provider routes."""

from typing import Annotated, ClassVar

from pydantic import Field

from domain.json_value import JsonObject
from domain.model_providers.cloud import CloudIdentity, CloudSettings
from domain.model_providers.deployment import MAX_DEPLOYMENTS, MAX_WEIGHT, Deployment
from domain.model_providers.provider import EchoReasoning, ProviderKind, ProviderWire
from interfaces.http.bodies import Body, Name, Patch
from interfaces.http.model_providers.views import CloudView, DeploymentView, ModelProviderView
from interfaces.http.secrets.references import WriteOnly, secret_value

Kind = Annotated[ProviderKind, Field(strict=False)]
BaseUrl = Annotated[str, Field(max_length=2_048)]


Wire = Annotated[ProviderWire, Field(strict=False)]
Echo = Annotated[EchoReasoning, Field(strict=False)]


class DeploymentBody(Body):
    """One of several places that serve the provider's models. `base_url` and `api_key` are those of
    the provider, unless given."""

    examples: ClassVar[tuple[JsonObject, ...]] = (
        {"name": "eu", "base_url": "https://eu.example.com/v1", "api_key": {"secret": "ACME_EU"}, "weight": 3},
    )

    shown_as: ClassVar[type] = DeploymentView

    name: Name
    base_url: BaseUrl | None = None
    api_key: WriteOnly | None = Field(default=None, repr=False)
    weight: int = Field(default=1, ge=1, le=MAX_WEIGHT)

    def to_domain(self) -> Deployment:
        return Deployment(
            name=self.name,
            base_url=self.base_url,
            api_key=None if self.api_key is None else secret_value(self.api_key),
            weight=self.weight,
        )


CloudText = Annotated[str, Field(min_length=1, max_length=1_024)]


class CloudBody(Body):
    """Region, project and identity of a provider in a cloud; each kind takes some of these."""

    examples: ClassVar[tuple[JsonObject, ...]] = (
        {"region": "europe-west1", "project": "acme-models"},
        {"region": "eu-central-1", "role": "arn:aws:iam::123456789012:role/models"},
    )

    shown_as: ClassVar[type] = CloudView

    region: CloudText | None = None
    project: CloudText | None = None
    identity: Annotated[CloudIdentity, Field(strict=False)] = CloudIdentity.KEY
    role: CloudText | None = None
    profile: CloudText | None = None
    tenant_id: CloudText | None = None
    client_id: CloudText | None = None

    def to_domain(self) -> CloudSettings:
        return CloudSettings(
            region=self.region,
            project=self.project,
            identity=self.identity,
            role=self.role,
            profile=self.profile,
            tenant_id=self.tenant_id,
            client_id=self.client_id,
        )


Deployments = Annotated[tuple[DeploymentBody, ...], Field(strict=False, max_length=MAX_DEPLOYMENTS)]


class ModelProviderBody(Body):
    """A provider of models. Without `base_url` it is the vendor's own address. `api_key` is
    write-only, or a reference to a named secret; without one no key is sent. With `deployments`,
    calls go to these: each thread to one of them, and to another one while that one refuses."""

    examples: ClassVar[tuple[JsonObject, ...]] = (
        {"name": "acme", "kind": "openai", "base_url": "https://models.example.com/v1", "api_key": {"secret": "ACME"}},
        {"name": "aws", "kind": "bedrock", "cloud": {"region": "eu-central-1"}, "api_key": {"secret": "AWS"}},
    )

    shown_as: ClassVar[type] = ModelProviderView

    name: Name
    kind: Kind
    base_url: BaseUrl | None = None
    wire: Wire = ProviderWire.AUTO
    echo_reasoning: Echo = EchoReasoning.TOOL_LOOP
    api_key: WriteOnly | None = Field(default=None, repr=False)
    cloud: CloudBody | None = None
    deployments: Deployments = ()


class UpdateModelProviderBody(Patch, of=ModelProviderBody, without=("name",)):
    """Changes to a provider; absent fields stay; `api_key` null removes its key. `deployments`
    replace all earlier ones, keys included; `cloud` is replaced as a whole."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"api_key": {"secret": "ACME"}},)
    nullable: ClassVar[frozenset[str]] = frozenset({"api_key", "cloud"})


class TestModelProviderBody(Body):
    """Which model is tested; without one, the first that an agent uses."""

    __test__: ClassVar[bool] = False

    examples: ClassVar[tuple[JsonObject, ...]] = ({"model": "gpt-5-mini"},)

    model: Annotated[str, Field(min_length=1, max_length=256)] | None = Field(
        default=None, description="Its name without the provider."
    )
