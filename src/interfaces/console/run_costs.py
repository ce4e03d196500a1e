"""Finds runs of unknown cost: those of models without a price."""

from collections.abc import Iterable

from application.models.ports import PriceTable
from domain.ids import RunId
from domain.runs.run import Run
from domain.runs.usage import ModelUsage

_ANY_USAGE = ModelUsage(input_tokens=1, output_tokens=1)


class RunCosts:
    """Distinguishes runs that were free from runs without a known price."""

    def __init__(self, *, prices: PriceTable) -> None:
        self._prices = prices

    def unknown(self, runs: Iterable[Run]) -> frozenset[RunId]:
        """Runs without any priced usage, because their model is in no price list."""
        free = [run for run in runs if not run.usage.cost_usd]
        unpriced = {model for model in {run.model for run in free} if self._prices.cost_usd(model, _ANY_USAGE) is None}
        return frozenset(run.id for run in free if run.model in unpriced)
