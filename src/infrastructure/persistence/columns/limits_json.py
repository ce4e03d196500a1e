"""Limits as stored JSON: only those that are stated, amounts of money as text."""

from decimal import Decimal
from typing import cast

from domain.json_value import JsonObject, JsonValue
from domain.runs.limits import LimitSettings

_NAMES = (
    "max_turns",
    "max_tool_calls",
    "max_tokens",
    "context_tokens",
    "timeout_s",
    "turn_tool_timeout_s",
    "tool_timeout_s",
)


def limits_to_json(limits: LimitSettings) -> JsonObject:
    """`{"max_turns": 5, "max_cost_usd": "0.25"}`"""
    stated: JsonObject = {name: value for name in _NAMES if (value := getattr(limits, name)) is not None}
    if limits.max_cost_usd is not None:
        stated["max_cost_usd"] = str(limits.max_cost_usd)
    return stated


def limits_from_json(stored: JsonValue) -> LimitSettings:
    """The inverse of `limits_to_json`."""
    stated = cast(JsonObject, stored)
    cost = stated.get("max_cost_usd")
    return LimitSettings(
        max_turns=cast("int | None", stated.get("max_turns")),
        max_tool_calls=cast("int | None", stated.get("max_tool_calls")),
        max_tokens=cast("int | None", stated.get("max_tokens")),
        max_cost_usd=None if cost is None else Decimal(cast(str, cost)),
        context_tokens=cast("int | None", stated.get("context_tokens")),
        timeout_s=cast("float | None", stated.get("timeout_s")),
        turn_tool_timeout_s=cast("float | None", stated.get("turn_tool_timeout_s")),
        tool_timeout_s=cast("float | None", stated.get("tool_timeout_s")),
    )
