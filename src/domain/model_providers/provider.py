"""Model providers of organizations: base URL, wire protocol, API key and deployments."""

import re
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from domain.errors import Violation, invalid
from domain.ids import OrganizationId
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
    """The vendor of a provider's API. All but `anthropic` are asked as OpenAI is. The values are part of the public
    contract."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    AZURE = "azure"
    BEDROCK = "bedrock"
    CEREBRAS = "cerebras"
    COHERE = "cohere"
    DEEPSEEK = "deepseek"
    FIREWORKS = "fireworks"
    GOOGLE = "google"
    GROQ = "groq"
    HUGGINGFACE = "huggingface"
    MISTRAL = "mistral"
    MOONSHOTAI = "moonshotai"
    OLLAMA = "ollama"
    OPENROUTER = "openrouter"
    TOGETHER = "together"
    XAI = "xai"
    ZAI = "zai"

    @property
    def is_openai_compatible(self) -> bool:
        """Whether its APIs are chat completions and, at some vendors, the Responses API."""
        return self is not ProviderKind.ANTHROPIC


class ProviderWire(StrEnum):
    """The API of a provider that is asked as OpenAI is. `auto` is `responses` at OpenAI itself and `chat` at other addresses.
    The values are part of the public contract."""

    AUTO = "auto"
    RESPONSES = "responses"
    CHAT = "chat"


class EchoReasoning(StrEnum):
    """Where chat completions get the model's reasoning back, if the provider shows it: in messages `always`; after the
    last message of the user, which is the `tool_loop`; or `never`, which sends text and calls only. The values are part
    of the public contract."""

    TOOL_LOOP = "tool_loop"
    ALWAYS = "always"
    NEVER = "never"


OFFICIAL_BASE_URLS = {
    ProviderKind.OPENAI: "https://api.openai.com/v1",
    ProviderKind.ANTHROPIC: "https://api.anthropic.com",
    ProviderKind.CEREBRAS: "https://api.cerebras.ai/v1",
    ProviderKind.COHERE: "https://api.cohere.ai/compatibility/v1",
    ProviderKind.DEEPSEEK: "https://api.deepseek.com",
    ProviderKind.FIREWORKS: "https://api.fireworks.ai/inference/v1",
    ProviderKind.GOOGLE: "https://generativelanguage.googleapis.com/v1beta/openai",
    ProviderKind.GROQ: "https://api.groq.com/openai/v1",
    ProviderKind.HUGGINGFACE: "https://router.huggingface.co/v1",
    ProviderKind.MISTRAL: "https://api.mistral.ai/v1",
    ProviderKind.MOONSHOTAI: "https://api.moonshot.ai/v1",
    ProviderKind.OLLAMA: "http://localhost:11434/v1",
    ProviderKind.OPENROUTER: "https://openrouter.ai/api/v1",
    ProviderKind.TOGETHER: "https://api.together.xyz/v1",
    ProviderKind.XAI: "https://api.x.ai/v1",
    ProviderKind.ZAI: "https://api.z.ai/api/paas/v4",
}
"""Of all kinds but those whose address depends on the customer or the region."""
_EXAMPLE_BASE_URLS = {
    ProviderKind.AZURE: "https://RESOURCE.openai.azure.com/openai/v1",
    ProviderKind.BEDROCK: "https://bedrock-runtime.REGION.amazonaws.com/openai/v1",
}


def is_legal_provider_name(name: str) -> bool:
    """Whether the name can be the first part of `PROVIDER:NAME`."""
    return _NAME.fullmatch(name) is not None and name != SCRIPTED


def is_legal_api_key(key: str) -> bool:
    """Whether the key can be sent in a header."""
    return _KEY.fullmatch(key) is not None


def base_url_fault(url: str, kind: ProviderKind) -> str | None:
    """Why the URL cannot be a base URL, judged by its text alone; None if it can."""
    if len(url) > MAX_BASE_URL or not url.isascii() or not url.isprintable() or " " in url:
        return f"must be up to {MAX_BASE_URL} printable ASCII characters without spaces"
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
    With `deployments`, only these are called. `version` counts its changes."""

    organization_id: OrganizationId
    name: str
    kind: ProviderKind
    base_url: str
    wire: ProviderWire = ProviderWire.AUTO
    echo_reasoning: EchoReasoning = EchoReasoning.TOOL_LOOP
    api_key: SecretValue | None = field(default=None, repr=False)
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
        wrong += key_violations("api_key", self.api_key)
        if self.wire is not ProviderWire.AUTO and not self.kind.is_openai_compatible:
            wrong.append(Violation(path="wire", message=f"must be {ProviderWire.AUTO} for kind {self.kind}"))
        if self.echo_reasoning is not EchoReasoning.TOOL_LOOP and not self.kind.is_openai_compatible:
            message = f"must be {EchoReasoning.TOOL_LOOP} for kind {self.kind}"
            wrong.append(Violation(path="echo_reasoning", message=message))
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


def key_violations(path: str, key: SecretValue | None) -> list[Violation]:
    """The violations of a key, which never quote it."""
    if isinstance(key, SecretRef):
        return violations_of(path, key)
    if key is not None and (len(key) > MAX_API_KEY or not is_legal_api_key(key)):
        return [Violation(path=path, message="must be printable ASCII without spaces")]
    return []


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
        wrong += key_violations(f"{path}.api_key", deployment.api_key)
    return wrong
