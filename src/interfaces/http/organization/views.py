"""The organization as JSON."""

from typing import TypedDict

from application.identity.create_organization import CreatedOrganization
from domain.identity.organization import Organization
from domain.threads.message_json import timestamp
from interfaces.http.agents.views import LimitsView, limits_view
from interfaces.http.api_keys.views import CreatedApiKeyView, created_api_key_view
from interfaces.http.tool_policy_views import ToolRuleView, policies_view


class OrganizationView(TypedDict):
    """An organization and its settings."""

    id: str
    name: str
    mcp_enabled: bool
    tool_allowlist: list[str] | None
    tool_policies: dict[str, ToolRuleView]
    models: list[str]
    limits: LimitsView
    daily_budget_usd: float | None
    retention_days: int | None
    first_use: str
    mcp_kinds: list[str] | None
    version: int
    created_at: str


class SavedOrganizationView(OrganizationView):
    """A saved organization; `warnings` name its policies that match no tool."""

    warnings: list[str]


class CreatedOrganizationView(OrganizationView):
    """A new organization; the token in `admin_key` is shown only once."""

    admin_key: CreatedApiKeyView


class OrganizationPage(TypedDict):
    """A page of organizations; `next_cursor` is null on the last one."""

    data: list[OrganizationView]
    next_cursor: str | None


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
        "retention_days": organization.retention_days,
        "first_use": organization.first_use.value,
        "mcp_kinds": None if organization.mcp_kinds is None else list(organization.mcp_kinds),
        "version": organization.version,
        "created_at": timestamp(organization.created_at),
    }


def created_organization_view(created: CreatedOrganization) -> CreatedOrganizationView:
    return {**organization_view(created.organization), "admin_key": created_api_key_view(created.admin_key)}
