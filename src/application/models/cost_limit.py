"""Whether a cost limit can be kept: only with models whose price is known."""

from collections.abc import Iterable

from application.models.ports import PriceTable
from domain.errors import Violation
from domain.runs.limits import LimitSettings
from domain.runs.usage import ModelUsage

_ANY_USAGE = ModelUsage(input_tokens=1, output_tokens=1)


def cost_limit_violations(prices: PriceTable, limits: LimitSettings, models: Iterable[str]) -> list[Violation]:
    """One for each of `models` whose calls cost what nobody knows, if `limits` say what a run may cost."""
    if limits.max_cost_usd is None:
        return []
    return [
        Violation(path="limits.max_cost_usd", message=f"cannot be enforced for model {model}: it has no price")
        for model in models
        if prices.cost_usd(model, _ANY_USAGE) is None
    ]
