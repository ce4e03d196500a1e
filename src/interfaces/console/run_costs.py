"""Which runs cost what nobody knows: those of models without a price."""

from collections.abc import Iterable

from application.models.ports import PriceTable
from domain.ids import RunId
from domain.runs.run import Run
from domain.runs.usage import ModelUsage

_ANY_USAGE = ModelUsage(input_tokens=1, output_tokens=1)


class RunCosts:
    """A sum of nothing says two things: that it was free, or that no price is known. Pages tell them apart."""

    def __init__(self, *, prices: PriceTable) -> None:
        self._prices = prices

    def unknown(self, runs: Iterable[Run]) -> frozenset[RunId]:
        """Those of `runs` of which nothing could be priced, since their model is in no price list."""
        free = [run for run in runs if not run.usage.cost_usd]
        unpriced = {model for model in {run.model for run in free} if self._prices.cost_usd(model, _ANY_USAGE) is None}
        return frozenset(run.id for run in free if run.model in unpriced)
