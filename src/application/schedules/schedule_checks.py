"""Checks whether a schedule could start a run now."""

from application.agents.agent_lookup import existing_agent
from application.agents.output_schema_check import require_usable
from application.agents.ports import AgentStore, ModelDirectory
from application.identity.ports import OrganizationStore
from application.models.ports import PriceTable
from application.policy.ports import SchemaValidator
from application.runs.run_model import model_of_run
from application.schedules.ports import CronTimes
from application.threads.ports import ThreadStore
from application.webhooks.webhook_check import WebhookCheck
from domain.agents.agent import Agent
from domain.identity.api_key import Principal
from domain.schedules.schedule import Schedule, schedule_invalid


class ScheduleChecks:
    """Rules:
    - Expression and time zone are valid, and there is a next run time.
    - The thread exists.
    - The model is allowed and available, takes the settings, and the limits can be enforced with
      it.
    - Answers can be checked by the output schema.
    - The webhook is usable.
    - A disabled agent is accepted.
    - Every trigger checks everything again.
    """

    def __init__(
        self,
        *,
        agents: AgentStore,
        threads: ThreadStore,
        organizations: OrganizationStore,
        models: ModelDirectory,
        prices: PriceTable,
        schemas: SchemaValidator,
        webhooks: WebhookCheck,
        times: CronTimes,
    ) -> None:
        self._agents = agents
        self._threads = threads
        self._organizations = organizations
        self._models = models
        self._prices = prices
        self._schemas = schemas
        self._webhooks = webhooks
        self._times = times

    def require_times(self, cron: str, timezone: str) -> None:
        """Raise INVALID `schedule_invalid` for an invalid expression or time zone."""
        faults = self._times.faults(cron, timezone)
        if faults:
            raise schedule_invalid(*faults)

    async def agent(self, principal: Principal, id_or_name: str) -> Agent:
        """Raises NOT_FOUND `agent_not_found`."""
        return await existing_agent(self._agents, principal, id_or_name)

    async def require_thread(self, principal: Principal, schedule: Schedule) -> None:
        """Raise NOT_FOUND `thread_not_found`."""
        if schedule.thread_id is not None:
            found = await self._threads.get(schedule.organization_id, schedule.thread_id)
            principal.found(found, "thread", schedule.thread_id)

    async def require_runnable(self, principal: Principal, schedule: Schedule, agent: Agent) -> None:
        """Raise NOT_FOUND `thread_not_found`, FORBIDDEN `model_not_allowed`, INVALID
        `model_unavailable`, `model_settings_invalid`, `output_schema_invalid`, `limits_invalid`,
        `webhook_invalid`."""
        organization_id = schedule.organization_id
        require_usable(self._schemas, schedule.output_schema)
        await self.require_thread(principal, schedule)
        if schedule.webhook is not None:
            await self._webhooks.require_usable(organization_id, schedule.webhook)
        await model_of_run(
            agent,
            wanted=schedule.model,
            limits=schedule.limits,
            settings=schedule.model_settings,
            organization=await self._organizations.get(organization_id),
            models=self._models,
            prices=self._prices,
        )
