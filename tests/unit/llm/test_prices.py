"""Prices of model calls."""

from decimal import Decimal

import pytest

from application.models.ports import PriceTable
from domain.model_providers.provider import OFFICIAL_BASE_URLS, ProviderKind
from domain.runs.usage import ModelUsage
from infrastructure.llm.lazy_prices import LazyPriceTable
from infrastructure.llm.pricing import GenaiPriceTable
from infrastructure.llm.providers import ProviderConfig

PROVIDERS = [
    *(
        ProviderConfig(name=kind.value, kind=kind, base_url=OFFICIAL_BASE_URLS[kind])
        for kind in (ProviderKind.OPENAI, ProviderKind.ANTHROPIC)
    ),
    ProviderConfig(name="proxy", kind=ProviderKind.OPENAI, base_url="http://127.0.0.1:4000/v1"),
    ProviderConfig(name="router", kind=ProviderKind.OPENAI, base_url="https://openrouter.ai/api/v1"),
]
USAGE = ModelUsage(input_tokens=1000, output_tokens=100)


@pytest.fixture(scope="module")
def prices() -> PriceTable:
    return GenaiPriceTable(PROVIDERS)


@pytest.mark.requirement("A10")
@pytest.mark.parametrize(
    "model", ["openai:gpt-4o-mini", "anthropic:claude-sonnet-4-5", "anthropic:claude-sonnet-4-5-20250929"]
)
def test_known_models_have_a_price_that_grows_with_what_is_used(prices: PriceTable, model: str) -> None:
    once = prices.cost_usd(model, USAGE)
    twice = prices.cost_usd(model, ModelUsage(input_tokens=2000, output_tokens=200))
    assert once is not None
    assert once > 0
    assert twice == 2 * once


@pytest.mark.requirement("A10")
def test_reading_the_cache_is_cheaper_than_input_and_writing_it_is_dearer(prices: PriceTable) -> None:
    model = "anthropic:claude-sonnet-4-5"
    plain = prices.cost_usd(model, ModelUsage(input_tokens=1000))
    read = prices.cost_usd(model, ModelUsage(input_tokens=1000, cached_tokens=1000))
    written = prices.cost_usd(model, ModelUsage(input_tokens=1000, cache_write_tokens=1000))
    assert plain is not None
    assert read is not None
    assert written is not None
    assert read < plain < written


def test_a_proxy_is_priced_as_the_vendor_behind_its_wire(prices: PriceTable) -> None:
    assert prices.cost_usd("proxy:gpt-4o-mini", USAGE) == prices.cost_usd("openai:gpt-4o-mini", USAGE)


def test_a_gateway_with_prices_of_its_own_is_known_by_its_address(prices: PriceTable) -> None:
    assert prices.cost_usd("router:anthropic/claude-sonnet-4.5", USAGE) is not None


@pytest.mark.requirement("A10", "C7")
@pytest.mark.parametrize("model", ["gpt-4o-mini", "claude-sonnet-4-5"])
def test_a_provider_that_an_organization_added_is_priced_as_the_vendor_of_the_model(
    prices: PriceTable, model: str
) -> None:
    vendor = "openai" if model.startswith("gpt") else "anthropic"
    assert prices.cost_usd(f"acme:{model}", USAGE) == prices.cost_usd(f"{vendor}:{model}", USAGE) != None  # noqa: E711


@pytest.mark.parametrize("model", ["openai:nonsense-9", "proxy:qwen3:8b", "acme:qwen3:8b", "gpt-4o-mini"])
def test_what_nobody_sells_has_no_price(prices: PriceTable, model: str) -> None:
    assert [prices.cost_usd(model, USAGE) for _ in range(2)] == [None, None]


async def test_the_table_is_loaded_once_and_not_for_scripted_models() -> None:
    class Flat:
        def cost_usd(self, model: str, usage: ModelUsage) -> Decimal | None:
            return Decimal(1)

    loads: list[Flat] = []

    def load() -> Flat:
        loads.append(Flat())
        return loads[-1]

    prices = LazyPriceTable(load)
    assert prices.cost_usd("scripted:hello.yaml", USAGE) is None
    assert loads == []
    assert [prices.cost_usd("openai:x", USAGE) for _ in range(3)] == [Decimal(1)] * 3
    await prices.warm()
    assert len(loads) == 1


@pytest.mark.requirement("A10", "H4")
def test_a_provider_of_an_organization_is_priced_as_the_vendor_whose_name_it_has(prices: PriceTable) -> None:
    assert prices.cost_usd("mistral:mistral-large-latest", USAGE) is not None
    assert prices.cost_usd("groq:llama-3.3-70b-versatile", USAGE) is not None
    assert prices.cost_usd("xai:grok-4", USAGE) == prices.cost_usd("ours:grok-4", USAGE) is not None
    assert prices.cost_usd("ours:gemini-2.5-pro", USAGE) == prices.cost_usd("google:gemini-2.5-pro", USAGE) is not None
    assert prices.cost_usd("ollama:gpt-4o-mini", USAGE) is None


@pytest.mark.requirement("A10", "H4")
def test_names_of_bedrock_are_priced_as_bedrock_whatever_the_provider_is_called(prices: PriceTable) -> None:
    for name in ("amazon.nova-pro-v1:0", "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"):
        assert prices.cost_usd(f"ours:{name}", USAGE) == prices.cost_usd(f"bedrock:{name}", USAGE) is not None
    assert prices.cost_usd("ours:glm-4.6", USAGE) == prices.cost_usd("zai:glm-4.6", USAGE) is not None
    assert prices.cost_usd("ours:gpt-4.1", USAGE) == prices.cost_usd("openai:gpt-4.1", USAGE) is not None
