"""Which models are sent images, PDFs and audio."""

import pytest

from domain.model_providers.provider import OFFICIAL_BASE_URLS, ProviderKind
from infrastructure.llm.model_inputs import NOTHING, ModelInput, WiresByInput, inputs_of
from infrastructure.llm.providers import ProviderConfig

pytestmark = pytest.mark.requirement("H5")
IMAGE, PDF, AUDIO = ModelInput.IMAGE, ModelInput.PDF, ModelInput.AUDIO
ELSEWHERE = "https://models.test/v1"
ROUTER = "https://openrouter.ai/api/v1"


def a_provider(kind: ProviderKind, base_url: str) -> ProviderConfig:
    return ProviderConfig(name="acme", kind=kind, base_url=base_url)


@pytest.mark.parametrize(
    ("model", "base_url", "inputs"),
    [
        ("gpt-5.5", OFFICIAL_BASE_URLS[ProviderKind.OPENAI], {IMAGE, PDF}),
        ("o3-mini", OFFICIAL_BASE_URLS[ProviderKind.OPENAI], NOTHING),
        ("gpt-3.5-turbo", OFFICIAL_BASE_URLS[ProviderKind.OPENAI], NOTHING),
        ("gpt-4-turbo", OFFICIAL_BASE_URLS[ProviderKind.OPENAI], {IMAGE, PDF}),
        ("gpt-4o-mini", ELSEWHERE, {IMAGE, PDF}),
        ("gpt-4o-audio-preview", ELSEWHERE, {AUDIO}),
        ("gemini-3-pro", ELSEWHERE, {IMAGE, AUDIO}),
        ("qwen3-omni-flash", ELSEWHERE, {IMAGE, AUDIO}),
        ("llama-9", ELSEWHERE, {IMAGE}),
        ("deepseek-chat", ELSEWHERE, NOTHING),
        ("deepseek-vl2", ELSEWHERE, {IMAGE}),
        ("kimi-k2", ELSEWHERE, NOTHING),
        ("kimi-k2.6", ELSEWHERE, {IMAGE}),
        ("glm-4.6", ELSEWHERE, NOTHING),
        ("glm-4.5v", ELSEWHERE, {IMAGE}),
        ("openai/gpt-oss-120b", ELSEWHERE, NOTHING),
        ("anthropic/claude-opus-4.8", ROUTER, {IMAGE, PDF}),
        ("deepseek/deepseek-chat", ROUTER, {PDF}),
    ],
)
def test_inputs_are_those_of_the_family(model: str, base_url: str, inputs: set[ModelInput]) -> None:
    assert inputs_of(a_provider(ProviderKind.OPENAI, base_url), model) == inputs


@pytest.mark.parametrize(
    ("model", "base_url", "inputs"),
    [
        ("claude-opus-4-8", OFFICIAL_BASE_URLS[ProviderKind.ANTHROPIC], {IMAGE, PDF}),
        ("claude-opus-4-8", ELSEWHERE, {IMAGE, PDF}),
        ("claude-2.1", ELSEWHERE, NOTHING),
        ("glm-5", ELSEWHERE, NOTHING),
        ("acme-1", ELSEWHERE, {IMAGE}),
    ],
)
def test_inputs_over_the_messages_api(model: str, base_url: str, inputs: set[ModelInput]) -> None:
    assert inputs_of(a_provider(ProviderKind.ANTHROPIC, base_url), model) == inputs


def test_models_with_the_same_inputs_share_an_encoder() -> None:
    wires: WiresByInput[list[ModelInput]] = WiresByInput(a_provider(ProviderKind.OPENAI, ELSEWHERE), sorted)
    assert wires.of("llama-9") is wires.of("acme-1")
    assert wires.of("deepseek-chat") is wires.describing()
    assert wires.of("gpt-5.5") == [IMAGE, PDF]
