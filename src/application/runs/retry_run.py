"""Retries a failed run: a new run continues its thread from the last stored step."""

from dataclasses import dataclass

from application.agents.agent_lookup import existing_agent
from application.agents.ports import AgentStore
from application.identity.ports import OrganizationStore
from application.runs.new_run import StartedRun
from application.runs.ports import RunReader
from application.runs.resume_run import require_own_or_operator
from application.runs.shared_state import read_on
from application.runs.start_run import StartRun, StartRunCommand
from domain.errors import conflict
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import RunId
from domain.json_value import JsonObject
from domain.runs.run import MultitaskStrategy, Run, RunStatus
from domain.runs.shared_state import SharedState


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRunCommand:
    """`body_digest` distinguishes requests with the same idempotency key."""

    principal: Principal
    run_id: RunId
    idempotency_key: str | None = None
    body_digest: str = ""


class RetryRun:
    """Rules:
    - Requires `runner` for the caller's own runs, `operator` for others.
    - Only a failed run is retried, and only while it is the newest of its thread. The run of a
      workflow's step that has tools of the workflow is not.
    - The new run has the settings, metadata and webhook of the failed one, and new limits to use
      up. It adds no message: it continues after the last one, with the results that the failed run
      has stored.
    - It begins with the state of the front end that the failed run has left.
    - It has the failed run's model, or the agent's if that one is no longer listed.
    - `StartRun` has the rules of starting.
    """

    def __init__(
        self, *, start_run: StartRun, reader: RunReader, agents: AgentStore, organizations: OrganizationStore
    ) -> None:
        self._start_run = start_run
        self._reader = reader
        self._agents = agents
        self._organizations = organizations

    async def execute(self, command: RetryRunCommand) -> StartedRun:
        """Raises NOT_FOUND, FORBIDDEN, CONFLICT (`run_not_failed`, `run_of_workflow`,
        `run_not_newest`), and what `StartRun` raises."""
        principal = command.principal
        principal.require(Permission.RUNS_START)
        run = principal.found(await self._reader.get(principal.organization_id, command.run_id), "run", command.run_id)
        require_own_or_operator(principal, run)
        if run.status is not RunStatus.FAILED:
            raise conflict("run_not_failed", "The run has not failed; only a failed run can be retried.")
        if run.wired is not None:
            raise conflict("run_of_workflow", "The run is a step of a workflow: start the workflow again.")
        return await self._start_run.execute(
            StartRunCommand(
                principal=principal,
                agent=run.agent_id,
                input=run.input,
                thread_id=run.thread_id,
                strategy=MultitaskStrategy.REJECT,
                lane=run.lane,
                limits=run.limits,
                model_settings=run.model_settings,
                output_schema=run.output_schema,
                model=await self._model(principal, run),
                tool_allowlist=run.tool_allowlist,
                metadata=run.metadata,
                idempotency_key=command.idempotency_key,
                body_digest=command.body_digest,
                retried=run,
                client_tools=run.client_tools,
                instructions=run.instructions,
                history_key=run.history_key,
                client_request=await self._request(run),
            )
        )

    async def _request(self, run: Run) -> JsonObject | None:
        """With the state as the failed run left it."""
        request = run.client_request
        if request is None or not run.shares_state:
            return request
        return {**request, "state": (await read_on(SharedState.of(run), self._reader, run)).value}

    async def _model(self, principal: Principal, run: Run) -> str | None:
        agent = await existing_agent(self._agents, principal, run.agent_id)
        organization = await self._organizations.get(run.organization_id)
        listed = (*agent.config.models, *(() if organization is None else organization.models))
        return run.model if run.model in listed else None
