"""The use cases over in-memory adapters, as the container puts them together over real ones."""

from application.agents.agent_checks import AgentChecks
from application.agents.create_agent import CreateAgent
from application.agents.delete_agent import DeleteAgent
from application.agents.name_agents import NameAgents
from application.agents.ports import AgentStore
from application.agents.queries import GetAgent, ListAgents, ListAgentVersions
from application.agents.update_agent import UpdateAgent
from application.approvals.check_decisions import CheckDecisions
from application.approvals.decide_approval import DecideApproval
from application.approvals.queries import ListApprovals
from application.audit.export_audit_events import ExportAuditEvents
from application.audit.queries import ListAuditEvents
from application.audit.seal_audit import SealAudit
from application.audit.verify_audit_chain import VerifyAuditChain
from application.gateway.calls.answer_question import AnswerGatewayQuestion
from application.gateway.calls.ask_client import AskClient, Patience
from application.gateway.calls.call_tool import CallGatewayTool
from application.gateway.calls.clear_call import ClearGatewayCall, Holds
from application.gateway.calls.decide_gateway_approval import DecideGatewayApproval
from application.gateway.calls.held_calls import HeldCalls
from application.gateway.calls.request_cancellations import RequestCancellations
from application.gateway.calls.request_states import RequestStates
from application.gateway.calls.send_call import SendGatewayCall
from application.gateway.calls.settle_call import SettleGatewayCall
from application.gateway.calls.tell_of_approval import TellOfApproval
from application.gateway.contents.content_sources import ContentSources
from application.gateway.contents.list_contents import ListGatewayContents
from application.gateway.contents.read_content import ReadGatewayContent
from application.gateway.sessions.client_handshakes import ClientHandshakes
from application.gateway.sessions.gateway_access import GatewayAccess
from application.gateway.sessions.halt_session import HaltGatewaySession
from application.gateway.sessions.open_session import OpenGatewaySession
from application.gateway.sessions.queries import ListGatewaySessions
from application.gateway.sessions.revoke_session import RevokeGatewaySession
from application.gateway.sessions.session_ends import SessionEnds
from application.gateway.subscriptions.check_subscription import CheckSubscription
from application.gateway.subscriptions.follow_changes import FollowChanges
from application.gateway.subscriptions.followers import Followers
from application.gateway.tasks.gateway_tasks import GatewayTasks
from application.gateway.tasks.task_ids import TaskIds
from application.gateway.tools.list_tools import ListGatewayTools
from application.gateway.tools.tool_nodes import ToolNodes
from application.gateway.tools.toolbox import GatewayToolbox
from application.identity.authenticate import Authenticate
from application.identity.create_api_key import CreateApiKey
from application.identity.create_organization import CreateOrganization
from application.identity.create_organization_key import CreateOrganizationKey
from application.identity.key_limits import KeyLimits
from application.identity.key_standing import KeyStanding
from application.identity.key_uses import KeyUses
from application.identity.queries import GetOrganization, ListApiKeys, ListOrganizations
from application.identity.revoke_api_key import RevokeApiKey
from application.identity.token_cache import TokenCache
from application.identity.update_organization import UpdateOrganization
from application.mcp.approve_definition import ApproveDefinition
from application.mcp.authorize_mcp_server import AuthorizeMcpServer
from application.mcp.check_mcp_server import CheckMcpServer
from application.mcp.delete_mcp_server import DeleteMcpServer
from application.mcp.disconnect_mcp_server import DisconnectMcpServer
from application.mcp.finish_mcp_authorization import FinishMcpAuthorization
from application.mcp.import_mcp_servers import ImportMcpServers
from application.mcp.install_mcp_server import InstallMcpServer
from application.mcp.mcp_switch import McpSwitch
from application.mcp.oauth_client import DescribeOAuthClient
from application.mcp.preview_mcp_import import PreviewMcpImport
from application.mcp.queries import (
    GetMcpServer,
    GetMcpServerLogs,
    GetMcpServerStatus,
    GetMcpServerTools,
    ListMcpServers,
)
from application.mcp.refresh_mcp_server import RefreshMcpServer
from application.mcp.register_mcp_server import RegisterMcpServer
from application.mcp.server_catalogs import ServerCatalogs
from application.mcp.server_installs import ServerInstalls
from application.mcp.server_status import ServerStatuses
from application.mcp.uninstall_mcp_server import UninstallMcpServer
from application.mcp.update_mcp_server import UpdateMcpServer
from application.mcp.warm_catalogs import WarmCatalogs
from application.model_providers.create_model_provider import CreateModelProvider
from application.model_providers.delete_model_provider import DeleteModelProvider
from application.model_providers.queries import GetModelProvider, ListModelProviders
from application.model_providers.update_model_provider import UpdateModelProvider
from application.policy.policy_checks import PolicyChecks
from application.runs.call_agent import CallAgent
from application.runs.cancel_run import CancelRun
from application.runs.cancel_runs import CancelRuns
from application.runs.decide_run_approval import DecideRunApproval
from application.runs.ports import RunQueue
from application.runs.queries import GetRun, GetRunEvents, ListRuns
from application.runs.resume_run import ResumeRun
from application.runs.start_run import StartRun
from application.runs.stop_run import StopRun
from application.runs.trace_ended_run import TraceEndedRun
from application.runs.watch_run import WatchRun
from application.schedules.create_schedule import CreateSchedule
from application.schedules.delete_schedule import DeleteSchedule
from application.schedules.queries import GetSchedule, ListSchedules
from application.schedules.schedule_checks import ScheduleChecks
from application.schedules.update_schedule import UpdateSchedule
from application.secrets.delete_secret import DeleteSecret
from application.secrets.queries import ListSecrets
from application.secrets.rotate_secret_key import RotateSecretKey
from application.secrets.set_secret import SetSecret
from application.sources.add_source import AddSource
from application.sources.delete_source import DeleteSource
from application.sources.queries import GetSource, ListSources, ReadSource
from application.sources.store_source import StoreSource
from application.threads.append_message import AppendMessage
from application.threads.create_thread import CreateThread
from application.threads.delete_thread import DeleteThread
from application.threads.queries import GetThread, ListMessages, ListThreads
from application.threads.release_thread import ReleaseThread
from application.tools.agent_tools import AgentTools
from application.tools.check_tool_call import CheckToolCall
from application.tools.execute_mcp_tool import ExecuteMcpTool
from application.tools.execute_tool import ExecuteTool
from application.tools.explain_agent import ExplainAgent
from application.tools.explain_tool import ExplainTool
from application.tools.known_tools import KnownTools
from application.tools.list_tools import ListTools
from application.tools.review_tool_policies import ReviewToolPolicies
from application.tools.tool_catalog import ToolCatalog
from application.tracing.ports import GatewayTracer
from application.usage.queries import GetUsage
from application.webhooks.create_webhook_key import CreateWebhookKey
from application.webhooks.queries import ListWebhookDeliveries
from application.webhooks.retry_webhook_delivery import RetryWebhookDelivery
from application.webhooks.signing_secrets import SigningSecrets
from application.webhooks.webhook_check import WebhookCheck
from application.workflows.create_workflow import CreateWorkflow
from application.workflows.delete_workflow import DeleteWorkflow
from application.workflows.http_step import BoundInputs
from application.workflows.queries import GetWorkflow, ListWorkflows, ListWorkflowVersions
from application.workflows.resume_workflow_run import ResumeWorkflowRun
from application.workflows.run_queries import GetWorkflowRun, ListWorkflowRuns, WatchWorkflowRun
from application.workflows.start_workflow_run import StartWorkflowRun
from application.workflows.stop_workflow_run import StopWorkflowRun
from application.workflows.stored_wired_tools import StoredWiredTools
from application.workflows.tool_step import ToolStep
from application.workflows.update_workflow import UpdateWorkflow
from application.workflows.validate_workflow import ValidateWorkflow
from application.workflows.workflow_checks import WorkflowChecks
from domain.ids import OrganizationId
from infrastructure.events.row_feed import RowFeed
from infrastructure.expressions.jmespath_expressions import JmesPathExpressions
from infrastructure.http.egress import EgressPolicy
from infrastructure.native_tools.displayable import DISPLAYABLE_TOOLS
from infrastructure.persistence.cached.read_through import ReadThrough
from infrastructure.persistence.cached.stores import AGENTS
from infrastructure.runtime.cron import CronsimTimes
from infrastructure.runtime.public_address import ListeningAddress
from infrastructure.schemas.json_schemas import JsonSchemaValidator
from infrastructure.secrets.secret_box import SecretBox
from infrastructure.secrets.secret_keys import GivenKeyRing
from infrastructure.tracing.addresses import BackendTraceAddresses
from infrastructure.tracing.null import NullTracer
from interfaces.http.use_cases import UseCases
from tests.contract.stores import Stores
from tests.doubles.audit_chain import GivenSealKeys
from tests.doubles.authorizer import InMemoryAuthorizer
from tests.doubles.mcp_connections import InMemoryMcpConnections
from tests.doubles.mcp_installer import InMemoryMcpInstaller
from tests.doubles.plain_text_extractor import PlainTextExtractor
from tests.doubles.secrets import InMemorySecretVault
from tests.doubles.surroundings import START, FixedClock, SequentialIds, StepClock
from tests.metering import a_meter
from tests.unit.application.runs.doubles import FlatPrices, RecordingTracer

