"""Starts a run of an agent on a new or existing thread; workers execute it in the background."""

from dataclasses import dataclass

from application.agents.agent_lookup import existing_agent
from application.agents.output_schema_check import require_usable
from application.agents.ports import AgentStore, ModelDirectory
from application.identity.ports import OrganizationStore
from application.mcp.ports import ConnectionScope, McpConnections
from application.models.ports import PriceTable
from application.policy.canary_guard import CanaryGuard
from application.policy.ports import SchemaValidator
from application.runs.attached_content import SourceFiles, attached_content
from application.runs.new_run import IdempotencyKey, NewRun, StartedRun
from application.runs.ports import RunQueue, RunStore
from application.runs.run_model import model_of_run
from application.runs.trace_ended_run import TraceEndedRun
from application.system.ports import Clock, IdSource
from application.webhooks.webhook_check import WebhookCheck
from domain.agents.agent import Agent
from domain.errors import ErrorKind, ServiceError, Violation, conflict, invalid
from domain.identity.api_key import Principal
from domain.identity.organization import Organization
from domain.identity.permission import Permission
from domain.ids import MessageId, RunId, ThreadId, derived_id
from domain.json_value import JsonObject
from domain.runs.admission import Admission, UserBound
from domain.runs.called_by import CALLED_BY, CalledBy
from domain.runs.lane import Lane
from domain.runs.limits import LimitSettings
from domain.runs.model_settings import NO_SETTINGS, OPERATORS_ONLY, ModelSettings
from domain.runs.run import MultitaskStrategy, Run, RunStatus
from domain.runs.starting import team_of_thread
from domain.runs.webhook import Webhook, WebhookNote
from domain.schedules.firing import Firing
from domain.threads.attachments import AttachedSource
from domain.threads.message import Message, PriorMessage, UserContent, is_blank
from domain.threads.thread import Thread
from domain.tools.client_tool import ClientTool, require_fitting, require_valid
from domain.tools.wired import WiredNodes


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRunCommand:
    """The command of StartRun.

    - `agent` is an id or a name; without `thread_id` a thread is created.
    - `limits` and `tool_allowlist` narrow the agent's, `model_settings` replace the agent's one by
      one, `output_schema` the agent's.
    - `lane` is the agent's by default.
    - `wired` nodes replace the agent's tools (for workflows).
    - `team` is whose a new thread is, unless it gets the agent's.
    - `called_by` is the caller of the agent as a tool.
    - `body_digest` distinguishes bodies with the same idempotency key.
    - `firing` starts the run only if its schedule has not advanced.
    - `client_tools`, `instructions`, `history_key` and `client_request` are as in `Run`; `history`
      are the messages of a new thread before the input.
    - `run_id` is the run's id; the idempotency key must then identify the same request.
    - `retried` is the failed run of the thread that the run continues, with the same input and
      webhook.
    """

    principal: Principal
    agent: str
    input: tuple[UserContent | AttachedSource, ...]
    thread_id: ThreadId | None = None
    team: str | None = None
    strategy: MultitaskStrategy = MultitaskStrategy.ENQUEUE
    lane: Lane | None = None
    limits: LimitSettings = LimitSettings()
    model_settings: ModelSettings = NO_SETTINGS
    output_schema: JsonObject | None = None
    model: str | None = None
    tool_allowlist: tuple[str, ...] | None = None
    metadata: JsonObject | None = None
    webhook: Webhook | None = None
    idempotency_key: str | None = None
    body_digest: str = ""
    firing: Firing | None = None
    wired: WiredNodes | None = None
    called_by: CalledBy | None = None
    run_id: RunId | None = None
    retried: Run | None = None
    client_tools: tuple[ClientTool, ...] = ()
    instructions: str | None = None
    history: tuple[PriorMessage, ...] = ()
    history_key: str | None = None
    client_request: JsonObject | None = None


