"""Checks that a cost limit can be enforced: every model needs a known price."""

from collections.abc import Iterable
from decimal import Decimal

from application.models.ports import PriceTable
from domain.errors import Violation
from domain.runs.usage import ModelUsage

_ANY_USAGE = ModelUsage(input_tokens=1, output_tokens=1)


def cost_limit_violations(
    prices: PriceTable, amount_usd: Decimal | None, models: Iterable[str], *, path: str = "limits.max_cost_usd"
) -> list[Violation]:
    """One violation for each of `models` without a known price, if an amount limits its cost."""
    if amount_usd is None:
        return []
    return [
        Violation(path=path, message=f"cannot be enforced for model {model}: it has no price")
        for model in models
        if prices.cost_usd(model, _ANY_USAGE) is None
    ]
