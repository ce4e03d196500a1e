"""Families of models with what their vendors refuse, each behind a provider of its own."""

from collections.abc import Callable
from dataclasses import dataclass

from domain.model_providers.cloud import NO_CLOUD, CloudSettings
from domain.model_providers.provider import ProviderKind, ProviderWire
from domain.runs.model_settings import ModelSettings
from infrastructure.llm.providers import ProviderConfig
from tests.integration.llm.strict import converse, generate_content
from tests.integration.llm.strict.chat import (
    StrictDeepSeek,
    StrictGemini,
    StrictKimi,
    StrictOpenRouter,
    StrictToolLoop,
)
from tests.integration.llm.strict.converse import StrictConverse
from tests.integration.llm.strict.generate_content import StrictGenerateContent
from tests.integration.llm.strict.messages import StrictMessages
from tests.integration.llm.strict.provider import Family, StrictProvider
from tests.integration.llm.strict.responses import StrictResponses


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFamily:
    """`name` is that of its provider, `title` what readers of the documentation know it by."""

    name: str
    title: str
    model_name: str
    make: Callable[[], Family]
    kind: ProviderKind = ProviderKind.OPENAI
    wire: ProviderWire = ProviderWire.AUTO
    settings: ModelSettings | None = None
    key: str = "sk-test"
    cloud: CloudSettings = NO_CLOUD
    prefix: str = "/v1"
    """Of the paths of its API."""

    @property
    def model(self) -> str:
        return f"{self.name}:{self.model_name}"

    @property
    def only_streams(self) -> bool:
        """The API has an address for streams, and answers nothing else there."""
        return self.wire is ProviderWire.NATIVE or self.kind is ProviderKind.BEDROCK

    def provider(self, there: StrictProvider, *, key: str | None = None) -> ProviderConfig:
        return ProviderConfig(
            name=self.name,
            kind=self.kind,
            base_url=there.url,
            api_key=key or self.key,
            wire=self.wire,
            cloud=self.cloud,
        )


FAMILIES = (
    ModelFamily(
        name="openai",
        title="OpenAI, Responses API",
        model_name="gpt-5.5",
        make=StrictResponses,
        wire=ProviderWire.RESPONSES,
    ),
    ModelFamily(
        name="anthropic",
        title="Anthropic, adaptive thinking",
        model_name="claude-opus-4-8",
        make=lambda: StrictMessages(adaptive=True),
        kind=ProviderKind.ANTHROPIC,
    ),
    ModelFamily(
        name="claude",
        title="Anthropic, thinking with a budget",
        model_name="claude-sonnet-4-5",
        make=lambda: StrictMessages(adaptive=False),
        kind=ProviderKind.ANTHROPIC,
        settings=ModelSettings(thinking_budget=1_024),
    ),
    ModelFamily(
        name="google",
        title="Gemini, OpenAI-compatible",
        model_name="gemini-3-pro",
        make=StrictGemini,
        kind=ProviderKind.GOOGLE,
    ),
    ModelFamily(
        name="gemini",
        title="Gemini, generateContent",
        model_name="gemini-3-pro",
        make=StrictGenerateContent,
        kind=ProviderKind.GOOGLE,
        wire=ProviderWire.NATIVE,
        key=generate_content.KEY,
        prefix="",
    ),
    ModelFamily(
        name="bedrock",
        title="Bedrock, Converse",
        model_name="eu.anthropic.claude-sonnet-4-5-20250929-v1:0",
        make=StrictConverse,
        kind=ProviderKind.BEDROCK,
        settings=ModelSettings(thinking_budget=1_024),
        key=f"{converse.KEY_ID}:{converse.SECRET}",
        cloud=CloudSettings(region=converse.REGION),
        prefix="",
    ),
    ModelFamily(
        name="deepseek",
        title="DeepSeek, thinking",
        model_name="deepseek-v4-pro",
        make=StrictDeepSeek,
        kind=ProviderKind.DEEPSEEK,
    ),
    ModelFamily(
        name="kimi", title="Kimi, thinking", model_name="kimi-k2.6", make=StrictKimi, kind=ProviderKind.MOONSHOTAI
    ),
    ModelFamily(name="glm", title="GLM, thinking", model_name="glm-5", make=StrictToolLoop, kind=ProviderKind.ZAI),
    ModelFamily(name="qwen", title="Qwen, thinking", model_name="qwen3-max", make=StrictToolLoop),
    ModelFamily(
        name="openrouter",
        title="OpenRouter, reasoning details",
        model_name="anthropic/claude-opus-4.8",
        make=StrictOpenRouter,
        kind=ProviderKind.OPENROUTER,
    ),
)
