"""Model providers of organizations: base URL, wire protocol, API key and deployments."""

import re
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from domain.errors import Violation, invalid
from domain.ids import OrganizationId
from domain.model_providers.cloud import (
    NO_CLOUD,
    CloudIdentity,
    CloudSettings,
    cloud_violations,
    service_account,
)
from domain.model_providers.deployment import (
    MAX_DEPLOYMENTS,
    MAX_WEIGHT,
    Deployment,
    is_legal_deployment_name,
)
from domain.secrets.secret import SecretRef, SecretValue, violations_of

MAX_PROVIDERS = 100
"""Per organization."""
MAX_BASE_URL = 2_048
MAX_API_KEY = 8_192
SCRIPTED = "scripted"
"""The built-in provider without network access; its models are scripts."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_URL = re.compile(r"https?://(?P<authority>[^/?#]+)(?P<path>/[^?#]*)?(?P<rest>[?#].*)?", re.IGNORECASE)
_AUTHORITY = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?")
_KEY = re.compile(r"[\x21-\x7e]+")


class ProviderKind(StrEnum):
    """The vendor of a provider's API. All but `anthropic` and `vertex` are asked as OpenAI is,
    unless their wire is `native`. The values are part of the public contract."""

    OPENAI = "openai"
    ALIBABA = "alibaba"
    ANTHROPIC = "anthropic"
    AZURE = "azure"
    BEDROCK = "bedrock"
    CEREBRAS = "cerebras"
    COHERE = "cohere"
    CRUSOE = "crusoe"
    DEEPSEEK = "deepseek"
    FIREWORKS = "fireworks"
    GITHUB_COPILOT = "github-copilot"
    GOOGLE = "google"
    GROQ = "groq"
    HEROKU = "heroku"
    HUGGINGFACE = "huggingface"
    META = "meta"
    MISTRAL = "mistral"
    MOONSHOTAI = "moonshotai"
    NEBIUS = "nebius"
    OLLAMA = "ollama"
    OPENROUTER = "openrouter"
    OVHCLOUD = "ovhcloud"
    SAMBANOVA = "sambanova"
    SNOWFLAKE = "snowflake"
    TOGETHER = "together"
    VERCEL = "vercel"
    VERTEX = "vertex"
    XAI = "xai"
    ZAI = "zai"

    @property
    def is_openai_compatible(self) -> bool:
        """Whether its APIs are chat completions and, at some vendors, the Responses API."""
        return self not in {ProviderKind.ANTHROPIC, ProviderKind.VERTEX}

    @property
    def has_native_wire(self) -> bool:
        """Whether Dragoman calls an API that only this vendor has."""
        return self in {ProviderKind.BEDROCK, ProviderKind.GOOGLE, ProviderKind.VERTEX}


class ProviderWire(StrEnum):
    """The API of a provider. The values are part of the public contract.

    - `auto`: `responses` at OpenAI itself, `native` at Vertex AI and at addresses of Bedrock
      without a path, `chat` elsewhere.
    - `native`: the vendor's own API: `generateContent` of Gemini, Converse of Bedrock.
    """

    AUTO = "auto"
    RESPONSES = "responses"
    CHAT = "chat"
    NATIVE = "native"


class EchoReasoning(StrEnum):
    """Where chat completions get the model's reasoning back, if the provider shows it: in messages
    `always`; after the last message of the user, which is the `tool_loop`; or `never`, which sends
    text and calls only. The values are part of the public contract."""

    TOOL_LOOP = "tool_loop"
    ALWAYS = "always"
    NEVER = "never"


OFFICIAL_BASE_URLS = {
    ProviderKind.OPENAI: "https://api.openai.com/v1",
    ProviderKind.ALIBABA: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    ProviderKind.ANTHROPIC: "https://api.anthropic.com",
    ProviderKind.CEREBRAS: "https://api.cerebras.ai/v1",
    ProviderKind.COHERE: "https://api.cohere.ai/compatibility/v1",
    ProviderKind.CRUSOE: "https://api.inference.crusoecloud.com/v1",
    ProviderKind.DEEPSEEK: "https://api.deepseek.com",
    ProviderKind.FIREWORKS: "https://api.fireworks.ai/inference/v1",
    ProviderKind.GITHUB_COPILOT: "https://api.githubcopilot.com",
    ProviderKind.GOOGLE: "https://generativelanguage.googleapis.com/v1beta/openai",
    ProviderKind.GROQ: "https://api.groq.com/openai/v1",
    ProviderKind.HEROKU: "https://us.inference.heroku.com/v1",
    ProviderKind.HUGGINGFACE: "https://router.huggingface.co/v1",
    ProviderKind.META: "https://api.meta.ai/v1",
    ProviderKind.MISTRAL: "https://api.mistral.ai/v1",
    ProviderKind.MOONSHOTAI: "https://api.moonshot.ai/v1",
    ProviderKind.NEBIUS: "https://api.studio.nebius.com/v1",
    ProviderKind.OLLAMA: "http://localhost:11434/v1",
    ProviderKind.OPENROUTER: "https://openrouter.ai/api/v1",
    ProviderKind.OVHCLOUD: "https://oai.endpoints.kepler.ai.cloud.ovh.net/v1",
    ProviderKind.SAMBANOVA: "https://api.sambanova.ai/v1",
    ProviderKind.TOGETHER: "https://api.together.xyz/v1",
    ProviderKind.VERCEL: "https://ai-gateway.vercel.sh/v1",
    ProviderKind.XAI: "https://api.x.ai/v1",
    ProviderKind.ZAI: "https://api.z.ai/api/paas/v4",
}
"""Of all kinds but those whose address depends on the customer or the region."""
_EXAMPLE_BASE_URLS = {
    ProviderKind.AZURE: "https://RESOURCE.openai.azure.com/openai/v1",
    ProviderKind.BEDROCK: "https://bedrock-runtime.REGION.amazonaws.com/openai/v1",
    ProviderKind.SNOWFLAKE: "https://ACCOUNT.snowflakecomputing.com/api/v2/cortex/v1",
    ProviderKind.VERTEX: "https://REGION-aiplatform.googleapis.com",
}
_CLOUD_SETTINGS = {
    ProviderKind.AZURE: frozenset({"identity", "tenant_id", "client_id"}),
    ProviderKind.BEDROCK: frozenset({"identity", "region", "role", "profile"}),
    ProviderKind.VERTEX: frozenset({"identity", "region", "project"}),
}
"""By kind."""
_BEDROCK_HOST = re.compile(r"bedrock-runtime(?:-fips)?\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(?:\.cn)?", re.IGNORECASE)
_VERTEX_HOST = re.compile(
    r"(?:(?P<region>[a-z0-9-]+)-)?aiplatform\.googleapis\.com|aiplatform\.(?P<many>us|eu)\.rep\.googleapis\.com",
    re.IGNORECASE,
)
_VENDOR_HOSTS = {
    ProviderKind.AZURE: re.compile(r"[a-z0-9-]+\.(?:openai|services\.ai|cognitiveservices)\.azure\.com"),
    ProviderKind.BEDROCK: _BEDROCK_HOST,
    ProviderKind.VERTEX: _VERTEX_HOST,
}
"""Hosts that are sent tokens of the machine's identity."""
_VERTEX_MANY = frozenset({"us", "eu"})


