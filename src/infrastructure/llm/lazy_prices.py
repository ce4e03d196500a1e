"""The price table, loaded when first needed."""

from decimal import Decimal

from application.models.ports import PriceTable
from application.system.lazy import Lazy
from domain.model_providers.provider import SCRIPTED
from domain.runs.usage import ModelUsage


class LazyPriceTable(Lazy[PriceTable]):
    """`PriceTable` loaded on first use; scripted models have no price."""

    def cost_usd(self, model: str, usage: ModelUsage) -> Decimal | None:
        return None if model.startswith(f"{SCRIPTED}:") else self.get().cost_usd(model, usage)
