"""Configuration of a model provider: addresses and keys."""

from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from domain.model_providers.cloud import NO_CLOUD, AwsKeys, CloudIdentity, CloudSettings, aws_keys, service_account
from domain.model_providers.provider import (
    OFFICIAL_BASE_URLS,
    SCRIPTED,
    EchoReasoning,
    ProviderKind,
    ProviderWire,
    base_url_fault,
    is_legal_api_key,
    is_legal_provider_name,
    is_native,
    region_of,
)
from infrastructure.secrets.redaction import Redactor


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentConfig:
    """One of several addresses and keys of a provider."""

    name: str
    base_url: str
    api_key: str | None = field(default=None, repr=False)
    weight: int = 1


_MAX_HIDDEN = 64
"""The key, its parts, and the last tokens that were given out for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderConfig:
    """A provider; `name` is the part before the colon in `PROVIDER:NAME`.

    - `base_url`: as in the provider's own clients (`https://api.openai.com/v1`,
      `https://api.anthropic.com`).
    - `api_key`: None sends no key.
    - `wire`, `echo_reasoning`: not of kind `anthropic`.
    - `cloud`: region, project and identity.
    - `guarded`: False exempts the operator's providers from the egress guard.
    - `deployments`: called instead of `base_url`, if there are any.

    Raises: ValueError for invalid values, without the key.
    """

    name: str
    kind: ProviderKind
    base_url: str
    api_key: str | None = field(default=None, repr=False)
    wire: ProviderWire = ProviderWire.AUTO
    echo_reasoning: EchoReasoning = EchoReasoning.TOOL_LOOP
    cloud: CloudSettings = NO_CLOUD
    guarded: bool = False
    deployments: tuple[DeploymentConfig, ...] = ()
    _hidden: Redactor = field(default_factory=lambda: Redactor(limit=_MAX_HIDDEN), repr=False, compare=False)

    def __post_init__(self) -> None:
        if not is_legal_provider_name(self.name):
            raise ValueError(f"provider name {self.name!r} must match [a-z0-9][a-z0-9_-]* and not be {SCRIPTED!r}")
        if self.api_key is not None and not is_legal_api_key(self.api_key, self.kind):
            raise ValueError(f"the API key of provider {self.name!r} must be printable ASCII without spaces")
        fault = base_url_fault(self.base_url, self.kind)
        if fault is not None:
            raise ValueError(f"the base URL of provider {self.name!r} {fault}")

    def redactor(self, *minted: str) -> Redactor:
        """Hides the key and its parts, and from now on what was `minted` for the provider's
        identity; nothing else: other secrets must not be detectable by a provider. The same one
        with each call, in the event loop."""
        self._hidden.register(*self._key_parts, *minted)
        return self._hidden

    @property
    def _key_parts(self) -> tuple[str, ...]:
        key, keys = self.api_key, self.access_key
        if key is None:
            return ()
        if self.kind is ProviderKind.VERTEX:
            account = service_account(key)
            return (key,) if account is None else (account.private_key,)
        return (key,) if keys is None else (key, *keys.parts)

    @property
    def access_key(self) -> AwsKeys | None:
        """The key, if it is an access key of AWS."""
        return None if self.api_key is None or self.kind is not ProviderKind.BEDROCK else aws_keys(self.api_key)

    @property
    def header_key(self) -> str | None:
        """The key if it is sent itself: keys of service accounts, of applications and of AWS are
        not."""
        if self.kind is ProviderKind.VERTEX or self.cloud.tenant_id is not None:
            return None
        return self.api_key if self.access_key is None else None

    @property
    def is_openai(self) -> bool:
        """Whether this is OpenAI itself, not a compatible server."""
        return self.kind is ProviderKind.OPENAI and self._is_vendor

    @property
    def _is_vendor(self) -> bool:
        official = OFFICIAL_BASE_URLS.get(self.kind)
        return official is not None and urlsplit(self.base_url).hostname == urlsplit(official).hostname

    @property
    def speaks_responses(self) -> bool:
        """Whether an OpenAI-compatible provider is called over the Responses API. Compatible
        servers rarely have it."""
        return self.wire is ProviderWire.RESPONSES or (self.wire is ProviderWire.AUTO and self.is_openai)

    @property
    def is_native(self) -> bool:
        """Whether models are called over the vendor's own API, with the extra `providers`."""
        return is_native(self.kind, self.wire, self.base_url)

    @property
    def region(self) -> str | None:
        return region_of(self.kind, self.base_url, self.cloud)

    @property
    def uses_service_identity(self) -> bool:
        return self.cloud.identity is CloudIdentity.SERVICE

    @property
    def lacks_key(self) -> bool:
        """Whether calls would be rejected because of a missing key."""
        if self.deployments:
            return any(self.at(deployment).lacks_key for deployment in self.deployments)
        if self.api_key is not None or self.uses_service_identity or self.kind is ProviderKind.OLLAMA:
            return False
        return self._is_vendor or self.is_native

    @property
    def key_problem(self) -> str | None:
        """One sentence about a missing key."""
        if not self.lacks_key:
            return None
        again = f"`dragoman provider add {self.name} --kind {self.kind}`"
        if self.guarded:
            return f"The model provider {self.name!r} has no API key. Delete it, and add it with a key: {again}."
        return (
            f"The model provider {self.name!r} has no API key. Give it one with {again}, "
            f"or set {self.kind.upper()}_API_KEY where the service is started, and start it again."
        )

    @property
    def place_on_vertex(self) -> str:
        """The path of the project's models in the region."""
        return f"v1/projects/{self.cloud.project}/locations/{self.region or 'global'}"

    def over_chat_on_vertex(self) -> "ProviderConfig":
        """The provider at the address where Vertex AI serves models of other makers."""
        return replace(self, base_url=f"{self.base_url.rstrip('/')}/{self.place_on_vertex}/endpoints/openapi")

    @property
    def places(self) -> tuple[tuple[str | None, "ProviderConfig"], ...]:
        """The deployments by name, or the provider itself."""
        return tuple((entry.name, self.at(entry)) for entry in self.deployments) or ((None, self),)

    def at(self, deployment: DeploymentConfig) -> "ProviderConfig":
        """The provider with the address and key of one deployment."""
        return replace(
            self,
            base_url=deployment.base_url,
            api_key=deployment.api_key,
            deployments=(),
            _hidden=Redactor(limit=_MAX_HIDDEN),
        )
