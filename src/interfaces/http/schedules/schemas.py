"""Bodies of the schedule routes, and their conversion to commands."""

from typing import Annotated, ClassVar, cast

from pydantic import Field

from application.schedules.create_schedule import CreateScheduleCommand
from application.schedules.update_schedule import UpdateScheduleCommand
from domain.errors import ServiceError, Violation, invalid
from domain.identity.api_key import Principal
from domain.ids import ThreadId
from domain.json_value import JsonObject
from domain.runs.lane import Lane
from domain.runs.run import MultitaskStrategy
from domain.schedules.schedule import MissedFires
from interfaces.http.agents.model_settings import ModelSettingsBody
from interfaces.http.agents.schemas import LimitsBody
from interfaces.http.bodies import Body, Name, Patch, Strings
from interfaces.http.schedules.views import ScheduleView
from interfaces.http.threads.schemas import UserInput, user_content
from interfaces.http.webhooks.schemas import WebhookField, webhook_of

_EXAMPLE: JsonObject = {
    "name": "morning-report",
    "cron": "0 7 * * MON-FRI",
    "timezone": "Europe/Lisbon",
    "agent": "repository-guide",
    "input": "What changed since yesterday?",
}
OWN_ACCOUNT = "Its runs act as the caller, with their own accounts at MCP servers. For people who signed in."
Cron = Annotated[str, Field(max_length=1_000, examples=["0 7 * * MON-FRI"])]
Zone = Annotated[str, Field(max_length=200, examples=["Europe/Lisbon"])]
Strategy = Annotated[MultitaskStrategy, Field(strict=False)]
Missed = Annotated[MissedFires, Field(strict=False)]


class ScheduleBody(Body):
    """A schedule: a cron expression and the run that it starts, with an agent named by
    `agent_id` or `agent`."""

    examples: ClassVar[tuple[JsonObject, ...]] = (_EXAMPLE,)

    shown_as: ClassVar[type] = ScheduleView

    name: Name
    cron: Cron
    timezone: Zone = "UTC"
    agent_id: Name | None = None
    agent: Name | None = Field(default=None, description="The agent's name.")
    input: UserInput = Field(description="Text, or parts of type text, image and file.")
    thread_id: Name | None = None
    multitask_strategy: Strategy = MultitaskStrategy.ENQUEUE
    lane: Annotated[Lane, Field(strict=False)] | None = None
    limits: LimitsBody = Field(default_factory=LimitsBody)
    model_settings: ModelSettingsBody = Field(default_factory=ModelSettingsBody)
    output_schema: dict[str, object] | None = None
    model: Name | None = None
    tool_allowlist: Strings | None = None
    metadata: dict[str, object] = Field(default_factory=dict)
    webhook: WebhookField | None = None
    missed: Missed = MissedFires.RUN_ONCE
    enabled: bool = True
    own_account: bool = Field(default=False, description=OWN_ACCOUNT)

    def to_command(self, principal: Principal) -> CreateScheduleCommand:
        """Raises INVALID `body_invalid`."""
        agent = self.agent_id or self.agent
        if not agent or (self.agent_id and self.agent):
            raise _one_agent()
        return CreateScheduleCommand(
            principal=principal,
            name=self.name,
            cron=self.cron,
            timezone=self.timezone,
            agent=agent,
            input=user_content(self.input, "input"),
            thread_id=None if self.thread_id is None else ThreadId(self.thread_id),
            strategy=self.multitask_strategy,
            lane=self.lane,
            limits=self.limits.to_domain(),
            model_settings=self.model_settings.to_domain(),
            output_schema=cast("JsonObject | None", self.output_schema),
            model=self.model,
            tool_allowlist=self.tool_allowlist,
            metadata=cast(JsonObject, self.metadata),
            webhook=None if self.webhook is None else webhook_of(self.webhook),
            missed=self.missed,
            enabled=self.enabled,
            own_account=self.own_account,
        )


class UpdateScheduleBody(Patch, of=ScheduleBody):
    """Changes to a schedule. Absent fields stay; limits are merged one by one. `enabled` pauses
    and resumes it."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"cron": "0 8 * * MON-FRI"}, {"enabled": False})
    nullable: ClassVar[frozenset[str]] = frozenset(
        {"thread_id", "lane", "output_schema", "model", "tool_allowlist", "webhook"}
    )

    agent_id: Name | None = None
    agent: Name | None = Field(default=None, description="The agent's name.")
    input: UserInput | None = Field(default=None, description="Text, or parts of type text, image and file.")
    multitask_strategy: Strategy | None = None
    limits: LimitsBody | None = None
    model_settings: ModelSettingsBody | None = Field(default=None, description="Replaces all of them.")
    output_schema: dict[str, object] | None = Field(default=None, description="null: the agent's.")
    metadata: dict[str, object] | None = Field(default=None, description="Replaces it entirely.")
    webhook: WebhookField | None = None
    own_account: bool | None = Field(default=None, description=f"{OWN_ACCOUNT} `false`: as no person.")

    def to_command(self, principal: Principal, schedule: str, *, expected_version: int | None) -> UpdateScheduleCommand:
        """Raises INVALID `body_invalid`."""
        changes = self.changes(
            without=frozenset({"agent", "agent_id", "input", "limits", "multitask_strategy", "webhook", "own_account"})
        )
        if self.agent_id is not None and self.agent is not None:
            raise _one_agent()
        if self.input is not None:
            changes["input"] = user_content(self.input, "input")
        if "webhook" in self.model_fields_set:
            changes["webhook"] = None if self.webhook is None else webhook_of(self.webhook)
        if self.multitask_strategy is not None:
            changes["strategy"] = self.multitask_strategy
        return UpdateScheduleCommand(
            principal=principal,
            schedule=schedule,
            changes=changes,
            agent=self.agent_id if self.agent is None else self.agent,
            limits={} if self.limits is None else self.limits.stated(),
            expected_version=expected_version,
            own_account=self.own_account,
        )


def _one_agent() -> ServiceError:
    return invalid(
        "body_invalid",
        "The request body is not valid.",
        Violation(path="agent", message="give exactly one of agent_id and agent"),
    )
