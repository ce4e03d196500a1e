"""The settings of organizations as stored JSON: only what is set."""

from decimal import Decimal
from typing import TypedDict, cast

from domain.identity.organization import Organization
from domain.json_value import JsonObject, JsonValue
from domain.policy.rule_json import policies_from_json, policies_to_json
from domain.policy.rules import ToolPolicies
from domain.runs.limits import LimitSettings
from infrastructure.persistence.columns.limits_json import limits_from_json, limits_to_json


class StoredSettings(TypedDict):
    """The fields of an organization that stand in its column `settings`."""

    tool_allowlist: tuple[str, ...] | None
    tool_policies: ToolPolicies
    models: tuple[str, ...]
    limits: LimitSettings
    daily_budget_usd: Decimal | None
    retention_days: int | None


def settings_to_json(organization: Organization) -> JsonObject:
    """The column's value."""
    stated: JsonObject = {}
    if organization.tool_allowlist is not None:
        stated["tool_allowlist"] = list(organization.tool_allowlist)
    if organization.tool_policies:
        stated["tool_policies"] = policies_to_json(organization.tool_policies)
    if organization.models:
        stated["models"] = list(organization.models)
    limits = limits_to_json(organization.limits)
    if limits:
        stated["limits"] = limits
    if organization.daily_budget_usd is not None:
        stated["daily_budget_usd"] = str(organization.daily_budget_usd)
    if organization.retention_days is not None:
        stated["retention_days"] = organization.retention_days
    return stated


def settings_from_json(stored: JsonValue) -> StoredSettings:
    """The inverse of `settings_to_json`."""
    stated = cast(JsonObject, stored)
    allowlist = cast("list[str] | None", stated.get("tool_allowlist"))
    budget = cast("str | None", stated.get("daily_budget_usd"))
    return {
        "tool_allowlist": None if allowlist is None else tuple(allowlist),
        "tool_policies": policies_from_json(stated.get("tool_policies", {})),
        "models": tuple(cast("list[str]", stated.get("models", []))),
        "limits": limits_from_json(stated.get("limits", {})),
        "daily_budget_usd": None if budget is None else Decimal(budget),
        "retention_days": cast("int | None", stated.get("retention_days")),
    }