def default_base_url(kind: ProviderKind, cloud: CloudSettings) -> str:
    """The vendor's own address, in the region; empty if there is none."""
    region = cloud.region
    if kind is ProviderKind.VERTEX:
        if region in _VERTEX_MANY:
            return f"https://aiplatform.{region}.rep.googleapis.com"
        return f"https://{'' if region in {None, 'global'} else f'{region}-'}aiplatform.googleapis.com"
    if kind is ProviderKind.BEDROCK and region is not None:
        return f"https://bedrock-runtime.{region}.amazonaws.com{'.cn' if region.startswith('cn-') else ''}"
    return OFFICIAL_BASE_URLS.get(kind, "")


def region_of(kind: ProviderKind, base_url: str, cloud: CloudSettings) -> str | None:
    """The region of an address, which deployments may have for themselves; else that of the
    settings."""
    host = _host_of(base_url)
    if kind is ProviderKind.BEDROCK and (found := _BEDROCK_HOST.fullmatch(host)) is not None:
        return found["region"]
    if kind is ProviderKind.VERTEX and (found := _VERTEX_HOST.fullmatch(host)) is not None:
        return found["region"] or found["many"] or "global"
    return cloud.region


def region_violations(kind: ProviderKind, base_url: str, cloud: CloudSettings) -> list[Violation]:
    """Of an address that is in another region than the settings say."""
    region = region_of(kind, base_url, cloud)
    if cloud.region in {None, region}:
        return []
    return [
        Violation(path="base_url", message=f"is in the region {region}, not in {cloud.region} as cloud.region says")
    ]


def _host_of(base_url: str) -> str:
    parts = _URL.fullmatch(base_url)
    return "" if parts is None else parts["authority"].lower().partition(":")[0]


def is_legal_provider_name(name: str) -> bool:
    """Whether the name can be the first part of `PROVIDER:NAME`."""
    return _NAME.fullmatch(name) is not None and name != SCRIPTED


