"""The price table, loaded when the first price is needed: scripted models never need it."""

from decimal import Decimal

from application.models.ports import PriceTable
from application.system.lazy import Lazy
from domain.model_providers.provider import SCRIPTED
from domain.runs.usage import ModelUsage


class LazyPriceTable(Lazy[PriceTable]):
    """`PriceTable` that is loaded by the first price. Scripted models have none."""

    def cost_usd(self, model: str, usage: ModelUsage) -> Decimal | None:
        return None if model.startswith(f"{SCRIPTED}:") else self.get().cost_usd(model, usage)
