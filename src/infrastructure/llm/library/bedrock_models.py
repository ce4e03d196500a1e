"""Models of Bedrock over Converse: botocore signs and decodes, our HTTP clients send."""

import asyncio
from functools import partial
from typing import Any, cast

from botocore import UNSIGNED
from botocore.config import Config
from botocore.credentials import AssumeRoleCredentialFetcher, Credentials, DeferredRefreshableCredentials
from botocore.exceptions import BotoCoreError
from botocore.session import Session
from pydantic_ai.models.bedrock import BedrockConverseModel, BedrockModelSettings
from pydantic_ai.providers.bedrock import BedrockProvider

from application.models.ports import ModelError, ModelRequest
from domain.runs.model_settings import NO_SETTINGS
from domain.threads.message import Message, Role
from infrastructure.llm.exchange import ProviderHttp, ReplyLimits
from infrastructure.llm.identities.cloud_addresses import CloudAddresses
from infrastructure.llm.library.botocore_transport import BotocoreTransport
from infrastructure.llm.library.library_models import LibraryModels, Vendor
from infrastructure.llm.library.library_settings import common_settings
from infrastructure.llm.model_families import is_claude, taken_by_converse
from infrastructure.llm.model_inputs import inputs_of
from infrastructure.llm.providers import ProviderConfig

_SESSION_NAME = "dragoman"
_MIN_BUDGET = 1_024
"""The least thinking that Claude takes."""


def converse_models(
    provider: ProviderConfig,
    http: ProviderHttp,
    *,
    reply_limits: ReplyLimits,
    addresses: CloudAddresses,
    loop: asyncio.AbstractEventLoop,
) -> LibraryModels:
    transport = BotocoreTransport(http, loop, hide=provider.redactor)
    sdk = BedrockProvider(bedrock_client=bedrock_client(provider, transport, addresses))
    vendor = Vendor(
        model=lambda name: BedrockConverseModel(name, provider=sdk),
        settings=_settings,
        taken_by=taken_by_converse,
        inputs=partial(inputs_of, provider),
    )
    return LibraryModels(provider=provider, vendor=vendor, reply_limits=reply_limits)


def bedrock_client(provider: ProviderConfig, transport: BotocoreTransport, addresses: CloudAddresses) -> Any:
    """A client of `bedrock-runtime` whose requests `transport` sends, and which retries nothing.
    Only for the machine's identity does botocore read files and environment of the machine, and
    connect to its metadata server itself. API keys are sent by our HTTP, not by botocore. Raises
    ModelError if the machine has no identity now."""
    region, keys = provider.region or "", provider.access_key
    credentials: Any = None
    if provider.uses_service_identity:
        credentials = _of_machine(provider)
    elif keys is not None:
        credentials = Credentials(keys.key_id, keys.secret, keys.token)
    if provider.cloud.role is not None and credentials is not None:
        credentials = _of_role(provider.cloud.role, credentials, region, transport, addresses)
    session = _GivenSession(credentials, transport)
    config = _config(UNSIGNED if credentials is None else "v4")
    return session.create_client(
        "bedrock-runtime", region_name=region, endpoint_url=provider.base_url.rstrip("/"), config=config
    )


def _of_machine(provider: ProviderConfig) -> Any:
    try:
        credentials = Session(profile=provider.cloud.profile).get_credentials()
    except BotoCoreError:
        credentials = None
    if credentials is None:
        detail = f"This machine has no identity of AWS for the model provider {provider.name!r}."
        raise ModelError("model_auth", detail, retryable=False)
    return credentials


class _GivenSession(Session):
    """A session with the credentials that it is given, and none of the machine's configuration."""

    def __init__(self, credentials: Any, transport: BotocoreTransport) -> None:
        super().__init__()
        self._given = credentials
        self.register("before-send", transport)

    def get_credentials(self) -> Any:
        return self._given

    def get_auth_token(self, **_: object) -> None:
        return None

    def get_scoped_config(self) -> dict[str, Any]:
        return {}


def _of_role(
    role: str, source: Any, region: str, transport: BotocoreTransport, addresses: CloudAddresses
) -> DeferredRefreshableCredentials:
    """Credentials of a role, which are taken on and renewed with the calls that need them."""
    session = _GivenSession(source, transport)
    create = partial(
        session.create_client, region_name=region, endpoint_url=addresses.aws_sts(region), config=_config("v4")
    )
    fetcher = AssumeRoleCredentialFetcher(create, source, role, extra_args={"RoleSessionName": _SESSION_NAME})
    return DeferredRefreshableCredentials(refresh_using=fetcher.fetch_credentials, method="assume-role")


def _config(signature: object) -> Config:
    return Config(
        signature_version=signature,
        retries={"total_max_attempts": 1, "mode": "standard"},
        ignore_configured_endpoint_urls=True,
        disable_request_compression=True,
    )


def _settings(request: ModelRequest, origin: str) -> BedrockModelSettings:
    """With cache points, where the model takes them. Claude that thinks takes no sampling, and does
    not think in a tool loop in which another model had a turn: it would refuse that turn."""
    given = request.settings or NO_SETTINGS
    settings = cast(BedrockModelSettings, common_settings(request))
    cache: Any = True if given.cache_ttl is None else given.cache_ttl.value
    settings["bedrock_cache_instructions"] = cache
    settings["bedrock_cache_messages"] = cache
    settings["bedrock_cache_tool_definitions"] = cache
    if not is_claude(request.model):
        return settings
    if not _all_of_model(request.messages, origin):
        settings.pop("thinking", None)
    elif given.thinking_budget is not None:
        thinking = {"type": "enabled", "budget_tokens": max(given.thinking_budget, _MIN_BUDGET)}
        settings["bedrock_additional_model_requests_fields"] = {"thinking": thinking}
    if settings.get("thinking"):
        settings.pop("temperature", None)
        settings.pop("top_p", None)
    return settings


def _all_of_model(messages: tuple[Message, ...], origin: str) -> bool:
    """Whether each turn of the tool loop is one that the model takes back as it came."""
    for message in reversed(messages):
        if message.role is Role.USER:
            break
        if message.role is Role.ASSISTANT and (message.items is None or message.items.origin != origin):
            return False
    return True