def is_legal_api_key(key: str, kind: ProviderKind | None = None) -> bool:
    """Whether the key can be sent in a header, or is what the kind has instead."""
    return _KEY.fullmatch(key) is not None if kind is not ProviderKind.VERTEX else service_account(key) is not None


def base_url_fault(url: str, kind: ProviderKind) -> str | None:
    """Why the URL cannot be a base URL, judged by its text alone; None if it can."""
    if len(url) > MAX_BASE_URL or not url.isascii() or not url.isprintable() or " " in url:
        return f"must be up to {MAX_BASE_URL} printable ASCII characters without spaces"
    if not url and kind is ProviderKind.BEDROCK:
        return f"must be set for kind {kind}, unless cloud.region is"
    like = f"must look like {OFFICIAL_BASE_URLS.get(kind) or _EXAMPLE_BASE_URLS[kind]}"
    parts = _URL.fullmatch(url)
    if parts is None:
        return like
    if "@" in parts["authority"]:
        return "must not hold credentials"
    authority = _AUTHORITY.fullmatch(parts["authority"])
    if authority is None or (authority["port"] is not None and not 0 < int(authority["port"]) < 65_536):
        return like
    if parts["rest"] is not None:
        return "must not hold a query or fragment"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProvider:
    """A provider of one organization. `name` is the part before the colon in `PROVIDER:NAME`;
    `base_url` has the form that the vendor's own clients take. Without `api_key` none is sent.
    With `deployments`, only these are called. `version` counts its changes.

    - Kind `vertex` needs the project; its key is the JSON of a service account.
    - The native wire of kind `bedrock` needs a region, and a key: an API key, or `ID:SECRET` of an
      access key.
    - Kind `azure` with `cloud.tenant_id`: the key is the secret of the application
      `cloud.client_id`.
    - With the machine's identity there is no key, and addresses are the vendor's: tokens are sent
      there.
    """

    organization_id: OrganizationId
    name: str
    kind: ProviderKind
    base_url: str
    wire: ProviderWire = ProviderWire.AUTO
    echo_reasoning: EchoReasoning = EchoReasoning.TOOL_LOOP
    api_key: SecretValue | None = field(default=None, repr=False)
    cloud: CloudSettings | None = None
    deployments: tuple[Deployment, ...] = ()
    version: int = 1
    created_at: datetime
    updated_at: datetime

    def __post_init__(self) -> None:
        wrong = []
        if not is_legal_provider_name(self.name):
            wrong.append(
                Violation(path="name", message=f"must match [a-z0-9][a-z0-9_-]{{0,63}} and not be {SCRIPTED!r}")
            )
        fault = base_url_fault(self.base_url, self.kind)
        if fault is not None:
            wrong.append(Violation(path="base_url", message=fault))
        wrong += key_violations("api_key", self.api_key, self.kind)
        wrong += _wire_violations(self)
        wrong += _cloud_violations(self)
        wrong += _deployment_violations(self.deployments, self.kind)
        if wrong:
            raise invalid("model_provider_invalid", "The model provider is not valid.", *wrong)

    @property
    def secret_name(self) -> str | None:
        """The name of the secret that holds the key, if the key is a reference."""
        return self.api_key.name if isinstance(self.api_key, SecretRef) else None

    @property
    def secret_names(self) -> frozenset[str]:
        """The names of all secrets that hold keys of this provider."""
        names = {self.secret_name, *(deployment.secret_name for deployment in self.deployments)}
        return frozenset(name for name in names if name is not None)


def key_violations(path: str, key: SecretValue | None, kind: ProviderKind) -> list[Violation]:
    """The violations of a key, which never quote it."""
    if isinstance(key, SecretRef):
        return violations_of(path, key)
    if key is not None and (len(key) > MAX_API_KEY or not is_legal_api_key(key, kind)):
        return [Violation(path=path, message=key_form(kind))]
    return []


def key_form(kind: ProviderKind) -> str:
    if kind is ProviderKind.VERTEX:
        return "must be the JSON of a key of a service account"
    return "must be printable ASCII without spaces"


def is_native(kind: ProviderKind, wire: ProviderWire, base_url: str) -> bool:
    """Whether models of a provider are called over the vendor's own API."""
    if wire is not ProviderWire.AUTO:
        return wire is ProviderWire.NATIVE
    if kind is ProviderKind.BEDROCK:
        parts = _URL.fullmatch(base_url)
        return parts is not None and (parts["path"] or "/") == "/"
    return kind is ProviderKind.VERTEX


