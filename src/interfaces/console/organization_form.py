"""The form of an organization's settings: fields from the settings, and the API's body from the
fields."""

from domain.errors import invalid
from domain.json_value import JsonObject
from interfaces.console import policy_rows, user_limits_form
from interfaces.console.form_values import LIMITS, FormValues, allowlist_values, joined, limit_values, text
from interfaces.http.organization.views import OrganizationView

_FIELDS = {
    "name": "name",
    "mcp_enabled": "mcp_enabled",
    "models": "models",
    "daily_budget_usd": "daily_budget_usd",
    "user_daily_budget_usd": "user_daily_budget_usd",
    "user_daily_budgets_usd": "user_daily_budgets_usd",
    "retention_days": "retention_days",
    "first_use": "first_use",
    "tool_allowlist": "allowlist_entries",
    "inbox_webhook_secret": "inbox_webhook_secret",
}


def organization_values(view: OrganizationView) -> dict[str, str]:
    values = {
        "version": str(view["version"]),
        "name": view["name"],
        "models": joined(view["models"]),
        "daily_budget_usd": text(view["daily_budget_usd"]),
        "user_daily_budget_usd": text(view["user_daily_budget_usd"]),
        "user_daily_budgets_usd": "\n".join(
            f"{user_id}={text(budget)}" for user_id, budget in view["user_daily_budgets_usd"].items()
        ),
        "retention_days": text(view["retention_days"]),
        "first_use": view["first_use"],
        "inbox_webhook_secret": view["inbox_webhook_secret"] or "",
    }
    values |= {
        name: "on"
        for name, ticked in (
            ("mcp_enabled", view["mcp_enabled"]),
            ("keys_count_for_users", view["keys_count_for_users"]),
        )
        if ticked
    }
    values |= user_limits_form.limit_fields(view["user_limits"])
    values |= allowlist_values(view["tool_allowlist"]) | limit_values(dict(view["limits"]))
    return values | policy_rows.policy_values(view["tool_policies"])


def organization_body(form: FormValues) -> JsonObject:
    """The API's body. Raises INVALID with unreadable fields."""
    body: JsonObject = {
        "name": form["name"].strip(),
        "mcp_enabled": form.has("mcp_enabled"),
        "tool_allowlist": form.allowlist(),
        "tool_policies": policy_rows.policies_body(form),
        "models": form.lines("models"),
        "limits": form.limits(),
        "daily_budget_usd": form.number("daily_budget_usd"),
        "user_daily_budget_usd": form.number("user_daily_budget_usd"),
        "user_daily_budgets_usd": _user_budgets(form),
        "user_limits": user_limits_form.limits_body(form),
        "keys_count_for_users": form.has("keys_count_for_users"),
        "retention_days": form.whole("retention_days"),
        "first_use": form["first_use"],
        "inbox_webhook_secret": form["inbox_webhook_secret"].strip() or None,
    }
    if form.wrong:
        raise invalid("form_invalid", "The form has invalid fields.", *form.wrong)
    return body


def organization_field(form: FormValues, path: str) -> str | None:
    """The field of a path in the body, or None."""
    first, _, rest = path.partition(".")
    if first == "limits" and rest in LIMITS:
        return path
    if first == "user_limits":
        return user_limits_form.limit_field(path)
    if first == policy_rows.PREFIX and path.count(".") > 1:
        return path  # reported by reading the form
    return _FIELDS.get(first) or policy_rows.rule_field(form, path)


def _user_budgets(form: FormValues) -> JsonObject:
    """Lines `USER=USD`. What is no number is refused by the API's body."""
    lines = (line.partition("=") for line in form["user_daily_budgets_usd"].splitlines())
    return {user_id.strip(): budget.strip() for user_id, _, budget in lines if user_id.strip()}
