"""The organization as JSON."""

from typing import Annotated, TypedDict

from application.identity.create_organization import CreatedOrganization
from domain.identity.organization import Organization
from domain.identity.user_limits import UserLimits
from domain.mcp.pinning import FirstUse
from domain.threads.message_json import timestamp
from interfaces.http.agents.views import LimitsView, limits_view
from interfaces.http.api_keys.views import CreatedApiKeyView, created_api_key_view
from interfaces.http.rate_views import RateLimitView, rate_limit_view
from interfaces.http.tool_policy_views import ToolRuleView, policies_view
from interfaces.http.view_fields import CreatedAt, Items, NextCursor, Version, Warnings


class UserLimitsView(TypedDict):
    """Limits of one user."""

    rate_limit: Annotated[
        RateLimitView | None,
        "Limit of the user's requests to the API, the gateway and the console together; null: none.",
    ]
    max_active_runs: Annotated[int | None, "Most runs of the user that may be queued or in progress; null: any number."]


class OrganizationView(TypedDict):
    """An organization and its settings."""

    id: Annotated[str, "Id of the organization."]
    name: Annotated[str, "Name of the organization."]
    mcp_enabled: Annotated[bool, "Whether MCP servers are used; `false` switches every one of them off at once."]
    tool_allowlist: Annotated[list[str] | None, "Tool names or globs for all agents; null: no allowlist."]
    tool_policies: Annotated[dict[str, ToolRuleView], "Rules by tool name or glob, for all agents."]
    models: Annotated[list[str], "Models that runs may select besides their agent's."]
    limits: Annotated[LimitsView, "Limits of all runs."]
    daily_budget_usd: Annotated[float | None, "Most that all runs may cost on one UTC day; null: no budget."]
    user_daily_budget_usd: Annotated[
        float | None, "Most that the runs of one user may cost on one UTC day; null: no budget."
    ]
    user_daily_budgets_usd: Annotated[
        dict[str, float], "Other budgets than `user_daily_budget_usd`, by the ids of users."
    ]
    user_limits: Annotated[UserLimitsView, "Limits of each user: requests, and active runs."]
    limits_of_users: Annotated[
        dict[str, UserLimitsView],
        "Other limits than `user_limits`, by the ids of users. A null of theirs leaves it to `user_limits`.",
    ]
    keys_count_for_users: Annotated[
        bool, "Whether what is done with an API key counts for the user who made it, within their budget and limits."
    ]
    retention_days: Annotated[int | None, "Days after which ended threads are deleted; null retains everything."]
    first_use: Annotated[
        FirstUse,
        "What happens to the first tool definitions of MCP servers that are not trusted: `approve` (those that hide "
        "text wait for approval) or `review` (all of them wait).",
    ]
    mcp_kinds: Annotated[
        list[str] | None,
        "Kinds of MCP servers that may be registered and started; `archive` is a package from a file of this machine. "
        "null permits all. Requires a platform key.",
    ]
    queue_weight: Annotated[
        int,
        "Its share of the runs that start while runs of several organizations wait, relative to theirs. "
        "Requires a platform key.",
    ]
    max_queued: Annotated[int | None, "Most runs that may be queued; null: any number. Requires a platform key."]
    max_running: Annotated[int | None, "Most runs that may be in progress; null: any number. Requires a platform key."]
    inbox_webhook_secret: Annotated[
        str | None,
        "Name of the secret with the URL to which approvals, questions of workflows, and tools and threads in quarantine are "
        "sent; null: nothing is sent.",
    ]
    version: Version
    created_at: CreatedAt


class SavedOrganizationView(OrganizationView):
    """A saved organization; `warnings` name its policies that match no tool, and users with limits
    who do not exist."""

    warnings: Warnings


class CreatedOrganizationView(OrganizationView):
    """A new organization; the token in `admin_key` is shown only once."""

    admin_key: Annotated[CreatedApiKeyView, "Its first admin key."]


class OrganizationPage(TypedDict):
    """A page of organizations; `next_cursor` is null on the last one."""

    data: Items[OrganizationView]
    next_cursor: NextCursor


def user_limits_view(limits: UserLimits) -> UserLimitsView:
    return {"rate_limit": rate_limit_view(limits.rate_limit), "max_active_runs": limits.max_active_runs}


def organization_view(organization: Organization) -> OrganizationView:
    return {
        "id": organization.id,
        "name": organization.name,
        "mcp_enabled": organization.mcp_enabled,
        "tool_allowlist": None if organization.tool_allowlist is None else list(organization.tool_allowlist),
        "tool_policies": policies_view(organization.tool_policies),
        "models": list(organization.models),
        "limits": limits_view(organization.limits),
        "daily_budget_usd": None if organization.daily_budget_usd is None else float(organization.daily_budget_usd),
        "user_daily_budget_usd": (
            None if organization.user_daily_budget_usd is None else float(organization.user_daily_budget_usd)
        ),
        "user_daily_budgets_usd": {
            user_id: float(budget) for user_id, budget in organization.user_daily_budgets_usd.items()
        },
        "user_limits": user_limits_view(organization.user_limits),
        "limits_of_users": {
            user_id: user_limits_view(limits) for user_id, limits in organization.limits_of_users.items()
        },
        "keys_count_for_users": organization.keys_count_for_users,
        "retention_days": organization.retention_days,
        "first_use": organization.first_use,
        "mcp_kinds": None if organization.mcp_kinds is None else list(organization.mcp_kinds),
        "queue_weight": organization.queue_weight,
        "inbox_webhook_secret": organization.inbox_webhook_secret,
        "max_queued": organization.max_queued,
        "max_running": organization.max_running,
        "version": organization.version,
        "created_at": timestamp(organization.created_at),
    }


def created_organization_view(created: CreatedOrganization) -> CreatedOrganizationView:
    return {**organization_view(created.organization), "admin_key": created_api_key_view(created.admin_key)}
