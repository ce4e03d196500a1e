"""Gemini over `generateContent`: at the Gemini API, and on Vertex AI."""

from typing import cast

import httpx2
from google.oauth2.credentials import Credentials
from pydantic_ai.models.google import GoogleModel, GoogleModelSettings
from pydantic_ai.providers.google import BaseGoogleProvider, GoogleProvider
from pydantic_ai.providers.google_cloud import GoogleCloudProvider

from application.models.ports import ModelRequest
from domain.model_providers.provider import ProviderKind
from domain.runs.model_settings import NO_SETTINGS
from infrastructure.llm.exchange import ProviderHttp, ReplyLimits
from infrastructure.llm.library.library_models import LibraryModels, Vendor
from infrastructure.llm.library.library_settings import common_settings
from infrastructure.llm.library.outbound_transport import OutboundTransport
from infrastructure.llm.model_families import TAKEN_BY_GEMINI
from infrastructure.llm.model_inputs import ModelInput
from infrastructure.llm.providers import ProviderConfig

_COMPATIBLE_PATH = "/v1beta/openai"
"""Of the address at which the Gemini API is asked as OpenAI is."""
_UNUSED = "the transport writes the real one"


def gemini_models(provider: ProviderConfig, http: ProviderHttp, *, reply_limits: ReplyLimits) -> LibraryModels:
    """`http` adds the identity's headers. The SDK gets dummies, so that it looks for none
    itself."""
    client = httpx2.AsyncClient(
        transport=OutboundTransport(http), trust_env=False, follow_redirects=False, timeout=reply_limits.reply_s
    )
    base_url = provider.base_url.rstrip("/").removesuffix(_COMPATIBLE_PATH)
    sdk: BaseGoogleProvider
    if provider.kind is ProviderKind.VERTEX:
        sdk = GoogleCloudProvider(
            credentials=Credentials(token=_UNUSED),  # type: ignore[no-untyped-call]
            project=provider.cloud.project,
            location=provider.region or "global",
            http_client=client,
            base_url=base_url,
        )
    else:
        sdk = GoogleProvider(api_key=_UNUSED, http_client=client, base_url=base_url)
    vendor = Vendor(
        model=lambda name: GoogleModel(name, provider=sdk),
        settings=_settings,
        taken_by=lambda _: TAKEN_BY_GEMINI,
        inputs=lambda _: frozenset(ModelInput),
    )
    return LibraryModels(provider=provider, vendor=vendor, reply_limits=reply_limits)


def _settings(request: ModelRequest, _: str) -> GoogleModelSettings:
    given = request.settings or NO_SETTINGS
    settings = cast(GoogleModelSettings, common_settings(request))
    if given.thinking_budget is not None:
        settings["google_thinking_config"] = {
            "thinking_budget": given.thinking_budget,
            "include_thoughts": request.reasoning_summary,
        }
    elif request.reasoning_summary and given.effort is None:
        settings["google_thinking_config"] = {"include_thoughts": True}
    return settings
