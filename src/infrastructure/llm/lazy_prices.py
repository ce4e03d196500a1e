"""The price table, loaded when the first price is asked for: whoever runs scripted models only never pays for it."""

import asyncio
from collections.abc import Callable
from decimal import Decimal

from application.models.ports import PriceTable
from domain.model_providers.provider import SCRIPTED
from domain.runs.usage import ModelUsage


class LazyPriceTable:
    """PriceTable that `load` makes on first use. Scripted models are never priced."""

    def __init__(self, load: Callable[[], PriceTable]) -> None:
        self._load = load
        self._table: PriceTable | None = None

    def cost_usd(self, model: str, usage: ModelUsage) -> Decimal | None:
        """The price in US dollars, or None."""
        if model.startswith(f"{SCRIPTED}:"):
            return None
        if self._table is None:
            self._table = self._load()
        return self._table.cost_usd(model, usage)

    async def warm(self) -> None:
        """Load the table beside the event loop, for a service that is about to need it."""
        if self._table is None:
            self._table = await asyncio.to_thread(self._load)
