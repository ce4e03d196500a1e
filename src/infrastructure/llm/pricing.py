"""Prices of models from the table that ships with genai-prices; nothing is fetched.

Importing this file and making the first table takes about half a second of CPU and 16 MB: go through lazy_prices.py.
"""

from collections.abc import Iterable
from decimal import Decimal

from genai_prices import Usage as PricedUsage
from genai_prices import calc_price
from genai_prices.data_snapshot import get_snapshot

from domain.model_providers.provider import ProviderKind
from domain.runs.usage import ModelUsage
from infrastructure.llm.providers import ProviderConfig

_MAX_REMEMBERED = 1024


class GenaiPriceTable:
    """PriceTable over the configured providers.

    A model is looked up by the address of its provider, so that gateways with prices of their own are known as such, and
    else by the wire the provider speaks: a proxy in front of a vendor is priced as the vendor. A provider that is not among
    the configured ones is an organization's, and priced as the vendor of the model it names. A model that is in none of
    these places has no price. Prices are those of the day.
    """

    def __init__(self, providers: Iterable[ProviderConfig]) -> None:
        self._providers = {provider.name: provider for provider in providers}
        self._sellers: dict[str, str | None] = {}
        self._snapshot = get_snapshot()

    def cost_usd(self, model: str, usage: ModelUsage) -> Decimal | None:
        """The price in US dollars, or None."""
        seller = self._seller(model)
        if seller is None:
            return None
        counts = PricedUsage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cached_tokens,
            cache_write_tokens=usage.cache_write_tokens,
        )
        try:
            return calc_price(counts, model.partition(":")[2], provider_id=seller).total_price
        except (
            LookupError,
            ValueError,
        ):  # the table has no price for one of these counts, or they contradict each other
            return None

    def _seller(self, model: str) -> str | None:
        """The table's id of who sells `PROVIDER:NAME`."""
        if model not in self._sellers:
            if len(self._sellers) >= _MAX_REMEMBERED:
                self._sellers.clear()
            self._sellers[model] = self._find_seller(model)
        return self._sellers[model]

    def _find_seller(self, model: str) -> str | None:
        provider_name, _, name = model.partition(":")
        provider = self._providers.get(provider_name)
        if provider is None:
            # One that an organization added: which wire it speaks is told by which vendor's model it is named after.
            places: tuple[tuple[str | None, str | None], ...] = tuple((kind.value, None) for kind in ProviderKind)
        else:
            places = ((None, provider.base_url), (provider.kind.value, None))
        for provider_id, address in places:
            try:
                seller, _ = self._snapshot.find_provider_model(name, None, provider_id, address)
            except LookupError:
                continue
            return seller.id
        return None
