"""One strict family of a cloud, and models of it as a provider of an organization opens them."""

from contextlib import AsyncExitStack

import pytest

from application.models.ports import LanguageModel
from domain.model_providers.cloud import NO_CLOUD, CloudSettings
from domain.model_providers.provider import ProviderKind, ProviderWire
from infrastructure.http.egress import EgressPolicy
from infrastructure.llm.library.opening import native_models
from infrastructure.llm.provider_http import AiohttpProviders
from infrastructure.llm.provider_models import ProviderModels
from infrastructure.llm.providers import ProviderConfig
from tests.integration.llm.strict import converse, generate_content
from tests.integration.llm.strict.clouds import CloudTokens
from tests.integration.llm.strict.converse import StrictConverse
from tests.integration.llm.strict.generate_content import StrictGenerateContent
from tests.integration.llm.strict.provider import Family, Said, StrictProvider
from tests.unit.llm.conversations import Conversation

CLOCK = "mcp__clock__now"
LOOP = (Said(text="I look.", calls=((CLOCK, {}),)), Said(text="It is noon."))
ON_VERTEX = CloudSettings(region="europe-west1", project="project-1")
AWS_KEY = f"{converse.KEY_ID}:{converse.SECRET}"
CASES = [
    pytest.param(ProviderKind.GOOGLE, generate_content.KEY, "gemini-3-pro", id="gemini"),
    pytest.param(ProviderKind.BEDROCK, AWS_KEY, "amazon.nova-pro-v1:0", id="bedrock"),
]


class Cloud:
    """One strict family, and models of it as a provider of an organization opens them."""

    def __init__(self, stack: AsyncExitStack, http: AiohttpProviders, tokens: CloudTokens) -> None:
        self._stack = stack
        self._http = http
        self._tokens = tokens

    async def serve(self, family: Family, *, prefix: str = "", key_header: str | None = None) -> StrictProvider:
        there = StrictProvider(family, prefix=prefix, key_header=key_header)
        return await self._stack.enter_async_context(there.serving())

    def models(
        self,
        there: StrictProvider,
        kind: ProviderKind,
        *,
        key: str | None,
        cloud: CloudSettings = NO_CLOUD,
        wire: ProviderWire = ProviderWire.AUTO,
        path: str = "",
    ) -> LanguageModel:
        opening = ProviderModels(
            http=self._http,
            guarded_http=self._http,
            outbound=EgressPolicy(),
            native=lambda: native_models,
            addresses=self._tokens.addresses,
        )
        url = there.url + path
        return opening.open(ProviderConfig(name="acme", kind=kind, base_url=url, api_key=key, cloud=cloud, wire=wire))


async def loop(model: LanguageModel, there: StrictProvider, name: str) -> None:
    """A loop of one tool call."""
    there.say(*LOOP)
    thread = Conversation()
    await thread.ask(model, f"acme:{name}")
    thread.answer("12:00")
    assert (await thread.ask(model, f"acme:{name}")).text == "It is noon."
    assert there.refused == []


def native(cloud: Cloud, there: StrictProvider, kind: ProviderKind, key: str) -> LanguageModel:
    settings = CloudSettings(region=converse.REGION) if kind is ProviderKind.BEDROCK else NO_CLOUD
    return cloud.models(there, kind, key=key, cloud=settings, wire=ProviderWire.NATIVE)


def family_of(kind: ProviderKind) -> Family:
    return StrictConverse() if kind is ProviderKind.BEDROCK else StrictGenerateContent()