def _wire_violations(provider: ModelProvider) -> list[Violation]:
    kind, wire, wrong = provider.kind, provider.wire, []
    if wire is ProviderWire.NATIVE and not kind.has_native_wire:
        wrong.append(Violation(path="wire", message=f"must not be {wire} for kind {kind}"))
    elif wire not in {ProviderWire.AUTO, ProviderWire.NATIVE} and not kind.is_openai_compatible:
        wrong.append(Violation(path="wire", message=f"must be {ProviderWire.AUTO} for kind {kind}"))
    if provider.echo_reasoning is not EchoReasoning.TOOL_LOOP and not kind.is_openai_compatible:
        message = f"must be {EchoReasoning.TOOL_LOOP} for kind {kind}"
        wrong.append(Violation(path="echo_reasoning", message=message))
    return wrong


def _cloud_violations(provider: ModelProvider) -> list[Violation]:
    kind, cloud = provider.kind, provider.cloud or NO_CLOUD
    wrong = cloud_violations(cloud, _CLOUD_SETTINGS.get(kind, frozenset()), kind)
    if kind is ProviderKind.VERTEX and cloud.project is None:
        wrong.append(Violation(path="cloud.project", message=f"must be set for kind {kind}"))
    if kind is ProviderKind.BEDROCK:
        wrong += _bedrock_violations(provider, cloud)
    if kind is ProviderKind.AZURE and cloud.tenant_id is not None and cloud.client_id is None:
        wrong.append(Violation(path="cloud.client_id", message="must be set with cloud.tenant_id"))
    if (
        kind is ProviderKind.AZURE
        and cloud.client_id is not None
        and (cloud.tenant_id is None) is (cloud.identity is CloudIdentity.KEY)
    ):
        wrong.append(Violation(path="cloud.tenant_id", message="must be set with a key, and only then"))
    if cloud.identity is CloudIdentity.SERVICE and kind in _VENDOR_HOSTS:
        wrong += _token_violations(provider)
    return wrong


def _bedrock_violations(provider: ModelProvider, cloud: CloudSettings) -> list[Violation]:
    if not is_native(provider.kind, provider.wire, provider.base_url):
        given = [name for name in ("role", "profile") if getattr(cloud, name) is not None]
        given += ["identity"] if cloud.identity is CloudIdentity.SERVICE else []
        return [Violation(path=f"cloud.{name}", message="needs the native wire") for name in given]
    if region_of(provider.kind, provider.base_url, cloud) is None:
        return [Violation(path="cloud.region", message="must be set")]
    return []


def _token_violations(provider: ModelProvider) -> list[Violation]:
    """Of the machine's identity: its tokens go to the vendor only, over TLS."""
    keys = [("api_key", provider.api_key)]
    addresses: list[tuple[str, str | None]] = [("base_url", provider.base_url)]
    for index, deployment in enumerate(provider.deployments):
        keys.append((f"deployments.{index}.api_key", deployment.api_key))
        addresses.append((f"deployments.{index}.base_url", deployment.base_url))
    hosts = _VENDOR_HOSTS[provider.kind]
    wrong = [
        Violation(path=path, message=f"must not be set with the identity {CloudIdentity.SERVICE}")
        for path, key in keys
        if key is not None
    ]
    return wrong + [
        Violation(path=path, message="must be an https address of the vendor")
        for path, url in addresses
        if url is not None and not (url.lower().startswith("https://") and hosts.fullmatch(_host_of(url)))
    ]


def _deployment_violations(deployments: tuple[Deployment, ...], kind: ProviderKind) -> list[Violation]:
    wrong = []
    if len(deployments) > MAX_DEPLOYMENTS:
        wrong.append(Violation(path="deployments", message=f"must be at most {MAX_DEPLOYMENTS}"))
    names: set[str] = set()
    for index, deployment in enumerate(deployments):
        path = f"deployments.{index}"
        if not is_legal_deployment_name(deployment.name):
            wrong.append(Violation(path=f"{path}.name", message="must match [a-z0-9][a-z0-9_-]{0,63}"))
        elif deployment.name in names:
            wrong.append(Violation(path=f"{path}.name", message="must be unique"))
        names.add(deployment.name)
        fault = None if deployment.base_url is None else base_url_fault(deployment.base_url, kind)
        if fault is not None:
            wrong.append(Violation(path=f"{path}.base_url", message=fault))
        if not 1 <= deployment.weight <= MAX_WEIGHT:
            wrong.append(Violation(path=f"{path}.weight", message=f"must be between 1 and {MAX_WEIGHT}"))
        wrong += key_violations(f"{path}.api_key", deployment.api_key, kind)
    return wrong