class StartRun:
    """Rules:
    - Requires `runner`.
    - A disabled agent starts no runs.
    - The thread gets the team of the agent, unless it belongs to one already (`team_of_thread`).
    - The model must be listed by the agent or the organization. A cost limit requires models with a
      price.
    - The same idempotency key with the same body gives the same run, even after its agent was
      changed or deleted.
    - The strategy decides about unfinished runs of the thread (`make_room`). Stopping runs that
      another key started requires `operator`, as cancelling them does.
    - Settings that may raise the price (`OPERATORS_ONLY`) require `operator`, and so does a lane
      with more weight than the agent's; a retry keeps the lane that the failed run had.
    - Sources of the thread in the input are read now; deleting one later does not change the
      message.
    - An output schema must be one that answers can be checked by.
    - An organization and an agent have at most `max_queued` queued runs, and a user at most
      `max_active_runs` queued and running ones. Steps of admitted workflow runs, and runs that a
      run under way called, are not bounded.
    - The caller in the metadata is written by the service only.
    - A canary token of the agent in the input, the history or the instructions is replaced by its
      mark.
    - Tools of the client have names that models take, each once.
    """

    def __init__(
        self,
        *,
        runs: RunStore,
        agents: AgentStore,
        sources: SourceFiles,
        organizations: OrganizationStore,
        models: ModelDirectory,
        prices: PriceTable,
        schemas: SchemaValidator,
        queue: RunQueue,
        connections: McpConnections,
        trace_ended: TraceEndedRun,
        webhooks: WebhookCheck,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._runs = runs
        self._agents = agents
        self._sources = sources
        self._organizations = organizations
        self._models = models
        self._prices = prices
        self._schemas = schemas
        self._queue = queue
        self._connections = connections
        self._trace_ended = trace_ended
        self._webhooks = webhooks
        self._clock = clock
        self._ids = ids

    def new_id(self) -> RunId:
        """An id for a command's `run_id`, to know it before the start."""
        return RunId(self._ids.new("run"))

    async def execute(self, command: StartRunCommand) -> StartedRun:
        """Raises INVALID, NOT_FOUND (`agent_not_found`, `thread_not_found`, `source_not_found`),
        FORBIDDEN (`model_not_allowed`, `model_settings_not_allowed`, `lane_not_allowed`,
        `run_not_yours`), CONFLICT (`agent_disabled`, `thread_of_another_team`, `thread_busy`,
        `run_not_newest`, `schedule_moved`), LIMIT `queue_full`, `user_runs_full`.
        """
        command.principal.require(Permission.RUNS_START)
        _require_role_for(command.model_settings, command.principal)
        if is_blank(command.input):
            raise invalid("input_empty", "A run needs an input.", Violation(path="input", message="must not be empty"))
        require_usable(self._schemas, command.output_schema)
        now = self._clock.now()
        organization_id = command.principal.organization_id
        key = None
        if command.idempotency_key is not None:
            key = IdempotencyKey(key=command.idempotency_key, body_digest=command.body_digest)
            earlier = await self._runs.started_before(organization_id, key, at=now)
            if earlier is not None:
                return StartedRun(run=command.principal.found(earlier, "agent", command.agent), created=False)
        if command.webhook is not None:
            await self._webhooks.require_usable(organization_id, command.webhook)
        agent = await self._agent(command)
        organization = await self._organizations.get(organization_id)
        model = await model_of_run(
            agent,
            wanted=command.model,
            limits=command.limits,
            settings=command.model_settings,
            organization=organization,
            models=self._models,
            prices=self._prices,
        )
        new_thread, team = None, agent.team
        thread_id = command.thread_id
        if thread_id is None:
            thread_id = ThreadId(self._ids.new("thr"))
            team = team_of_thread(thread_id, command.team, agent.team, visible=None)
            new_thread = Thread(id=thread_id, organization_id=organization_id, metadata={}, created_at=now, team=team)
        run_id = command.run_id or self.new_id()
        content = await attached_content(
            self._sources, organization_id, command.thread_id, command.input, teams=command.principal.visible_teams
        )
        guard = await CanaryGuard.prepared(agent, run_id)
        client_tools = tuple(map(guard.client_tool, command.client_tools))
        require_valid(client_tools)
        require_fitting(client_tools, command.client_request)
        run = Run(
            id=run_id,
            organization_id=organization_id,
            thread_id=thread_id,
            agent_id=agent.id,
            agent_version=agent.version,
            status=RunStatus.QUEUED,
            input=guard.input(content),
            model=model,
            lane=_lane(command, agent),
            limits=command.limits,
            model_settings=command.model_settings,
            output_schema=command.output_schema,
            tool_allowlist=command.tool_allowlist,
            metadata=_metadata(command),
            requested_by=command.principal.key_id,
            created_at=now,
            webhook=_webhook_note(command),
            wired=command.wired,
            retry_of=None if command.retried is None else command.retried.id,
            client_tools=client_tools,
            instructions=None if command.instructions is None else guard.words(command.instructions),
            history_key=command.history_key,
            client_request=None if command.client_request is None else guard.without(command.client_request),
            team=team,
        )
        started = await self._runs.start(
            NewRun(
                run=run,
                new_thread=new_thread,
                history=() if new_thread is None else _on_thread(command.history, run, guard),
                strategy=command.strategy,
                idempotency=key,
                firing=command.firing,
                admission=_admission(command, organization, agent),
                may_stop_any=command.principal.may(Permission.RUNS_CONTROL),
                visible=command.principal.visible_teams,
                webhook_url=None if command.webhook is None else command.webhook.url,
            )
        )
        if started.to_submit:
            await self._queue.submit(*started.to_submit)
        for ended in started.ended:
            await self._release(ended)
        return started

    async def _release(self, ended: Run) -> None:
        """Release the connections of a run without a worker, and complete its trace."""
        await self._connections.release(ConnectionScope(organization_id=ended.organization_id, run_id=ended.id))
        await self._trace_ended.execute(ended)

    async def _agent(self, command: StartRunCommand) -> Agent:
        agent = await existing_agent(self._agents, command.principal, command.agent)
        if not agent.config.enabled:
            raise conflict("agent_disabled", f"The agent {agent.config.name!r} is disabled.", agent_id=agent.id)
        return agent


def _on_thread(history: tuple[PriorMessage, ...], run: Run, guard: CanaryGuard) -> tuple[Message, ...]:
    return tuple(
        guard.message(
            Message(
                id=MessageId(derived_id("msg", run.thread_id, place)),
                thread_id=run.thread_id,
                run_id=None,
                role=prior.role,
                content=prior.content,
                created_at=run.created_at,
            )
        )
        for place, prior in enumerate(history)
    )


def _admission(command: StartRunCommand, organization: Organization | None, agent: Agent) -> Admission:
    called_by = command.called_by
    if command.wired is not None if called_by is None else called_by.run_id is not None:
        return Admission()
    bound = None if organization is None else organization.max_queued
    return Admission(
        organization=bound, agent=agent.config.max_queued, of_user=_user_bound(command.principal, organization)
    )


def _user_bound(principal: Principal, organization: Organization | None) -> UserBound | None:
    user_id = None if organization is None else organization.user_behind(principal.key_id, principal.key_of)
    if user_id is None or organization is None:
        return None
    most = organization.limits_of(user_id).max_active_runs
    if most is None:
        return None
    return UserBound(user_id=user_id, max_active=most, with_keys=organization.keys_count_for_users)


def _metadata(command: StartRunCommand) -> JsonObject:
    given = command.metadata or {}
    if CALLED_BY in given and command.retried is None:
        wrong = Violation(path=f"metadata.{CALLED_BY}", message="is set by the service only")
        raise invalid("metadata_reserved", f"The metadata cannot have the field {CALLED_BY!r}.", wrong)
    return given if command.called_by is None else given | command.called_by.metadata()


def _lane(command: StartRunCommand, agent: Agent) -> Lane:
    usual = agent.config.lane if command.retried is None else command.retried.lane
    lane = command.lane or usual
    if lane.weight > usual.weight and not command.principal.may(Permission.RUNS_CONTROL):
        raise ServiceError(
            "lane_not_allowed",
            ErrorKind.FORBIDDEN,
            f"The lane {lane} needs the role operator, since runs of the agent are in the lane {usual}; "
            f"the key has {command.principal.role}.",
        )
    return lane


def _webhook_note(command: StartRunCommand) -> WebhookNote | None:
    if command.retried is not None:
        return command.retried.webhook
    return None if command.webhook is None else command.webhook.note


def _require_role_for(settings: ModelSettings, principal: Principal) -> None:
    refused = sorted(OPERATORS_ONLY.intersection(settings.stated))
    if refused and not principal.may(Permission.RUNS_CONTROL):
        raise ServiceError(
            "model_settings_not_allowed",
            ErrorKind.FORBIDDEN,
            f"{' and '.join(refused)} of a run need the role operator; the key has {principal.role}.",
        )
