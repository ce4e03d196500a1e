"""Body of the organization route."""

from decimal import Decimal
from typing import Annotated, ClassVar

from pydantic import Field

from application.system.changes import Changes
from domain.identity.organization import MAX_RETENTION_DAYS, MAX_USER_BUDGETS
from domain.identity.user_limits import MAX_ACTIVE_RUNS, UserLimits
from domain.json_value import JsonObject
from domain.mcp.kinds import KINDS
from domain.mcp.pinning import FirstUse
from domain.runs.admission import MAX_QUEUED, MAX_RUNNING
from domain.runs.lane import MAX_QUEUE_WEIGHT
from domain.runs.limits import LimitSettings
from interfaces.http.agents.schemas import LimitsBody
from interfaces.http.bodies import Body, Name, Patch, Strings
from interfaces.http.organization.views import OrganizationView, UserLimitsView
from interfaces.http.rates import RateLimitBody
from interfaces.http.tool_policies import PoliciesBody, policies_of

McpKind = Annotated[str, Field(json_schema_extra={"enum": [*KINDS]})]


class UserLimitsBody(Body):
    """Limits of one user. What is absent or null sets none, or leaves it to the limits of all
    users."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"rate_limit": {"calls": 60, "per_s": 60}, "max_active_runs": 5},)
    shown_as: ClassVar[type] = UserLimitsView

    rate_limit: RateLimitBody | None = None
    max_active_runs: int | None = Field(default=None, gt=0, le=MAX_ACTIVE_RUNS)

    def to_domain(self) -> UserLimits:
        return UserLimits(**self.values())


class UpdateOrganizationBody(Patch):
    """Changes to the organization. Absent fields stay; limits are merged one by one.
    `mcp_enabled` switches every MCP server on or off, at once. Allowlist, policies and limits
    apply to all agents."""

    examples: ClassVar[tuple[JsonObject, ...]] = (
        {"mcp_enabled": False},
        {"tool_policies": {"mcp__*__delete_*": {"decision": "deny"}}, "limits": {"max_cost_usd": 2}},
    )
    shown_as: ClassVar[type] = OrganizationView
    nullable: ClassVar[frozenset[str]] = frozenset(
        {
            "tool_allowlist",
            "daily_budget_usd",
            "user_daily_budget_usd",
            "retention_days",
            "mcp_kinds",
            "max_queued",
            "max_running",
            "inbox_webhook_secret",
        }
    )

    name: str | None = None
    mcp_enabled: bool | None = None
    tool_allowlist: Strings | None = Field(default=None, description="null removes the allowlist.")
    tool_policies: PoliciesBody | None = Field(default=None, description="Replaces all of them.")
    models: Strings | None = None
    limits: LimitsBody | None = Field(default=None, description="Merged with its limits one by one.")
    daily_budget_usd: Annotated[Decimal, Field(strict=False, ge=0, le=10**9)] | None = Field(
        default=None, description="Most that all runs may cost on one UTC day. null removes the budget."
    )
    user_daily_budget_usd: Annotated[Decimal, Field(strict=False, ge=0, le=10**9)] | None = Field(
        default=None, description="Most that the runs of one user may cost on one UTC day. null removes the budget."
    )
    user_daily_budgets_usd: dict[str, Annotated[Decimal, Field(strict=False, ge=0, le=10**9)]] | None = Field(
        default=None,
        max_length=MAX_USER_BUDGETS,
        description="Other budgets than `user_daily_budget_usd`, by the ids of users. Replaces all of them.",
    )
    user_limits: UserLimitsBody | None = Field(
        default=None, description="Limits of each user: requests, and active runs. Replaces both."
    )
    limits_of_users: dict[str, UserLimitsBody] | None = Field(
        default=None,
        max_length=MAX_USER_BUDGETS,
        description="Other limits than `user_limits`, by the ids of users. Replaces all of them.",
    )
    keys_count_for_users: bool | None = None
    retention_days: int | None = Field(
        default=None, gt=0, le=MAX_RETENTION_DAYS, description="null retains everything."
    )
    first_use: FirstUse | None = Field(default=None, strict=False)
    mcp_kinds: tuple[McpKind, ...] | None = Field(default=None, strict=False, max_length=20)
    queue_weight: int | None = Field(default=None, gt=0, le=MAX_QUEUE_WEIGHT)
    max_queued: int | None = Field(default=None, gt=0, le=MAX_QUEUED)
    max_running: int | None = Field(default=None, gt=0, le=MAX_RUNNING)
    inbox_webhook_secret: Annotated[str, Field(max_length=1_024)] | None = None

    def to_changes(self) -> Changes:
        changes = self.changes(without=frozenset({"limits", "tool_policies"}))
        if self.tool_policies is not None:
            changes["tool_policies"] = policies_of(self.tool_policies)
        return changes

    def to_limit_changes(self) -> Changes:
        return {} if self.limits is None else self.limits.stated()

    def to_limits(self) -> LimitSettings:
        """The limits of a new organization."""
        return LimitSettings() if self.limits is None else self.limits.to_domain()


class CreateOrganizationBody(UpdateOrganizationBody):
    """An organization; absent settings have their defaults."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"name": "Acme"},)

    name: str


class OrganizationKeyBody(Body):
    """An additional admin key of an organization."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"name": "second admin"},)

    name: Name = Field(description="Name of the key.")
