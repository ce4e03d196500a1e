"""What pages say of the cost of runs."""

from dataclasses import replace
from decimal import Decimal

from domain.ids import RunId
from domain.runs.usage import ModelUsage, Usage
from interfaces.console.run_costs import RunCosts
from tests.builders import a_run, numbered


class PricesOfOne:
    """One model is free; the others are unknown."""

    def cost_usd(self, model: str, usage: ModelUsage) -> Decimal | None:
        """Nothing, or no price."""
        return Decimal(0) if model == "local:free" else None


def test_only_runs_that_cost_nothing_of_models_without_a_price_cost_what_nobody_knows() -> None:
    models = ("local:free", "local:unknown", "local:unknown")
    free, unknown, partly = (
        replace(a_run(RunId(numbered("run", number))), model=model) for number, model in enumerate(models)
    )
    partly = replace(partly, usage=Usage(cost_usd=Decimal("0.01")))  # a fallback model had a price
    assert RunCosts(prices=PricesOfOne()).unknown((free, unknown, partly)) == {unknown.id}
