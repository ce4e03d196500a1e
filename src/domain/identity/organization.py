"""Organizations: the tenants. Nothing is shared between them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from domain.errors import Violation, invalid
from domain.identity.api_key import person_of
from domain.identity.impersonation import who_acts
from domain.identity.user_limits import UserLimits
from domain.ids import ApiKeyId, OrganizationId, UserId
from domain.mcp.kinds import KINDS
from domain.mcp.pinning import FirstUse
from domain.policy.rules import NO_POLICIES, ToolPolicies
from domain.runs.admission import bound_violations
from domain.runs.lane import MAX_QUEUE_WEIGHT
from domain.runs.limits import LimitSettings
from domain.secrets.secret import SecretRef, violations_of

MAX_NAME_LENGTH = 200
MAX_MODELS = 100
MAX_RETENTION_DAYS = 36_500
MAX_USER_BUDGETS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Organization:
    """A tenant. `version` counts its changes. Without `mcp_enabled` no MCP server is contacted for
    it.

    - `tool_allowlist`, `tool_policies` and `limits` apply to all of its agents, and agents can only
      narrow them. An agent's rule may replace an `overridable` rule.
    - Any run may request one of `models`, besides the models of its agent.
    - `daily_budget_usd` bounds the cost of its runs per UTC day; `retention_days` is how long its
      data is stored. None sets no bound.
    - `user_daily_budget_usd` bounds the cost of the runs that one user starts per UTC day.
      `user_daily_budgets_usd` has other budgets by the ids of users.
    - `user_limits` hold for each user, and `limits_of_users` are other ones by the ids of users.
    - With `keys_count_for_users`, budgets and limits of a user also hold what is done with API keys
      that the user made.
    - `first_use` says what happens to the first tool definitions of servers that are not trusted.
    - `mcp_kinds` are the kinds of MCP servers that it may register and start
      (`domain/mcp/kinds.py`).
      None permits all.
    - `queue_weight` is its share of the runs that start while runs of several organizations wait.
    - `max_queued` runs of it may be queued at most, and `max_running` be in progress. None sets no
      bound.

    - `inbox_webhook_secret` names the secret with the address to which what waits for people is
      sent.

    Only platform keys change `mcp_kinds`, `queue_weight`, `max_queued` and `max_running`.
    """

    id: OrganizationId
    name: str
    created_at: datetime
    mcp_enabled: bool = True
    version: int = 1
    tool_allowlist: tuple[str, ...] | None = None
    tool_policies: ToolPolicies = NO_POLICIES
    models: tuple[str, ...] = ()
    limits: LimitSettings = LimitSettings()
    daily_budget_usd: Decimal | None = None
    user_daily_budget_usd: Decimal | None = None
    user_daily_budgets_usd: Mapping[str, Decimal] = field(default_factory=dict)
    user_limits: UserLimits = UserLimits()
    limits_of_users: Mapping[str, UserLimits] = field(default_factory=dict)
    keys_count_for_users: bool = False
    retention_days: int | None = None
    first_use: FirstUse = FirstUse.APPROVE
    mcp_kinds: tuple[str, ...] | None = None
    queue_weight: int = 1
    max_queued: int | None = None
    max_running: int | None = None
    inbox_webhook_secret: str | None = None

    def __post_init__(self) -> None:
        wrong = []
        if not self.name.strip() or len(self.name) > MAX_NAME_LENGTH:
            message = f"must be 1 to {MAX_NAME_LENGTH} characters, not all of them blank"
            wrong.append(Violation(path="name", message=message))
        if len(self.models) > MAX_MODELS:
            wrong.append(Violation(path="models", message=f"names more than {MAX_MODELS} models"))
        wrong += [
            Violation(path=f"models.{index}", message="must have the form PROVIDER:NAME, such as openai:gpt-5-mini")
            for index, model in enumerate(self.models[:MAX_MODELS])
            if not all(model.partition(":"))
        ]
        if len(set(self.models)) != len(self.models):
            wrong.append(Violation(path="models", message="names a model twice"))
        if self.daily_budget_usd is not None and not self.daily_budget_usd >= 0:
            wrong.append(Violation(path="daily_budget_usd", message="must not be negative"))
        wrong += [*self._user_budget_violations(), *self._user_limit_violations()]
        if self.retention_days is not None and not 0 < self.retention_days <= MAX_RETENTION_DAYS:
            wrong.append(Violation(path="retention_days", message=f"must be 1 to {MAX_RETENTION_DAYS}"))
        if not 0 < self.queue_weight <= MAX_QUEUE_WEIGHT:
            wrong.append(Violation(path="queue_weight", message=f"must be 1 to {MAX_QUEUE_WEIGHT}"))
        if self.inbox_webhook_secret is not None:
            wrong += violations_of("inbox_webhook_secret", SecretRef(self.inbox_webhook_secret))
        wrong += bound_violations(self.max_queued, self.max_running)
        wrong += [
            Violation(path=f"mcp_kinds.{index}", message=f"must be one of {', '.join(KINDS)}")
            for index, kind in enumerate(self.mcp_kinds or ())
            if kind not in KINDS
        ]
        if wrong:
            raise invalid("organization_invalid", "The organization is not valid.", *wrong)

    def user_behind(self, starter: ApiKeyId, key_of: UserId | None) -> UserId | None:
        """The user for whom counts what `starter` does: a user, or who acts as another one. A key
        counts for who made it, `key_of`, if keys do; a schedule for the user with whose accounts it
        runs, who is its starter."""
        return person_of(who_acts(starter)) or (key_of if self.keys_count_for_users else None)

    @property
    def has_user_budgets(self) -> bool:
        return self.user_daily_budget_usd is not None or bool(self.user_daily_budgets_usd)

    def budget_of(self, user_id: UserId) -> Decimal | None:
        """The daily budget of the user."""
        return self.user_daily_budgets_usd.get(user_id, self.user_daily_budget_usd)

    def limits_of(self, user_id: UserId) -> UserLimits:
        own = self.limits_of_users.get(user_id)
        return self.user_limits if own is None else own.or_else(self.user_limits)

    def _user_budget_violations(self) -> Iterator[Violation]:
        if self.user_daily_budget_usd is not None and not self.user_daily_budget_usd >= 0:
            yield Violation(path="user_daily_budget_usd", message="must not be negative")
        if len(self.user_daily_budgets_usd) > MAX_USER_BUDGETS:
            yield Violation(path="user_daily_budgets_usd", message=f"names more than {MAX_USER_BUDGETS} users")
        for user_id, budget in self.user_daily_budgets_usd.items():
            if person_of(user_id) is None or not budget >= 0:
                message = "must be an id of a user (usr_…) with a budget that is not negative"
                yield Violation(path=f"user_daily_budgets_usd.{user_id}", message=message)

    def _user_limit_violations(self) -> Iterator[Violation]:
        yield from self.user_limits.violations("user_limits")
        if len(self.limits_of_users) > MAX_USER_BUDGETS:
            yield Violation(path="limits_of_users", message=f"names more than {MAX_USER_BUDGETS} users")
        for user_id, limits in self.limits_of_users.items():
            path = f"limits_of_users.{user_id}"
            if person_of(user_id) is None:
                yield Violation(path=path, message="must be an id of a user (usr_…)")
            yield from limits.violations(path)
