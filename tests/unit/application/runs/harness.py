"""A harness in memory: start a run, let a worker execute it, read back everything it left
behind."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from application.approvals.check_decisions import CheckDecisions
from application.approvals.consents import Consents
from application.mcp.catalog_reader import CatalogReader
from application.mcp.catalog_updater import CatalogUpdater
from application.mcp.mcp_switch import McpSwitch
from application.mcp.ports import ConnectionScope
from application.runs.cancel_run import CancelRun, CancelRunCommand
from application.runs.execution.active_runs import ActiveRuns, LeaseSettings
from application.runs.execution.agent_loop import AgentLoop
from application.runs.execution.ask_model import AskModel
from application.runs.execution.call_tools import CallTools, CallToolsSettings
from application.runs.execution.change_state import ChangeState
from application.runs.execution.check_output import CheckOutput
from application.runs.execution.daily_budget import DailyBudgets
from application.runs.execution.execute_run import ExecuteRun, ExecuteRunCommand
from application.runs.execution.prepare_prompt import PreparePrompt
from application.runs.execution.recheck_calls import RecheckCalls
from application.runs.execution.record_reply import RecordReply
from application.runs.execution.recover_runs import RecoverRuns
from application.runs.execution.run_memory import RunMemory
from application.runs.ports import RunJournal, events_topic
from application.runs.resume_run import ClientToolResult, ResumeRun, ResumeRunCommand
from application.runs.start_run import StartRun, StartRunCommand
from application.runs.stop_run import StopRun
from application.runs.trace_ended_run import TraceEndedRun
from application.runs.watch_run import WatchRun
from application.system.memory_budget import MemoryBudget
from application.tools.check_tool_call import CheckToolCall
from application.tools.execute_mcp_tool import ExecuteMcpTool
from application.tools.execute_tool import ExecuteTool
from application.tools.toolset_builder import DEFAULT_SEARCH_THRESHOLD, ToolsetBuilder
from application.webhooks.webhook_check import WebhookCheck
from domain.agents.agent import Agent
from domain.identity.api_key import Principal
from domain.identity.organization import Organization
from domain.identity.role import Role as KeyRole
from domain.ids import McpServerId, RunId, ThreadId, ToolCallId, WorkerId
from domain.json_value import JsonObject, JsonValue
from domain.mcp.server import McpServer
from domain.runs.limits import LimitSettings
from domain.runs.run import MultitaskStrategy, Run
from domain.threads.message import TextContent, UserContent
from infrastructure.events.wakeups import InProcessWakeups
from infrastructure.http.egress import EgressPolicy
from infrastructure.native_tools.displayable import DISPLAYABLE_TOOLS
from infrastructure.runtime.logs import log_context
from infrastructure.schemas.json_schemas import JsonSchemaValidator
from infrastructure.secrets.secret_box import SecretBox
from tests.approval_builders import deciders
from tests.builders import (
    KEY,
    ORG,
    OTHER_WORKER,
    THREAD,
    WORKER,
    a_key,
    a_server,
    a_thread,
    an_agent,
    an_organization,
    numbered,
)
from tests.circumstances import circumstances
from tests.doubles.agents import InMemoryAgentStore
from tests.doubles.approvals import InMemoryApprovalStore
from tests.doubles.identity import InMemoryIdentityStore
from tests.doubles.journal import InMemoryRunJournal
from tests.doubles.leases import InMemoryRunLeases
from tests.doubles.mcp_connections import InMemoryMcpConnections, InMemoryMcpServer
from tests.doubles.mcp_servers import InMemoryMcpCatalogStore, InMemoryMcpServerStore
from tests.doubles.organizations import InMemoryOrganizationStore
from tests.doubles.runs import InMemoryRunStore
from tests.doubles.scripted_model import ModelTurn, Script, ScriptedModel
from tests.doubles.secrets import InMemorySecretStore
from tests.doubles.sources import InMemorySourceStore
from tests.doubles.state import InMemoryState, StoredThread
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.doubles.usage import InMemoryUsageStore
from tests.mcp_builders import ACCOUNTS
from tests.metering import a_meter
from tests.unit.application.runs.accounts import AccountsOfRuns
from tests.unit.application.runs.doubles import (
    AllModels,
    FlatPrices,
    InMemoryNativeTool,
    RecordingTracer,
    SubmittedRuns,
)
from tests.unit.application.runs.records import RunRecords
from tests.unit.application.validity import key_validity

ADMIN = Principal(organization_id=ORG, key_id=KEY, role=KeyRole.ADMIN)
EMAIL: JsonObject = {"to": "ada@example.org", "subject": "Hi", "body": "Hello."}


class Worker:
    """One worker process: its leases and its way to execute runs."""

    def __init__(self, harness: "RunHarness", worker_id: WorkerId, journal: RunJournal) -> None:
        self.active_runs = ActiveRuns(
            leases=harness.leases, clock=harness.clock, worker_id=worker_id, settings=LeaseSettings()
        )
        loop = AgentLoop(
            prepare_prompt=PreparePrompt(
                catalog=harness.catalog, agents=harness.agents, organizations=harness.organizations, runs=harness.runs
            ),
            ask_model=AskModel(models=harness.model, prices=harness.prices, tracer=harness.tracer, clock=harness.clock),
            record_reply=RecordReply(
                check=harness.check,
                check_output=CheckOutput(schemas=harness.schemas),
                runs=harness.runs,
                clock=harness.clock,
            ),
            recheck_calls=RecheckCalls(check=harness.check, clock=harness.clock),
            call_tools=CallTools(
                execute_tool=harness.execute_tool,
                change_state=ChangeState(runs=harness.runs),
                box=harness.box,
                tracer=harness.tracer,
                clock=harness.clock,
                settings=harness.call_settings,
            ),
            budgets=DailyBudgets(
                reservations=harness.usage,
                identities=InMemoryIdentityStore(harness.state),
                prices=harness.prices,
                clock=harness.clock,
            ),
            prices=harness.prices,
            clock=harness.clock,
        )
        self._execute_run = ExecuteRun(
            leases=harness.leases,
            journal=journal,
            queue=harness.queue,
            wakeups=harness.wakeups,
            loop=loop,
            active_runs=self.active_runs,
            memory=RunMemory(MemoryBudget(2**30)),
            connections=harness.connections,
            tracer=harness.tracer,
            trace_ended=harness.trace_ended,
            consents=harness.accounts.resuming,
            clock=harness.clock,
            ids=harness.ids,
            log_context=log_context,
        )

    async def execute(self, run_id: RunId) -> None:
        await self._execute_run.execute(ExecuteRunCommand(run_id=run_id))

    def begin(self, run_id: RunId) -> "asyncio.Task[None]":
        """Execute beside the test, which must await or cancel the task."""
        return asyncio.create_task(self.execute(run_id))


class RunHarness(RunRecords):
    """StartRun → ExecuteRun → WatchRun over in-memory adapters. `play` and
    `warm_up` store the catalogs of its servers first."""

    def __init__(
        self,
        turns: Sequence[ModelTurn] | Script = (),
        *,
        agent: Agent | None = None,
        servers: Mapping[str, InMemoryMcpServer] | None = None,
        native: Sequence[InMemoryNativeTool] = (),
        limits: LimitSettings | None = None,
        call_settings: CallToolsSettings | None = None,
        mcp_enabled: bool = True,
        search_threshold: int = DEFAULT_SEARCH_THRESHOLD,
        discovery_timeout_s: float = 10.0,
    ) -> None:
        super().__init__(InMemoryState())
        self.clock = FixedClock()
        self.ids = SequentialIds()
        self.wakeups = InProcessWakeups()
        self.queue = SubmittedRuns()
        self.model = ScriptedModel(turns)
        self.prices = FlatPrices()
        self.tracer = RecordingTracer()
        self.schemas = JsonSchemaValidator()
        self.check = CheckToolCall(schemas=self.schemas)
        self.box = SecretBox(["a key of the tests"])
        self.call_settings = call_settings or CallToolsSettings()
        self.agents = InMemoryAgentStore(self.state)
        self.servers = InMemoryMcpServerStore(self.state)
        self.catalogs = InMemoryMcpCatalogStore(self.state)
        self.runs = InMemoryRunStore(self.state, self.wakeups)
        self.leases = InMemoryRunLeases(self.state, self.wakeups)
        self.journal = InMemoryRunJournal(self.state, self.wakeups)
        self.organizations = InMemoryOrganizationStore(self.state)
        self.usage = InMemoryUsageStore(self.state)
        self.connections = InMemoryMcpConnections(servers)
        self.catalog_updater = CatalogUpdater(
            catalogs=self.catalogs,
            connections=self.connections,
            organizations=self.organizations,
            clock=self.clock,
            ids=self.ids,
        )
        self.state.organizations[ORG] = an_organization()
        switch = McpSwitch(enabled=mcp_enabled, organizations=self.organizations)
        native_tools = {tool.tool.type: tool for tool in native}
        self.catalog = ToolsetBuilder(
            circumstances=circumstances(self.state, self.clock),
            native_tools=native_tools,
            displayable_tools={tool.type: tool for tool in DISPLAYABLE_TOOLS},
            servers=self.servers,
            catalogs=CatalogReader(
                catalogs=self.catalogs,
                catalog_updater=self.catalog_updater,
                clock=self.clock,
                deadline_s=discovery_timeout_s,
            ),
            connections=self.connections,
            switch=switch,
            organizations=self.organizations,
            search_threshold=search_threshold,
        )
        self.execute_tool = ExecuteTool(
            native_tools=native_tools,
            execute_mcp_tool=ExecuteMcpTool(
                servers=self.servers,
                catalogs=self.catalogs,
                catalog_updater=self.catalog_updater,
                connections=self.connections,
                schemas=self.schemas,
                switch=switch,
                accounts=ACCOUNTS,
            ),
        )
        self.approvals = InMemoryApprovalStore(self.state)
        self.resume_run = ResumeRun(
            runs=self.runs,
            reader=self.runs,
            queue=self.queue,
            decisions=CheckDecisions(
                approvals=self.approvals,
                agents=self.agents,
                servers=self.servers,
                catalog=self.catalog,
                check=self.check,
                deciders=deciders(self.state),
                consents=Consents(approvals=self.approvals),
            ),
            agents=self.agents,
            servers=self.servers,
            schemas=self.schemas,
            box=self.box,
            clock=self.clock,
        )
        self.accounts = AccountsOfRuns(self.state, self.queue, self.box, self.wakeups, self.clock)
        self.trace_ended = TraceEndedRun(runs=self.runs, agents=self.agents, tracer=self.tracer)
        self.state.keys[KEY] = a_key()
        self.standing = key_validity(self.state, self.clock)
        self.watch = WatchRun(
            runs=self.runs, keys=self.standing, wakeups=self.wakeups, clock=self.clock, meter=a_meter()
        )
        self.agent = agent or an_agent(
            tools=tuple(native_tools) + tuple(tool.type for tool in DISPLAYABLE_TOOLS),
            mcp_servers=tuple(servers or ()),
            limits=limits,
        )
        self.state.agents[self.agent.id] = [self.agent]
        self.state.threads[THREAD] = StoredThread(thread=a_thread())
        for number, slug in enumerate(servers or (), start=1):
            server = a_server(McpServerId(numbered("mcp", number)), slug=slug)
            self.state.servers[server.id] = server
        self.worker = self.new_worker(WORKER)

    # --- arranging ---

    def new_worker(self, worker_id: WorkerId = OTHER_WORKER, *, journal: RunJournal | None = None) -> Worker:
        return Worker(self, worker_id, journal or self.journal)

    def server(self, slug: str) -> McpServer:
        return next(server for server in self.state.servers.values() if server.config.slug == slug)

    def change_server(self, slug: str, **changes: object) -> McpServer:
        """A new state of the server, at the same version, so that its catalog stays good."""
        server = self.server(slug)
        changed = replace(server, config=replace(server.config, **changes))  # type: ignore[arg-type]  # fields by name
        self.state.servers[server.id] = changed
        return changed

    def change_agent(self, **changes: object) -> Agent:
        """A new version of the agent."""
        config = replace(self.agent.config, **changes)  # type: ignore[arg-type]  # fields by name
        self.agent = replace(self.agent, version=self.agent.version + 1, config=config)
        self.state.agents[self.agent.id].append(self.agent)
        return self.agent

    def change_organization(self, **changes: object) -> Organization:
        """A new version of the organization."""
        before = self.state.organizations[ORG]
        changed = replace(before, version=before.version + 1, **changes)  # type: ignore[arg-type]  # fields by name
        self.state.organizations[ORG] = changed
        return changed

    async def warm_up(self) -> None:
        """Store the catalogs of all servers that answer, as a listing before the run does."""
        for server in self.state.servers.values():
            scripted = self.connections.servers[server.config.slug]
            if scripted.unreachable is None:
                scope = ConnectionScope(organization_id=ORG)
                await self.catalog_updater.relist(server, scope, timeout_s=1)
        self.connections.discoveries.clear()

    # --- acting ---

    def start_run(self) -> StartRun:
        return StartRun(
            runs=self.runs,
            agents=self.agents,
            sources=InMemorySourceStore(self.state),
            organizations=self.organizations,
            models=AllModels(),
            prices=self.prices,
            schemas=self.schemas,
            queue=self.queue,
            connections=self.connections,
            trace_ended=self.trace_ended,
            webhooks=WebhookCheck(outbound=EgressPolicy(), secrets=InMemorySecretStore(self.state)),
            clock=self.clock,
            ids=self.ids,
        )

    async def start(
        self,
        text: str | tuple[UserContent, ...] = "What time is it?",
        *,
        thread_id: ThreadId | None = THREAD,
        limits: LimitSettings | None = None,
        model: str | None = None,
        tool_allowlist: tuple[str, ...] | None = None,
        strategy: MultitaskStrategy = MultitaskStrategy.ENQUEUE,
        principal: Principal = ADMIN,
        agent: str | None = None,
        run_id: RunId | None = None,
        output_schema: JsonObject | None = None,
    ) -> RunId:
        command = StartRunCommand(
            principal=principal,
            agent=agent or self.agent.id,
            input=(TextContent(text=text),) if isinstance(text, str) else text,
            thread_id=thread_id,
            limits=limits or LimitSettings(),
            model=model,
            tool_allowlist=tool_allowlist,
            strategy=strategy,
            run_id=run_id,
            output_schema=output_schema,
        )
        return (await self.start_run().execute(command)).run.id

    async def play(self, text: str | tuple[UserContent, ...] = "What time is it?") -> RunId:
        """Start a run and execute it as far as it goes."""
        await self.warm_up()
        run_id = await self.start(text)
        await self.worker.execute(run_id)
        return run_id

    async def resume(self, run_id: RunId, results: Mapping[ToolCallId, JsonValue], *, is_error: bool = False) -> Run:
        given = tuple(
            ClientToolResult(tool_call_id=id_, result=result, is_error=is_error) for id_, result in results.items()
        )
        return await self.resume_run.execute(ResumeRunCommand(principal=ADMIN, run_id=run_id, tool_results=given))

    async def cancel(self, run_id: RunId, *, principal: Principal = ADMIN) -> Run:
        runs, queue, clock = self.runs, self.queue, self.clock
        stop_run = StopRun(
            runs=runs, queue=queue, connections=self.connections, trace_ended=self.trace_ended, clock=clock
        )
        use_case = CancelRun(runs=runs, stop_run=stop_run)
        return await use_case.execute(CancelRunCommand(principal=principal, run_id=run_id))

    async def recover(self, *, sole_owner: bool = True) -> int:
        use_case = RecoverRuns(leases=self.leases, queue=self.queue, clock=self.clock)
        return await use_case.execute(sole_owner=sole_owner)

    async def until(self, run_id: RunId, condition: Callable[[], bool]) -> None:
        """Wait for something to be so; looked at again at every new event of the run."""
        async with self.wakeups.subscribe(events_topic(run_id)) as bell:
            while not condition():
                assert await bell.wait(10), "nothing happened"

    # --- reading back, beside what RunRecords reads ---

    def server_calls(self) -> list[str]:
        """The server's own names of the tools that were called, in order."""
        return [recorded.call.tool_name for recorded in self.connections.calls]
