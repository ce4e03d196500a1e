"""Prices of models from the table in genai-prices; nothing is downloaded. Importing this file and
creating the first table takes half a second of CPU and 16 MB: use lazy_prices.py."""

import re
from collections.abc import Iterable
from decimal import Decimal

from genai_prices import Usage as PricedUsage
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ModelInfo, Provider

from domain.model_providers.provider import ProviderKind
from domain.runs.usage import ModelUsage
from infrastructure.llm.providers import ProviderConfig

_MAX_REMEMBERED = 1024
_KINDS = {kind.value: kind for kind in ProviderKind}
_VENDORS = (
    ProviderKind.OPENAI,
    ProviderKind.ANTHROPIC,
    ProviderKind.GOOGLE,
    ProviderKind.MISTRAL,
    ProviderKind.XAI,
    ProviderKind.DEEPSEEK,
    ProviderKind.MOONSHOTAI,
    ProviderKind.COHERE,
    ProviderKind.ZAI,
)
"""Kinds that sell models which they make."""
_NAME_ON_BEDROCK = re.compile(r"(?:[a-z]+\.)?[a-z0-9]+\.[a-z]")
"""`MAKER.MODEL`, where a region or `global` may precede the maker."""
_SELLERS = {ProviderKind.BEDROCK: "aws", ProviderKind.XAI: "x-ai"}
"""Names that the table has for kinds of other names."""


class GenaiPriceTable:
    """PriceTable over the configured providers. Prices are those of the current day.

    - The vendor is found by the provider's address, so that gateways with own prices are
      recognized, else by the wire format.
    - A provider of an organization that has the name of a kind is priced as that vendor, any other
      one as the vendor of the model named, or as Bedrock if the model has a name of Bedrock.
    - Other models have no price.
    """

    def __init__(self, providers: Iterable[ProviderConfig]) -> None:
        self._providers = {provider.name: provider for provider in providers}
        self._sold: dict[str, tuple[Provider, ModelInfo] | None] = {}
        self._snapshot = get_snapshot()

    def cost_usd(self, model: str, usage: ModelUsage) -> Decimal | None:
        found = self._found(model)
        if found is None:
            return None
        seller, sold = found
        counts = PricedUsage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cached_tokens,
            cache_write_tokens=usage.cache_write_tokens,
        )
        try:
            return sold.calc_price(counts, seller).total_price
        except (
            LookupError,
            ValueError,
        ):  # the table has no price for a count, or the counts contradict each other
            return None

    def _found(self, model: str) -> tuple[Provider, ModelInfo] | None:
        """The table's vendor and model of `PROVIDER:NAME`. Looking them up takes as long as
        calculating the price."""
        if model not in self._sold:
            if len(self._sold) >= _MAX_REMEMBERED:
                self._sold.clear()
            self._sold[model] = self._find(model)
        return self._sold[model]

    def _find(self, model: str) -> tuple[Provider, ModelInfo] | None:
        provider_name, _, name = model.partition(":")
        provider = self._providers.get(provider_name)
        places: tuple[tuple[str | None, str | None], ...]
        if provider is not None:
            places = ((None, provider.base_url), (_seller(provider.kind), None))
        elif provider_name in _KINDS:
            places = ((_seller(_KINDS[provider_name]), None),)
        else:
            kinds = (ProviderKind.BEDROCK, *_VENDORS) if _NAME_ON_BEDROCK.match(name) else _VENDORS
            places = tuple((_seller(kind), None) for kind in kinds)
        for provider_id, address in places:
            try:
                return self._snapshot.find_provider_model(name, None, provider_id, address)
            except LookupError:
                continue
        return None


def _seller(kind: ProviderKind) -> str:
    return _SELLERS.get(kind, kind.value)