BOX_KEY = "a key of the tests"
NO_HOLD = Holds(resumable_s=0.0, last_s=0.0)
PATIENCE = Patience()
SEAL_KEY = b"a key of seals in tests, 32 long"


class ModelsThat:
    """A `ModelDirectory` that knows some models."""

    def __init__(self, *known: str) -> None:
        self._known = known

    async def problem_with(self, organization_id: OrganizationId, model: str) -> str | None:
        return None if model in self._known else f"there is no model {model!r}"


def use_cases(
    stores: Stores,
    queue: RunQueue,
    connections: InMemoryMcpConnections,
    *,
    models: tuple[str, ...],
    vault: InMemorySecretVault | None = None,
    holds: Holds = NO_HOLD,
    patience: Patience = PATIENCE,
    tracer: GatewayTracer | None = None,
    session_limits: KeyLimits | None = None,
) -> UseCases:
    """Every use case, over these."""
    clock = StepClock()
    ids = SequentialIds()
    known_models = ModelsThat(*models)
    prices = FlatPrices()
    tokens = TokenCache(capacity=100, on_forget=lambda: followers.sessions_changed(None))
    uses = KeyUses(identities=stores.identity)
    switch = McpSwitch(enabled=True, organizations=stores.organizations)
    server_catalogs = ServerCatalogs(catalogs=stores.catalogs, connections=connections, clock=clock, ids=ids)
    catalog = ToolCatalog(
        native_tools={},
        displayable_tools={tool.type: tool for tool in DISPLAYABLE_TOOLS},
        servers=stores.servers,
        catalogs=WarmCatalogs(catalogs=stores.catalogs, server_catalogs=server_catalogs, clock=clock),
        connections=connections,
        switch=switch,
        organizations=stores.organizations,
        wired_tools=StoredWiredTools(tools=stores.workflow_tools, box=SecretBox([BOX_KEY])),
    )
    tool_step = ToolStep(
        inputs=BoundInputs(secrets=stores.secrets, expressions=JmesPathExpressions()),
        servers=stores.servers,
        catalogs=WarmCatalogs(catalogs=stores.catalogs, server_catalogs=server_catalogs, clock=clock),
        connections=connections,
        switch=switch,
        box=SecretBox([BOX_KEY]),
        clock=clock,
    )
    policies = PolicyChecks(schemas=JsonSchemaValidator())
    agent_tools = AgentTools(agents=stores.agents, organizations=stores.organizations)
    known_tools = KnownTools(catalog=catalog, servers=stores.servers, agent_tools=agent_tools)
    checks = AgentChecks(
        models=known_models,
        prices=prices,
        native_tools=catalog,
        servers=stores.servers,
        agents=stores.agents,
        policies=policies,
    )
    feed, followers = RowFeed(shared=False), Followers()
    feed.watch(followers.tools_changed, "agent")
    agents: AgentStore = ReadThrough(stores.agents, AGENTS, feed=feed).fresh
    servers, threads, runs = stores.servers, stores.threads, stores.runs
    workflow_checks = WorkflowChecks(
        expressions=JmesPathExpressions(),
        schemas=JsonSchemaValidator(),
        agents=agents,
        servers=servers,
        secrets=stores.secrets,
        outbound=EgressPolicy(),
    )
    trace_ended = TraceEndedRun(runs=runs, agents=agents, tracer=RecordingTracer())
    stop_run = StopRun(runs=runs, queue=queue, connections=connections, trace_ended=trace_ended, clock=clock)
    cancel_run = CancelRun(runs=runs, stop_run=stop_run)
    register = RegisterMcpServer(servers=servers, outbound=EgressPolicy(), clock=clock, ids=ids)
    installer = InMemoryMcpInstaller(clock=clock, ids=ids)
    installs = ServerInstalls(
        installer=installer, servers=servers, connections=connections, audit_log=stores.audit, clock=clock, ids=ids
    )
    statuses = ServerStatuses(connections=connections, installs=installs, installer=installer)
    authorizer = InMemoryAuthorizer(expires_at=START)
    schedules = stores.schedules
    times = CronsimTimes()
    schedule_checks = ScheduleChecks(
        agents=agents,
        threads=threads,
        organizations=stores.organizations,
        models=known_models,
        prices=prices,
        webhooks=WebhookCheck(outbound=EgressPolicy(), secrets=stores.secrets),
        times=times,
    )
    store_source = StoreSource(
        intake=stores.source_intake, sources=stores.sources, extractor=PlainTextExtractor(), clock=clock
    )
    resume_run = ResumeRun(
        runs=runs,
        reader=runs,
        queue=queue,
        decisions=CheckDecisions(
            approvals=stores.approvals,
            agents=agents,
            catalog=catalog,
            check=CheckToolCall(schemas=JsonSchemaValidator()),
        ),
        agents=agents,
        schemas=JsonSchemaValidator(),
        box=SecretBox([BOX_KEY]),
        clock=clock,
    )
    authenticate = Authenticate(
        identities=stores.identity,
        cache=tokens,
        limits=KeyLimits(every=None, clock=FixedClock()),
        uses=uses,
        clock=FixedClock(),
    )
    sessions = stores.gateway_sessions
    access = GatewayAccess(
        sessions=sessions,
        agents=agents,
        authenticate=authenticate,
        limits=session_limits or KeyLimits(every=None, clock=FixedClock()),
        clock=FixedClock(),
        is_told=lambda: True,
        ends=SessionEnds(wakeups=stores.wakeups, clock=FixedClock()),
        on_forget=lambda: followers.sessions_changed(None),
    )
    handshakes = ClientHandshakes(
        clients=stores.gateway_clients,
        box=SecretBox([BOX_KEY]),
        clock=FixedClock(),
        ids=ids,
        is_told=lambda: True,
        on_change=followers.sessions_changed,
    )
    halting = HaltGatewaySession(ledger=stores.gateway_ledger, access=access, cancel_run=cancel_run)
    start_run = StartRun(
        runs=runs,
        agents=agents,
        organizations=stores.organizations,
        models=known_models,
        prices=prices,
        queue=queue,
        connections=connections,
        trace_ended=trace_ended,
        webhooks=WebhookCheck(outbound=EgressPolicy(), secrets=stores.secrets),
        clock=clock,
        ids=ids,
    )
    toolbox = GatewayToolbox(
        agents=agents, runs=runs, organizations=stores.organizations, catalog=catalog, agent_tools=agent_tools
    )
    asking = AskClient(
        notes=stores.gateway_notes,
        wakeups=stores.wakeups,
        box=SecretBox([BOX_KEY]),
        schemas=JsonSchemaValidator(),
        clock=clock,
        ids=ids,
        patience=patience,
    )
    clearing = ClearGatewayCall(
        asking=stores.gateway_approvals,
        approvals=stores.approvals,
        check=CheckToolCall(schemas=JsonSchemaValidator()),
        wakeups=stores.wakeups,
        states=RequestStates(box=SecretBox([BOX_KEY])),
        clock=clock,
        ids=ids,
        holds=holds,
        telling=TellOfApproval(asking=asking, approvals=stores.approvals, wakeups=stores.wakeups),
    )
    decide_gateway_approval = DecideGatewayApproval(
        asking=stores.gateway_approvals,
        sessions=sessions,
        toolbox=toolbox,
        check=CheckToolCall(schemas=JsonSchemaValidator()),
        wakeups=stores.wakeups,
        clock=FixedClock(),
    )
    content_sources = ContentSources(toolbox=toolbox, servers=servers, contents=connections, switch=switch)
    check_subscription = CheckSubscription(sources=content_sources, check=CheckToolCall(schemas=JsonSchemaValidator()))
    execute_mcp_tool = ExecuteMcpTool(
        servers=servers,
        catalogs=stores.catalogs,
        server_catalogs=server_catalogs,
        connections=connections,
        schemas=JsonSchemaValidator(),
        switch=switch,
    )
    held_calls = HeldCalls(
        notes=stores.gateway_notes,
        states=RequestStates(box=SecretBox([BOX_KEY])),
        wakeups=stores.wakeups,
        box=SecretBox([BOX_KEY]),
        schemas=JsonSchemaValidator(),
        clock=clock,
        ids=ids,
    )
    settling = SettleGatewayCall(
        ledger=stores.gateway_ledger, halting=halting, tracer=tracer or NullTracer(), clock=clock
    )
    sending = SendGatewayCall(
        execute_tool=ExecuteTool(
            native_tools={},
            execute_mcp_tool=execute_mcp_tool,
            agents=CallAgent(
                start_run=start_run,
                cancel_run=cancel_run,
                runs=runs,
                wakeups=stores.wakeups,
                clock=clock,
                hold_s=holds.last_s,
            ),
        ),
        asking=asking,
        held=held_calls,
        settling=settling,
        tracer=tracer or NullTracer(),
        clock=clock,
    )
    call_gateway_tool = CallGatewayTool(
        toolbox=toolbox,
        check=CheckToolCall(schemas=JsonSchemaValidator()),
        clearing=clearing,
        sending=sending,
        settling=settling,
        held=held_calls,
        states=RequestStates(box=SecretBox([BOX_KEY])),
        ledger=stores.gateway_ledger,
        clock=clock,
        ids=ids,
    )
    return UseCases(
        authenticate=authenticate,
        public_address=ListeningAddress("https://agents.example.com"),
        prices=prices,
        trace_addresses=BackendTraceAddresses(enabled=True, web="https://traces.example.com"),
        gateway_access=access,
        client_handshakes=handshakes,
        check_subscription=check_subscription,
        follow_changes=FollowChanges(
            followers=followers,
            toolbox=toolbox,
            sources=content_sources,
            check=check_subscription,
            handshakes=handshakes,
            resources=connections,
            wakeups=stores.wakeups,
            clock=FixedClock(),
        ),
        list_gateway_tools=ListGatewayTools(toolbox=toolbox),
        call_gateway_tool=call_gateway_tool,
        gateway_tasks=GatewayTasks(
            call_tool=call_gateway_tool,
            sessions=sessions,
            toolbox=toolbox,
            runs=runs,
            asking=stores.gateway_approvals,
            approvals=stores.approvals,
            ledger=stores.gateway_ledger,
            halting=halting,
            cancel_run=cancel_run,
            wakeups=stores.wakeups,
            task_ids=TaskIds(box=SecretBox([BOX_KEY])),
            clock=clock,
            ids=ids,
        ),
        answer_gateway_question=AnswerGatewayQuestion(
            notes=stores.gateway_notes,
            wakeups=stores.wakeups,
            box=SecretBox([BOX_KEY]),
            schemas=JsonSchemaValidator(),
            clock=clock,
        ),
        request_cancellations=RequestCancellations(notes=stores.gateway_notes, wakeups=stores.wakeups, clock=clock),
        list_gateway_contents=ListGatewayContents(sources=content_sources),
        read_gateway_content=ReadGatewayContent(
            sources=content_sources,
            contents=connections,
            check=CheckToolCall(schemas=JsonSchemaValidator()),
            ledger=stores.gateway_ledger,
            halting=halting,
            clock=clock,
            ids=ids,
        ),
        open_gateway_session=OpenGatewaySession(
            sessions=sessions,
            agents=agents,
            runs=runs,
            tool_nodes=ToolNodes(runs=stores.workflow_runs),
            address=ListeningAddress("https://agents.example.com"),
            clock=FixedClock(),
            ids=ids,
        ),
        list_gateway_sessions=ListGatewaySessions(sessions=sessions),
        revoke_gateway_session=RevokeGatewaySession(
            sessions=sessions,
            access=access,
            connections=connections,
            wakeups=stores.wakeups,
            clock=FixedClock(),
            ids=ids,
        ),
        create_agent=CreateAgent(agents=agents, checks=checks, clock=clock, ids=ids),
        update_agent=UpdateAgent(agents=agents, checks=checks, clock=clock, ids=ids),
        get_agent=GetAgent(agents=agents),
        list_agents=ListAgents(agents=agents),
        name_agents=NameAgents(agents=agents),
        list_agent_versions=ListAgentVersions(agents=agents),
        delete_agent=DeleteAgent(agents=agents, clock=clock, ids=ids),
        register_mcp_server=register,
        update_mcp_server=UpdateMcpServer(
            servers=servers, connections=connections, outbound=EgressPolicy(), clock=clock, ids=ids
        ),
        get_mcp_server=GetMcpServer(servers=servers),
        list_mcp_servers=ListMcpServers(servers=servers),
        delete_mcp_server=DeleteMcpServer(
            servers=servers, connections=connections, installs=installs, clock=clock, ids=ids
        ),
        check_mcp_server=CheckMcpServer(
            servers=servers,
            server_catalogs=server_catalogs,
            switch=switch,
            connections=connections,
            audit_log=stores.audit,
            clock=clock,
            ids=ids,
        ),
        refresh_mcp_server=RefreshMcpServer(servers=servers, server_catalogs=server_catalogs, switch=switch),
        approve_definition=ApproveDefinition(servers=servers, catalogs=stores.catalogs, clock=clock, ids=ids),
        authorize_mcp_server=AuthorizeMcpServer(servers=servers, authorizer=authorizer),
        finish_mcp_authorization=FinishMcpAuthorization(
            authorizer=authorizer, connections=connections, audit_log=stores.audit, clock=clock, ids=ids
        ),
        describe_oauth_client=DescribeOAuthClient(address=ListeningAddress("https://agents.example.com")),
        disconnect_mcp_server=DisconnectMcpServer(servers=servers, connections=connections, statuses=statuses),
        install_mcp_server=InstallMcpServer(servers=servers, installs=installs, installer=installer, statuses=statuses),
        uninstall_mcp_server=UninstallMcpServer(
            servers=servers, installs=installs, statuses=statuses, connections=connections, clock=clock, ids=ids
        ),
        import_mcp_servers=ImportMcpServers(register=register),
        preview_mcp_import=PreviewMcpImport(servers=servers, outbound=EgressPolicy()),
        get_mcp_server_tools=GetMcpServerTools(servers=servers, catalogs=stores.catalogs),
        get_mcp_server_status=GetMcpServerStatus(servers=servers, statuses=statuses),
        get_mcp_server_logs=GetMcpServerLogs(servers=servers, connections=connections, installer=installer),
        explain_tool=ExplainTool(
            catalog=catalog, known_tools=known_tools, agents=agents, organizations=stores.organizations
        ),
        explain_agent=ExplainAgent(known_tools=known_tools, organizations=stores.organizations),
        review_tool_policies=ReviewToolPolicies(known_tools=known_tools),
        list_tools=ListTools(
            catalog=catalog,
            agents=agents,
            servers=servers,
            catalogs=stores.catalogs,
            connections=connections,
            clock=clock,
        ),
        create_thread=CreateThread(threads=threads, clock=clock, ids=ids),
        get_thread=GetThread(threads=threads),
        list_threads=ListThreads(threads=threads),
        list_messages=ListMessages(threads=threads),
        append_message=AppendMessage(threads=threads, clock=clock, ids=ids),
        delete_thread=DeleteThread(threads=threads, clock=clock, ids=ids),
        add_source=AddSource(store=store_source, clock=clock, ids=ids),
        list_sources=ListSources(sources=stores.sources, threads=threads),
        get_source=GetSource(sources=stores.sources),
        read_source=ReadSource(sources=stores.sources),
        delete_source=DeleteSource(sources=stores.sources, clock=clock, ids=ids),
        release_thread=ReleaseThread(threads=threads, queue=queue, clock=clock, ids=ids),
        start_run=start_run,
        create_schedule=CreateSchedule(schedules=schedules, checks=schedule_checks, times=times, clock=clock, ids=ids),
        list_schedules=ListSchedules(schedules=schedules),
        get_schedule=GetSchedule(schedules=schedules),
        update_schedule=UpdateSchedule(schedules=schedules, checks=schedule_checks, times=times, clock=clock, ids=ids),
        delete_schedule=DeleteSchedule(schedules=schedules, clock=clock, ids=ids),
        resume_run=resume_run,
        list_approvals=ListApprovals(approvals=stores.approvals),
        decide_approval=DecideApproval(
            approvals=stores.approvals,
            of_run=DecideRunApproval(resume_run=resume_run, runs=stores.runs, queue=queue, clock=clock),
            of_session=decide_gateway_approval,
        ),
        cancel_run=cancel_run,
        cancel_runs=CancelRuns(
            unfinished=stores.unfinished_runs,
            cancel_run=cancel_run,
            agents=agents,
            servers=servers,
            audit_log=stores.audit,
            clock=clock,
            ids=ids,
        ),
        watch_run=WatchRun(
            runs=runs,
            keys=KeyStanding(identities=stores.identity, cache=tokens, clock=clock),
            wakeups=stores.wakeups,
            clock=clock,
            meter=a_meter(clock),
        ),
        get_run=GetRun(runs=runs),
        list_runs=ListRuns(runs=runs),
        get_run_events=GetRunEvents(runs=runs),
        get_organization=GetOrganization(organizations=stores.organizations),
        update_organization=UpdateOrganization(
            organizations=stores.organizations, policies=policies, clock=clock, ids=ids
        ),
        create_organization=CreateOrganization(
            organizations=stores.organizations, policies=policies, clock=clock, ids=ids
        ),
        create_organization_key=CreateOrganizationKey(organizations=stores.organizations, clock=clock, ids=ids),
        list_organizations=ListOrganizations(organizations=stores.organizations),
        list_audit_events=ListAuditEvents(audit_log=stores.audit),
        export_audit_events=ExportAuditEvents(chain=stores.audit_chain),
        verify_audit_chain=VerifyAuditChain(
            chain=stores.audit_chain,
            entries=stores.audit_seals,
            sealing=SealAudit(seals=stores.audit_seals, keys=GivenSealKeys(SEAL_KEY), clock=clock),
            keys=GivenSealKeys(SEAL_KEY),
            clock=clock,
        ),
        get_usage=GetUsage(reports=stores.usage),
        list_webhook_deliveries=ListWebhookDeliveries(runs=runs, deliveries=stores.webhooks),
        retry_webhook_delivery=RetryWebhookDelivery(deliveries=stores.webhooks, clock=clock, ids=ids),
        create_webhook_key=CreateWebhookKey(
            keys=stores.webhook_keys,
            secrets=SigningSecrets(secrets=stores.secrets, keys=stores.webhook_keys, clock=clock, ids=ids),
            clock=clock,
            ids=ids,
        ),
        create_api_key=CreateApiKey(identities=stores.identity, clock=clock, ids=ids),
        list_api_keys=ListApiKeys(identities=stores.identity, uses=uses),
        revoke_api_key=RevokeApiKey(identities=stores.identity, cache=tokens, clock=clock, ids=ids),
        create_model_provider=CreateModelProvider(
            providers=stores.model_providers, outbound=EgressPolicy(), clock=clock, ids=ids
        ),
        update_model_provider=UpdateModelProvider(
            providers=stores.model_providers, outbound=EgressPolicy(), clock=clock, ids=ids
        ),
        get_model_provider=GetModelProvider(providers=stores.model_providers),
        list_model_providers=ListModelProviders(providers=stores.model_providers),
        delete_model_provider=DeleteModelProvider(providers=stores.model_providers, clock=clock, ids=ids),
        set_secret=SetSecret(secrets=stores.secrets, forget_server=connections.forget, clock=clock, ids=ids),
        list_secrets=ListSecrets(secrets=stores.secrets),
        delete_secret=DeleteSecret(secrets=stores.secrets, clock=clock, ids=ids),
        create_workflow=CreateWorkflow(workflows=stores.workflows, checks=workflow_checks, clock=clock, ids=ids),
        validate_workflow=ValidateWorkflow(checks=workflow_checks),
        update_workflow=UpdateWorkflow(workflows=stores.workflows, checks=workflow_checks, clock=clock, ids=ids),
        get_workflow=GetWorkflow(workflows=stores.workflows),
        list_workflows=ListWorkflows(workflows=stores.workflows),
        list_workflow_versions=ListWorkflowVersions(workflows=stores.workflows),
        delete_workflow=DeleteWorkflow(workflows=stores.workflows, clock=clock, ids=ids),
        start_workflow_run=StartWorkflowRun(
            workflows=stores.workflows,
            runs=stores.workflow_runs,
            secrets=stores.secrets,
            schemas=JsonSchemaValidator(),
            queue=queue,
            clock=clock,
            ids=ids,
        ),
        resume_workflow_run=ResumeWorkflowRun(
            resume_run=resume_run,
            runs=stores.workflow_runs,
            schemas=JsonSchemaValidator(),
            queue=queue,
            clock=clock,
            ids=ids,
        ),
        stop_workflow_run=StopWorkflowRun(
            runs=stores.workflow_runs, queue=queue, tools=tool_step, clock=clock, ids=ids, tracer=NullTracer()
        ),
        get_workflow_run=GetWorkflowRun(runs=stores.workflow_runs),
        list_workflow_runs=ListWorkflowRuns(runs=stores.workflow_runs),
        watch_workflow_run=WatchWorkflowRun(
            runs=stores.workflow_runs,
            keys=KeyStanding(identities=stores.identity, cache=tokens, clock=clock),
            wakeups=stores.wakeups,
        ),
        rotate_secret_key=RotateSecretKey(
            vault=vault or InMemorySecretVault(stale=300),
            key_ring=GivenKeyRing(),
            audit_log=stores.audit,
            clock=clock,
            ids=ids,
        ),
    )
