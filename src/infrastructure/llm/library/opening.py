"""Opens the library's class for a provider: the entrance to this folder."""

import asyncio

from application.models.ports import LanguageModel
from domain.model_providers.provider import ProviderKind
from infrastructure.llm.exchange import ProviderHttp, ReplyLimits
from infrastructure.llm.identities.cloud_addresses import CloudAddresses
from infrastructure.llm.library.bedrock_models import converse_models
from infrastructure.llm.library.google_models import gemini_models
from infrastructure.llm.providers import ProviderConfig


def native_models(
    provider: ProviderConfig,
    http: ProviderHttp,
    *,
    reply_limits: ReplyLimits,
    addresses: CloudAddresses,
    loop: asyncio.AbstractEventLoop,
) -> LanguageModel:
    if provider.kind is ProviderKind.BEDROCK:
        return converse_models(provider, http, reply_limits=reply_limits, addresses=addresses, loop=loop)
    return gemini_models(provider, http, reply_limits=reply_limits)
