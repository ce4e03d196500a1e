"""Bodies of the agent routes, and their conversion to domain values."""

from decimal import Decimal
from typing import Annotated, ClassVar

from pydantic import Field

from application.agents.canary_settings import GivenCanary
from application.system.changes import Changes
from domain.agents.agent import AgentSettings
from domain.json_value import JsonObject
from domain.runs.admission import MAX_QUEUED, MAX_RUNNING
from domain.runs.lane import Lane
from domain.runs.limits import LimitSettings
from interfaces.http.agents.model_settings import ModelSettingsBody
from interfaces.http.agents.views import AgentView, LimitsView
from interfaces.http.bodies import Body, Name, Patch, Strings
from interfaces.http.tool_policies import PoliciesBody, policies_of

_MAX_INSTRUCTIONS = 500_000
_DAY_S = 86_400
_MAX_DESCRIPTION = 2_000
DailyBudget = Annotated[Decimal, Field(strict=False, ge=0, le=10**9)] | None
_POLICIES: JsonObject = {"mcp__git__git_push": {"decision": "require_approval"}}
_ANSWER: JsonObject = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "population": {"type": "integer"}},
    "required": ["city", "population"],
}
_EXAMPLE: JsonObject = {
    "name": "repository-guide",
    "model": "openai:gpt-5-mini",
    "instructions": "Answer questions about the repository. Look before you answer.",
    "tools": ["code_execution"],
    "mcp_servers": ["git"],
    "limits": {"max_turns": 12, "max_cost_usd": 0.5},
}


class LimitsBody(Body):
    """Limits of runs. Absent and null leave the default; in a PATCH null removes a limit."""

    shown_as: ClassVar[type] = LimitsView

    max_turns: int | None = Field(default=None, gt=0, le=10_000)
    max_tool_calls: int | None = Field(default=None, gt=0, le=100_000)
    max_calls_per_turn: int | None = Field(default=None, gt=0, le=1_000)
    max_tokens: int | None = Field(default=None, gt=0, le=10**9)
    max_cost_usd: Annotated[Decimal, Field(strict=False, gt=0, le=10**6)] | None = None
    context_tokens: int | None = Field(default=None, gt=0, le=10**8)
    timeout_s: float | None = Field(default=None, gt=0, le=30 * _DAY_S)
    turn_tool_timeout_s: float | None = Field(default=None, gt=0, le=_DAY_S)
    tool_timeout_s: float | None = Field(default=None, gt=0, le=_DAY_S)
    model_attempts: int | None = Field(default=None, gt=0, le=1_000)
    model_retry_s: float | None = Field(default=None, gt=0, le=_DAY_S)

    def to_domain(self) -> LimitSettings:
        """The limits; None for absent ones."""
        return LimitSettings(**self.values())


class CanaryTokenBody(Body):
    """A text that the agent must never output. An id alone means the agent's existing token."""

    id: str | None = Field(
        default=None, description="Generated if absent. `[canary:ID]` replaces the token where it is found."
    )
    token: str | None = Field(default=None, repr=False, description="8 to 256 characters. Write-only.")
    per_run: bool = Field(default=False, description="Each run gets its own token in place of `{{canary:ID}}`.")


CanaryTokens = Annotated[tuple[str | CanaryTokenBody, ...], Field(strict=False, max_length=1_000)]
_CANARIES = "Tokens that the agent must never output: strings or objects. Read back as ids only."


def _given(tokens: tuple[str | CanaryTokenBody, ...]) -> tuple[GivenCanary, ...]:
    return tuple(
        GivenCanary(token=entry)
        if isinstance(entry, str)
        else GivenCanary(id=entry.id, token=entry.token, per_run=entry.per_run)
        for entry in tokens
    )


class CreateAgentBody(Body):
    """An agent. `tool_allowlist` holds tool names or globs: absent uses the organization's, `[]`
    allows nothing."""

    examples: ClassVar[tuple[JsonObject, ...]] = (_EXAMPLE,)

    shown_as: ClassVar[type] = AgentView

    name: Name
    model: Name
    fallback_models: Strings = ()
    instructions: str = Field(default="", max_length=_MAX_INSTRUCTIONS)
    tools: Strings = ()
    mcp_servers: Strings = ()
    tool_allowlist: Strings | None = Field(default=None, examples=[["code_execution", "mcp__git__*"]])
    tool_policies: PoliciesBody = Field(default={}, examples=[_POLICIES])
    limits: LimitsBody = Field(default_factory=LimitsBody)
    model_settings: ModelSettingsBody = Field(default_factory=ModelSettingsBody)
    daily_budget_usd: DailyBudget = None
    canary_tokens: CanaryTokens = Field(default=(), description=_CANARIES, repr=False)
    enabled: bool = True
    description: str = Field(default="", max_length=_MAX_DESCRIPTION)
    agents: Strings = ()
    independent_agents: Strings = ()
    reasoning_summary: bool = False
    output_schema: dict[str, object] | None = Field(default=None, examples=[_ANSWER])
    lane: Annotated[Lane, Field(strict=False)] = Lane.NORMAL
    max_queued: int | None = Field(default=None, gt=0, le=MAX_QUEUED)
    max_running: int | None = Field(default=None, gt=0, le=MAX_RUNNING)
    team: Name | None = None

    def to_canaries(self) -> tuple[GivenCanary, ...]:
        return _given(self.canary_tokens)

    def to_settings(self) -> AgentSettings:
        """The settings, not yet checked against existing models, tools and servers."""
        values = self.values(without=frozenset({"canary_tokens", "tool_policies"}))
        return AgentSettings(**values, tool_policies=policies_of(self.tool_policies))


class UpdateAgentBody(Patch, of=CreateAgentBody):
    """Changes to an agent; each creates a new version. Absent fields stay; limits are merged one
    by one."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"instructions": "Be brief."},)
    nullable: ClassVar[frozenset[str]] = frozenset(
        {"tool_allowlist", "daily_budget_usd", "output_schema", "max_queued", "max_running", "team"}
    )

    tool_allowlist: Strings | None = Field(default=None, description="null removes the allowlist.")
    tool_policies: PoliciesBody | None = Field(default=None, description="Replaces all of them.")
    limits: LimitsBody | None = Field(default=None, description="Merged with its limits one by one.")
    model_settings: ModelSettingsBody | None = Field(default=None, description="Replaces all of them.")
    daily_budget_usd: DailyBudget = Field(default=None, description="null removes the budget.")
    output_schema: dict[str, object] | None = Field(default=None, description="null removes it.")
    canary_tokens: CanaryTokens | None = Field(
        default=None, description=_CANARIES + " Replaces all of them.", repr=False
    )

    def to_canaries(self) -> tuple[GivenCanary, ...] | None:
        """The tokens; None keeps the agent's."""
        return None if self.canary_tokens is None else _given(self.canary_tokens)

    def to_changes(self) -> Changes:
        changes = self.changes(without=frozenset({"canary_tokens", "limits", "tool_policies"}))
        if self.tool_policies is not None:
            changes["tool_policies"] = policies_of(self.tool_policies)
        return changes

    def to_limit_changes(self) -> Changes:
        return {} if self.limits is None else self.limits.stated()
