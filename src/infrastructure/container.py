"""The one place where the house is put together: every adapter and use case, from the settings.

Providers are synchronous and build without I/O; what must be opened and closed is entered in lifecycle.py. Heavy
adapters are imported when they are first built.
"""

from collections.abc import Mapping
from importlib.metadata import version

from dependency_injector import containers, providers

from application.agents.agent_checks import AgentChecks
from application.agents.create_agent import CreateAgent
from application.agents.delete_agent import DeleteAgent
from application.agents.get_agent import GetAgent
from application.agents.list_agent_versions import ListAgentVersions
from application.agents.list_agents import ListAgents
from application.agents.name_agents import NameAgents
from application.agents.ports import AgentStore
from application.agents.update_agent import UpdateAgent
from application.approvals.check_decisions import CheckDecisions
from application.approvals.decide_approval import DecideApproval
from application.approvals.fire_timers import FireTimers
from application.approvals.list_approvals import ListApprovals
from application.approvals.ports import ApprovalStore
from application.audit.export_audit_events import ExportAuditEvents
from application.audit.list_audit_events import ListAuditEvents
from application.audit.ports import AuditChain, AuditLog, AuditSeals, SealKeys
from application.audit.prune_audit import PruneAudit
from application.audit.seal_audit import SealAudit
from application.audit.verify_audit_chain import VerifyAuditChain
from application.gateway.answer_question import AnswerGatewayQuestion
from application.gateway.ask_client import AskClient, Patience
from application.gateway.call_tool import CallGatewayTool
from application.gateway.check_subscription import CheckSubscription
from application.gateway.clear_call import ClearGatewayCall, Holds
from application.gateway.client_handshakes import ClientHandshakes
from application.gateway.content_sources import ContentSources
from application.gateway.decide_gateway_approval import DecideGatewayApproval
from application.gateway.follow_changes import FollowChanges
from application.gateway.followers import Followers
from application.gateway.gateway_access import GatewayAccess
from application.gateway.halt_session import HaltGatewaySession
from application.gateway.held_calls import HeldCalls
from application.gateway.list_contents import ListGatewayContents
from application.gateway.list_sessions import ListGatewaySessions
from application.gateway.list_tools import ListGatewayTools
from application.gateway.open_session import OpenGatewaySession
from application.gateway.ports import GatewayLedger, GatewaySessionStore
from application.gateway.read_content import ReadGatewayContent
from application.gateway.release_ended_sessions import ReleaseEndedSessions
from application.gateway.request_cancellations import RequestCancellations
from application.gateway.request_states import RequestStates
from application.gateway.revoke_session import RevokeGatewaySession
from application.gateway.send_call import SendGatewayCall
from application.gateway.settle_call import SettleGatewayCall
from application.gateway.settle_lost_calls import SettleLostCalls
from application.gateway.task_ids import TaskIds
from application.gateway.tasks import GatewayTasks
from application.gateway.tell_of_approval import TellOfApproval
from application.gateway.tool_nodes import ToolNodes
from application.gateway.toolbox import GatewayToolbox
from application.identity.authenticate import Authenticate
from application.identity.bootstrap_identity import BootstrapIdentity
from application.identity.create_api_key import CreateApiKey
from application.identity.create_organization import CreateOrganization
from application.identity.create_organization_key import CreateOrganizationKey
from application.identity.get_organization import GetOrganization
from application.identity.key_limits import KeyLimits
from application.identity.key_standing import KeyStanding
from application.identity.key_uses import KeyUses
from application.identity.list_api_keys import ListApiKeys
from application.identity.list_organizations import ListOrganizations
from application.identity.ports import IdentityStore, OrganizationStore
from application.identity.revoke_api_key import RevokeApiKey
from application.identity.token_cache import TokenCache
from application.identity.update_organization import UpdateOrganization
from application.mcp.approve_definition import ApproveDefinition
from application.mcp.authorize_mcp_server import AuthorizeMcpServer
from application.mcp.delete_mcp_server import DeleteMcpServer
from application.mcp.disconnect_mcp_server import DisconnectMcpServer
from application.mcp.finish_mcp_authorization import FinishMcpAuthorization
from application.mcp.get_mcp_server import GetMcpServer
from application.mcp.get_mcp_server_logs import GetMcpServerLogs
from application.mcp.get_mcp_server_status import GetMcpServerStatus
from application.mcp.get_mcp_server_tools import GetMcpServerTools
from application.mcp.import_mcp_servers import ImportMcpServers
from application.mcp.install_mcp_server import InstallMcpServer
from application.mcp.list_mcp_servers import ListMcpServers
from application.mcp.mcp_switch import McpSwitch
from application.mcp.oauth_client import DescribeOAuthClient
from application.mcp.ports import McpCatalogStore, McpInstaller, McpServerStore
from application.mcp.preview_mcp_import import PreviewMcpImport
from application.mcp.refresh_mcp_server import RefreshMcpServer
from application.mcp.register_mcp_server import RegisterMcpServer
from application.mcp.server_catalogs import ServerCatalogs
from application.mcp.server_installs import ServerInstalls
from application.mcp.server_status import ServerStatuses
from application.mcp.test_mcp_server import TestMcpServer
from application.mcp.uninstall_mcp_server import UninstallMcpServer
from application.mcp.update_mcp_server import UpdateMcpServer
from application.mcp.warm_catalogs import WarmCatalogs
from application.model_providers.create_model_provider import CreateModelProvider
from application.model_providers.delete_model_provider import DeleteModelProvider
from application.model_providers.get_model_provider import GetModelProvider
from application.model_providers.list_model_providers import ListModelProviders
from application.model_providers.ports import ModelProviderStore
from application.model_providers.update_model_provider import UpdateModelProvider
from application.models.ports import FallbackModels
from application.policy.policy_checks import PolicyChecks
from application.policy.review_tool_policies import ReviewToolPolicies
from application.retention.apply_retention import ApplyRetention
from application.retention.ports import RetentionStore, SweepLock
from application.retention.sweep import SweepHouse
from application.runs.active_runs import ActiveRuns, LeaseSettings
from application.runs.agent_loop import AgentLoop
from application.runs.ask_model import AskModel
from application.runs.call_agent import CallAgent
from application.runs.call_tools import CallTools, CallToolsSettings
from application.runs.cancel_run import CancelRun
from application.runs.cancel_runs import CancelRuns
from application.runs.daily_budget import DailyBudgets
from application.runs.decide_anew import DecideAnew
from application.runs.execute_run import ExecuteRun
from application.runs.ports import RunJournal, RunLeases, RunStore
from application.runs.prepare_prompt import PreparePrompt
from application.runs.queries import GetRun, GetRunEvents, ListRuns
from application.runs.record_reply import RecordReply
from application.runs.recover_runs import RecoverRuns
from application.runs.resume_run import ResumeRun
from application.runs.start_run import StartRun
from application.runs.stop_run import StopRun
from application.runs.trace_ended_run import TraceEndedRun
from application.runs.watch_run import WatchRun
from application.schedules.create_schedule import CreateSchedule
from application.schedules.delete_schedule import DeleteSchedule
from application.schedules.fire_schedules import FireSchedules
from application.schedules.get_schedule import GetSchedule
from application.schedules.list_schedules import ListSchedules
from application.schedules.ports import CronTimes
from application.schedules.schedule_checks import ScheduleChecks
from application.schedules.update_schedule import UpdateSchedule
from application.secrets.delete_secret import DeleteSecret
from application.secrets.list_secrets import ListSecrets
from application.secrets.ports import SecretStore
from application.secrets.rotate_secret_key import RotateSecretKey
from application.secrets.set_secret import SetSecret
from application.sources.add_source import AddSource
from application.sources.delete_source import DeleteSource
from application.sources.get_source import GetSource
from application.sources.list_sources import ListSources
from application.sources.ports import SourceIntake, SourceStore
from application.sources.read_source import ReadSource
from application.sources.search_sources import SearchSources
from application.sources.store_source import StoreSource
from application.system.ports import Clock, IdSource
from application.system.readiness import ProcessReadiness
from application.threads.append_message import AppendMessage
from application.threads.create_thread import CreateThread
from application.threads.delete_thread import DeleteThread
from application.threads.get_thread import GetThread
from application.threads.list_messages import ListMessages
from application.threads.list_threads import ListThreads
from application.threads.ports import ThreadStore
from application.threads.release_thread import ReleaseThread
from application.tools.agent_tools import AgentTools
from application.tools.check_tool_call import CheckToolCall
from application.tools.execute_mcp_tool import ExecuteMcpTool
from application.tools.execute_tool import ExecuteTool
from application.tools.explain_agent import ExplainAgent
from application.tools.explain_tool import ExplainTool
from application.tools.known_tools import KnownTools
from application.tools.list_tools import ListTools
from application.tools.ports import NativeTool, SchemaValidator
from application.tools.tool_catalog import ToolCatalog
from application.tools.wired_tools import ComponentTools, WiredTools
from application.tracing.ports import TraceAddresses
from application.usage.get_usage import GetUsage
from application.webhooks.create_webhook_key import CreateWebhookKey
from application.webhooks.deliver_webhooks import DeliverWebhooks
from application.webhooks.list_webhook_deliveries import ListWebhookDeliveries
from application.webhooks.ports import WebhookDeliveryStore, WebhookKeyStore, WebhookSender
from application.webhooks.retry_webhook_delivery import RetryWebhookDelivery
from application.webhooks.signing_secrets import SigningSecrets
from application.webhooks.webhook_check import WebhookCheck
from application.workflows.advance_workflow import AdvanceWorkflow
from application.workflows.agent_step import AgentStep
from application.workflows.create_workflow import CreateWorkflow
from application.workflows.delete_workflow import DeleteWorkflow
from application.workflows.http_request import HttpRequests
from application.workflows.http_step import BoundInputs, HttpStep
from application.workflows.local_steps import LocalSteps
from application.workflows.mcp_step import McpStep
from application.workflows.ports import Expressions, WorkflowStore
from application.workflows.queries import GetWorkflow, ListWorkflows, ListWorkflowVersions
from application.workflows.resume_workflow_run import ResumeWorkflowRun
from application.workflows.run_queries import GetWorkflowRun, ListWorkflowRuns, WatchWorkflowRun
from application.workflows.start_workflow_run import StartWorkflowRun
from application.workflows.stop_workflow_run import StopWorkflowRun
from application.workflows.stored_wired_tools import CallComponent, StoredWiredTools
from application.workflows.tool_step import ToolStep
from application.workflows.update_workflow import UpdateWorkflow
from application.workflows.validate_workflow import ValidateWorkflow
from application.workflows.workflow_checks import WorkflowChecks
from application.workflows.workflow_drivers import WorkflowDrivers
from domain.ids import WorkerId
from domain.tools.capabilities import ToolType
from infrastructure.assembly import mcp as mcp_assembly
from infrastructure.assembly import metrics as metrics_assembly
from infrastructure.assembly import models as models_assembly
from infrastructure.assembly import native_tools as native_tools_assembly
from infrastructure.assembly import storage as storage_assembly
from infrastructure.assembly import tracing as tracing_assembly
from infrastructure.assembly import webhooks as webhooks_assembly
from infrastructure.assembly import workflows as workflows_assembly
from infrastructure.assembly.storage import ConsumedRunQueue, OpenWakeups
from infrastructure.assembly.workflows import HttpCallerWhenNeeded
from infrastructure.cron import CronsimTimes
from infrastructure.egress import EgressPolicy
from infrastructure.events.row_feed import RowFeed
from infrastructure.extraction.process_extractor import ProcessTextExtractor
from infrastructure.home import Home
from infrastructure.llm.lazy_prices import LazyPriceTable
from infrastructure.llm.lazy_providers import LazyProviders
from infrastructure.llm.organization_providers import OrganizationProviders
from infrastructure.llm.providers import ProviderConfig
from infrastructure.llm.retrying import RetryingModels
from infrastructure.llm.routing import RoutedModels
from infrastructure.logs import log_context
from infrastructure.mcp.announced_connections import AnnouncedConnections
from infrastructure.mcp.install.directories import InstallDirectories
from infrastructure.mcp.install.launches import InstalledLaunches
from infrastructure.mcp.install.node import NodeRuntime
from infrastructure.mcp.known_secrets import KnownSecrets
from infrastructure.mcp.lazy_oauth import LazyOAuth
from infrastructure.mcp.resource_watches import ResourceWatches
from infrastructure.mcp.state_reporter import StateReporter
from infrastructure.mcp.supervised_connections import SupervisedConnections
from infrastructure.metrics.instruments import Instruments
from infrastructure.metrics.metered_leases import MeteredRunLeases
from infrastructure.metrics.metered_tracer import MeteredTracer
from infrastructure.metrics.meters import PrometheusMeters
from infrastructure.metrics.page import PrometheusPage
from infrastructure.metrics.server_states import ServerStates
from infrastructure.native_tools.internet_search import InternetSearchTool
from infrastructure.native_tools.lazy_code_execution import LazyCodeExecution
from infrastructure.native_tools.source_query import SourceQueryTool
from infrastructure.native_tools.website_content import WebsiteContentTool
from infrastructure.persistence.agent_store import SqlAgentStore
from infrastructure.persistence.approval_store import SqlApprovalStore, SqlTimerStore
from infrastructure.persistence.audit_chain import SqlAuditChain
from infrastructure.persistence.audit_keys import SqlSealKeys
from infrastructure.persistence.audit_log import SqlAuditLog
from infrastructure.persistence.audit_seals import SqlAuditSeals
from infrastructure.persistence.cached_stores import (
    CachedAgentStore,
    CachedMcpCatalogStore,
    CachedMcpServerStore,
    CachedModelProviderStore,
    CachedOrganizationStore,
    CachedSecretStore,
)
from infrastructure.persistence.database import Database
from infrastructure.persistence.gateway_approvals import SqlGatewayApprovals
from infrastructure.persistence.gateway_clients import SqlGatewayClientStore
from infrastructure.persistence.gateway_ledger import SqlGatewayLedger
from infrastructure.persistence.gateway_notes import SqlGatewayNotes
from infrastructure.persistence.gateway_store import SqlGatewaySessionStore
from infrastructure.persistence.identity_store import SqlIdentityStore
from infrastructure.persistence.inspection import DatabaseInspection
from infrastructure.persistence.mcp_catalog_store import SqlMcpCatalogStore
from infrastructure.persistence.mcp_server_store import SqlMcpServerStore
from infrastructure.persistence.model_provider_store import SqlModelProviderStore
from infrastructure.persistence.oauth_store import SqlOAuthStore
from infrastructure.persistence.organization_store import SqlOrganizationStore
from infrastructure.persistence.readiness import DatabaseReadiness
from infrastructure.persistence.retention_store import SqlRetentionStore
from infrastructure.persistence.run_journal import SqlRunJournal
from infrastructure.persistence.run_leases import SqlRunLeases
from infrastructure.persistence.schedule_store import SqlScheduleStore
from infrastructure.persistence.secret_store import SqlSecretStore
from infrastructure.persistence.secret_vault import SqlSecretVault
from infrastructure.persistence.source_intake import SqlSourceIntake
from infrastructure.persistence.source_search import SqlSourceSearch
from infrastructure.persistence.source_store import SqlSourceStore
from infrastructure.persistence.thread_store import SqlThreadStore
from infrastructure.persistence.unfinished_runs import SqlUnfinishedRuns
from infrastructure.persistence.usage_store import SqlUsageStore
from infrastructure.persistence.webhook_keys import SqlWebhookKeyStore
from infrastructure.persistence.webhook_store import SqlWebhookDeliveryStore
from infrastructure.persistence.workflow_run_store import SqlWorkflowRunStore
from infrastructure.persistence.workflow_store import SqlWorkflowStore
from infrastructure.persistence.workflow_tool_store import SqlWorkflowToolStore
from infrastructure.public_address import ListeningAddress
from infrastructure.redaction import Redactor
from infrastructure.secrets import SecretBox
from infrastructure.settings import Settings
from infrastructure.system import RandomIds, SystemClock
from infrastructure.tracing.closable import ClosableTracer


def _egress_policy(settings: Settings) -> EgressPolicy:
    return EgressPolicy(settings.egress_allowed)


def _worker_id(ids: IdSource) -> WorkerId:
    return WorkerId(ids.new("wrk"))


class Container(containers.DeclarativeContainer):
    """Give it `settings`; ask it for use cases."""

    settings: providers.Dependency[Settings] = providers.Dependency(instance_of=Settings)

    # The surroundings.
    app_version: providers.Provider[str] = providers.Callable(version, "dragoman")
    clock: providers.Provider[Clock] = providers.Singleton(SystemClock)
    ids: providers.Provider[IdSource] = providers.Singleton(RandomIds)
    home: providers.Provider[Home] = providers.Singleton(
        Home, settings.provided.home, database_path=settings.provided.database_path
    )
    redactor: providers.Provider[Redactor] = providers.Singleton(Redactor, settings.provided.secret_values)
    known_secrets: providers.Provider[KnownSecrets] = providers.Singleton(KnownSecrets, redactor)
    secret_box: providers.Provider[SecretBox] = providers.Singleton(storage_assembly.secret_box, settings)
    egress_policy: providers.Provider[EgressPolicy] = providers.Singleton(_egress_policy, settings)
    public_address: providers.Provider[ListeningAddress] = providers.Singleton(
        ListeningAddress, settings.provided.public_url
    )
    schemas: providers.Provider[SchemaValidator] = providers.Singleton(native_tools_assembly.schemas)
    row_feed: providers.Provider[RowFeed] = providers.Singleton(storage_assembly.row_feed, settings)
    wakeups: providers.Provider[OpenWakeups] = providers.Singleton(storage_assembly.wakeups, settings, ids, row_feed)
    instruments: providers.Provider[Instruments] = providers.Singleton(Instruments, version=app_version)
    meters: providers.Provider[PrometheusMeters] = providers.Singleton(
        PrometheusMeters, instruments=instruments, clock=clock
    )
    server_states: providers.Provider[ServerStates] = providers.Singleton(ServerStates, instruments)
    tracer: providers.Provider[ClosableTracer] = providers.Singleton(
        MeteredTracer, providers.Singleton(tracing_assembly.tracer, settings, redactor), instruments=instruments
    )

    trace_addresses: providers.Provider[TraceAddresses] = providers.Singleton(
        tracing_assembly.trace_addresses, settings
    )

    # Storage: one SQLite file in HOME, or PostgreSQL, shared with other processes; `edited_…` are for those who change rows or
    # show what was changed. ADR 0002, 0012 and 0015.
    database: providers.Provider[Database] = providers.Singleton(storage_assembly.database, settings, home)
    upgrade_schema: providers.Provider[bool] = providers.Callable(storage_assembly.upgrade_schema, settings, home)
    database_inspection: providers.Provider[DatabaseInspection] = providers.Factory(
        storage_assembly.inspection, settings, home
    )
    run_queue: providers.Provider[ConsumedRunQueue] = providers.Singleton(
        storage_assembly.run_queue, settings, database
    )
    readiness: providers.Provider[ProcessReadiness] = providers.Singleton(
        ProcessReadiness, storage=providers.Singleton(DatabaseReadiness, database=database), queue=run_queue
    )
    threads: providers.Provider[ThreadStore] = providers.Singleton(SqlThreadStore, database=database)
    agents: providers.Provider[AgentStore] = providers.Singleton(
        CachedAgentStore, providers.Singleton(SqlAgentStore, database=database, box=secret_box), feed=row_feed
    )
    edited_agents: providers.Provider[AgentStore] = agents.provided.anew.call()
    servers: providers.Provider[McpServerStore] = providers.Singleton(
        CachedMcpServerStore, providers.Singleton(SqlMcpServerStore, database=database, box=secret_box), feed=row_feed
    )
    edited_servers: providers.Provider[McpServerStore] = servers.provided.anew.call()
    secrets: providers.Provider[SecretStore] = providers.Singleton(
        CachedSecretStore, providers.Singleton(SqlSecretStore, database=database, box=secret_box), feed=row_feed
    )
    model_provider_store: providers.Provider[ModelProviderStore] = providers.Singleton(
        CachedModelProviderStore,
        providers.Singleton(SqlModelProviderStore, database=database, box=secret_box),
        feed=row_feed,
    )
    edited_model_provider_store: providers.Provider[ModelProviderStore] = model_provider_store.provided.anew.call()
    oauth_store: providers.Provider[SqlOAuthStore] = providers.Singleton(
        SqlOAuthStore, database=database, box=secret_box
    )
    catalogs: providers.Provider[McpCatalogStore] = providers.Singleton(
        CachedMcpCatalogStore, providers.Singleton(SqlMcpCatalogStore, database=database), feed=row_feed
    )
    edited_catalogs: providers.Provider[McpCatalogStore] = catalogs.provided.anew.call()
    organizations: providers.Provider[OrganizationStore] = providers.Singleton(
        CachedOrganizationStore, providers.Singleton(SqlOrganizationStore, database=database), feed=row_feed
    )
    edited_organizations: providers.Provider[OrganizationStore] = organizations.provided.anew.call()
    identities: providers.Provider[IdentityStore] = providers.Singleton(SqlIdentityStore, database=database)
    sources: providers.Provider[SourceStore] = providers.Singleton(SqlSourceStore, database=database)
    source_intake: providers.Provider[SourceIntake] = providers.Singleton(SqlSourceIntake, database=database)
    audit_log: providers.Provider[AuditLog] = providers.Singleton(SqlAuditLog, database=database)
    audit_seals: providers.Provider[AuditSeals] = providers.Singleton(SqlAuditSeals, database=database)
    audit_chain: providers.Provider[AuditChain] = providers.Singleton(SqlAuditChain, database=database)
    seal_keys: providers.Provider[SealKeys] = providers.Singleton(SqlSealKeys, database=database, box=secret_box)
    usage_store: providers.Provider[SqlUsageStore] = providers.Singleton(SqlUsageStore, database=database)
    approvals: providers.Provider[ApprovalStore] = providers.Singleton(SqlApprovalStore, database=database)
    runs: providers.Provider[RunStore] = providers.Singleton(storage_assembly.run_store, settings, database, wakeups)
    leases: providers.Provider[RunLeases] = providers.Singleton(
        MeteredRunLeases,
        providers.Singleton(SqlRunLeases, database=database, wakeups=wakeups, box=secret_box),
        instruments=instruments,
    )
    journal: providers.Provider[RunJournal] = providers.Singleton(SqlRunJournal, database=database, wakeups=wakeups)

    # Models.
    lazy_providers: providers.Provider[LazyProviders] = providers.Singleton(
        models_assembly.lazy_providers, egress_policy
    )
    model_providers: providers.Provider[tuple[ProviderConfig, ...]] = providers.Singleton(
        models_assembly.model_providers, settings
    )
    prices: providers.Provider[LazyPriceTable] = providers.Singleton(models_assembly.prices, model_providers)
    organization_providers: providers.Provider[OrganizationProviders] = providers.Singleton(
        OrganizationProviders,
        environment=model_providers,
        providers=model_provider_store,
        secrets=secrets,
        organizations=organizations,
    )
    routed_models: providers.Provider[RoutedModels] = providers.Singleton(
        models_assembly.routed_models, organization_providers, lazy_providers, home
    )
    models: providers.Provider[FallbackModels] = providers.Singleton(RetryingModels, routed_models)

    # Tools.
    mcp_switch: providers.Provider[McpSwitch] = providers.Singleton(
        McpSwitch, enabled=settings.provided.mcp_enabled, organizations=organizations
    )
    install_directories: providers.Provider[InstallDirectories] = providers.Singleton(
        InstallDirectories, home.provided.servers_path
    )
    node_runtime: providers.Provider[NodeRuntime] = providers.Singleton(mcp_assembly.node_runtime, home)
    server_launches: providers.Provider[InstalledLaunches] = providers.Singleton(
        InstalledLaunches, directories=install_directories, node=node_runtime
    )
    oauth: providers.Provider[LazyOAuth] = providers.Singleton(
        mcp_assembly.oauth,
        clock=clock,
        servers=servers,
        secrets=secrets,
        store=oauth_store,
        known_secrets=known_secrets,
        egress=egress_policy,
        address=public_address,
        rows=row_feed,
    )
    state_reporter: providers.Provider[StateReporter | None] = providers.Singleton(
        mcp_assembly.state_reporter, settings, database=database, clock=clock, ids=ids
    )
    followers: providers.Provider[Followers] = providers.Singleton(storage_assembly.followers, row_feed)
    connections: providers.Provider[SupervisedConnections] = providers.Singleton(
        mcp_assembly.connections,
        settings=settings,
        clock=clock,
        ids=ids,
        catalogs=catalogs,
        secrets=secrets,
        known_secrets=known_secrets,
        egress=egress_policy,
        oauth=oauth,
        launches=server_launches,
        node=node_runtime,
        reporter=state_reporter,
        states=server_states,
        followers=followers,
        announcements=wakeups,
    )
    resource_watches: providers.Provider[ResourceWatches] = providers.Singleton(ResourceWatches, connections)
    # For those who end what other processes may have open, too.
    announced_connections: providers.Provider[AnnouncedConnections] = providers.Singleton(
        AnnouncedConnections, connections, announcements=wakeups
    )
    server_catalogs: providers.Provider[ServerCatalogs] = providers.Singleton(
        ServerCatalogs, catalogs=catalogs, connections=connections, clock=clock, ids=ids
    )
    warm_catalogs: providers.Provider[WarmCatalogs] = providers.Singleton(
        WarmCatalogs, catalogs=catalogs, server_catalogs=server_catalogs, clock=clock
    )
    text_extractor: providers.Provider[ProcessTextExtractor] = providers.Singleton(ProcessTextExtractor)
    store_source: providers.Provider[StoreSource] = providers.Singleton(
        StoreSource, intake=source_intake, sources=sources, extractor=text_extractor, clock=clock
    )
    search_sources: providers.Provider[SearchSources] = providers.Singleton(
        SearchSources, sources=sources, search=providers.Singleton(SqlSourceSearch, database=database)
    )
    code_execution: providers.Provider[LazyCodeExecution] = providers.Singleton(
        native_tools_assembly.code_execution, sources, store_source, clock
    )
    website_content: providers.Provider[WebsiteContentTool] = providers.Singleton(
        native_tools_assembly.website_content, egress_policy, text_extractor
    )
    internet_search: providers.Provider[InternetSearchTool] = providers.Singleton(
        native_tools_assembly.internet_search, settings
    )
    native_tools: providers.Provider[Mapping[ToolType, NativeTool]] = providers.Singleton(
        native_tools_assembly.native_tools,
        code_execution,
        website_content,
        internet_search,
        providers.Singleton(SourceQueryTool, search_sources=search_sources),
    )
    # Tools of workflow runs, which their agents see in the place of their own.
    expressions: providers.Provider[Expressions] = providers.Singleton(workflows_assembly.expressions)
    workflow_http: providers.Provider[HttpCallerWhenNeeded] = providers.Singleton(
        workflows_assembly.http_caller, egress_policy
    )
    workflow_requests: providers.Provider[HttpRequests] = providers.Singleton(
        HttpRequests, caller=workflow_http, expressions=expressions
    )
    wired_tools: providers.Provider[WiredTools] = providers.Singleton(
        StoredWiredTools, tools=providers.Singleton(SqlWorkflowToolStore, database=database), box=secret_box
    )
    component_tools: providers.Provider[ComponentTools] = providers.Singleton(
        CallComponent, requests=workflow_requests, box=secret_box
    )
    tool_catalog: providers.Provider[ToolCatalog] = providers.Singleton(
        ToolCatalog,
        native_tools=native_tools,
        displayable_tools=providers.Singleton(native_tools_assembly.displayable_tools),
        servers=servers,
        catalogs=warm_catalogs,
        connections=connections,
        switch=mcp_switch,
        organizations=organizations,
        search_threshold=settings.provided.tool_search_threshold,
        wired_tools=wired_tools,
    )
    execute_mcp_tool: providers.Provider[ExecuteMcpTool] = providers.Singleton(
        ExecuteMcpTool,
        servers=servers,
        catalogs=catalogs,
        server_catalogs=server_catalogs,
        connections=connections,
        schemas=schemas,
        switch=mcp_switch,
    )
    execute_tool: providers.Provider[ExecuteTool] = providers.Singleton(
        ExecuteTool, native_tools=native_tools, execute_mcp_tool=execute_mcp_tool, components=component_tools
    )
    list_tools: providers.Provider[ListTools] = providers.Singleton(
        ListTools,
        catalog=tool_catalog,
        agents=agents,
        servers=servers,
        catalogs=catalogs,
        connections=connections,
        clock=clock,
    )

    agent_tools: providers.Provider[AgentTools] = providers.Singleton(
        AgentTools, agents=agents, organizations=organizations
    )
    known_tools: providers.Provider[KnownTools] = providers.Singleton(
        KnownTools, catalog=tool_catalog, servers=servers, agent_tools=agent_tools
    )
    explain_tool: providers.Provider[ExplainTool] = providers.Singleton(
        ExplainTool, catalog=tool_catalog, known_tools=known_tools, agents=agents, organizations=organizations
    )
    explain_agent: providers.Provider[ExplainAgent] = providers.Singleton(
        ExplainAgent, known_tools=known_tools, organizations=organizations
    )
    policy_checks: providers.Provider[PolicyChecks] = providers.Singleton(PolicyChecks, schemas=schemas)
    review_tool_policies: providers.Provider[ReviewToolPolicies] = providers.Singleton(
        ReviewToolPolicies, known_tools=known_tools
    )

    # Executing runs.
    worker_id: providers.Provider[WorkerId] = providers.Singleton(_worker_id, ids)
    active_runs: providers.Provider[ActiveRuns] = providers.Singleton(
        ActiveRuns, leases=leases, clock=clock, worker_id=worker_id, settings=LeaseSettings()
    )
    metrics_page: providers.Provider[PrometheusPage] = providers.Singleton(
        metrics_assembly.page, instruments=instruments, database=database, active_runs=active_runs, clock=clock
    )
    check_tool_call: providers.Provider[CheckToolCall] = providers.Singleton(CheckToolCall, schemas=schemas)
    agent_loop: providers.Provider[AgentLoop] = providers.Singleton(
        AgentLoop,
        prepare_prompt=providers.Singleton(
            PreparePrompt, catalog=tool_catalog, agents=agents, organizations=organizations
        ),
        ask_model=providers.Singleton(AskModel, models=models, prices=prices, tracer=tracer, clock=clock),
        record_reply=providers.Singleton(RecordReply, check=check_tool_call, runs=runs, clock=clock),
        decide_anew=providers.Singleton(DecideAnew, check=check_tool_call, clock=clock),
        call_tools=providers.Singleton(
            CallTools,
            execute_tool=execute_tool,
            box=secret_box,
            tracer=tracer,
            clock=clock,
            settings=CallToolsSettings(),
        ),
        budgets=providers.Singleton(
            DailyBudgets, organizations=organizations, reservations=usage_store, prices=prices, clock=clock
        ),
        prices=prices,
        clock=clock,
    )
    trace_ended: providers.Provider[TraceEndedRun] = providers.Singleton(
        TraceEndedRun, runs=runs, agents=agents, tracer=tracer
    )
    execute_run: providers.Provider[ExecuteRun] = providers.Singleton(
        ExecuteRun,
        leases=leases,
        journal=journal,
        queue=run_queue,
        wakeups=wakeups,
        loop=agent_loop,
        active_runs=active_runs,
        connections=connections,
        tracer=tracer,
        trace_ended=trace_ended,
        clock=clock,
        ids=ids,
        log_context=providers.Object(log_context),
    )
    recover_runs: providers.Provider[RecoverRuns] = providers.Singleton(
        RecoverRuns, leases=leases, queue=run_queue, clock=clock
    )
    # Approvals of gateway sessions, which the same people and timers end.
    gateway_sessions: providers.Provider[GatewaySessionStore] = providers.Singleton(
        SqlGatewaySessionStore, database=database
    )
    gateway_toolbox: providers.Provider[GatewayToolbox] = providers.Singleton(
        GatewayToolbox,
        agents=agents,
        runs=runs,
        organizations=organizations,
        catalog=tool_catalog,
        agent_tools=agent_tools,
        rows=providers.Singleton(storage_assembly.toolbox_rows, row_feed),
    )
    gateway_approvals: providers.Provider[SqlGatewayApprovals] = providers.Singleton(
        SqlGatewayApprovals, database=database
    )
    decide_gateway_approval: providers.Provider[DecideGatewayApproval] = providers.Singleton(
        DecideGatewayApproval,
        asking=gateway_approvals,
        sessions=gateway_sessions,
        toolbox=gateway_toolbox,
        check=check_tool_call,
        wakeups=wakeups,
        clock=clock,
    )
    fire_timers: providers.Provider[FireTimers] = providers.Singleton(
        FireTimers,
        timers=providers.Singleton(SqlTimerStore, database=database),
        approvals=approvals,
        runs=runs,
        queue=run_queue,
        of_session=decide_gateway_approval,
        wakeups=wakeups,
        clock=clock,
    )

    # Webhooks: announced by whatever stores a run's steps, delivered here.
    webhook_deliveries: providers.Provider[WebhookDeliveryStore] = providers.Singleton(
        SqlWebhookDeliveryStore, database=database, wakeups=wakeups
    )
    webhook_keys: providers.Provider[WebhookKeyStore] = providers.Singleton(
        SqlWebhookKeyStore, database=database, box=secret_box
    )
    webhook_sender: providers.Provider[WebhookSender] = providers.Singleton(
        webhooks_assembly.webhook_sender, egress_policy, clock
    )
    webhook_check: providers.Provider[WebhookCheck] = providers.Singleton(
        WebhookCheck, outbound=egress_policy, secrets=secrets
    )
    signing_secrets: providers.Provider[SigningSecrets] = providers.Singleton(
        SigningSecrets, secrets=secrets, keys=webhook_keys, clock=clock, ids=ids
    )
    deliver_webhooks: providers.Provider[DeliverWebhooks] = providers.Singleton(
        DeliverWebhooks,
        deliveries=webhook_deliveries,
        secrets=signing_secrets,
        sender=webhook_sender,
        wakeups=wakeups,
        clock=clock,
    )
    create_webhook_key: providers.Provider[CreateWebhookKey] = providers.Singleton(
        CreateWebhookKey, keys=webhook_keys, secrets=signing_secrets, clock=clock, ids=ids
    )
    list_webhook_deliveries: providers.Provider[ListWebhookDeliveries] = providers.Singleton(
        ListWebhookDeliveries, runs=runs, deliveries=webhook_deliveries
    )
    retry_webhook_delivery: providers.Provider[RetryWebhookDelivery] = providers.Singleton(
        RetryWebhookDelivery, deliveries=webhook_deliveries, clock=clock, ids=ids
    )

    # Runs, as clients see them.
    start_run: providers.Provider[StartRun] = providers.Singleton(
        StartRun,
        runs=runs,
        webhooks=webhook_check,
        agents=agents,
        organizations=organizations,
        models=routed_models,
        prices=prices,
        queue=run_queue,
        connections=announced_connections,
        trace_ended=trace_ended,
        clock=clock,
        ids=ids,
    )
    # Schedules.
    cron_times: providers.Provider[CronTimes] = providers.Singleton(CronsimTimes)
    schedules: providers.Provider[SqlScheduleStore] = providers.Singleton(
        SqlScheduleStore, database=database, wakeups=wakeups
    )
    fire_schedules: providers.Provider[FireSchedules] = providers.Singleton(
        FireSchedules,
        due=schedules,
        schedules=schedules,
        start_run=start_run,
        times=cron_times,
        wakeups=wakeups,
        clock=clock,
    )
    schedule_checks: providers.Provider[ScheduleChecks] = providers.Singleton(
        ScheduleChecks,
        agents=agents,
        threads=threads,
        organizations=organizations,
        models=routed_models,
        prices=prices,
        webhooks=webhook_check,
        times=cron_times,
    )
    create_schedule: providers.Provider[CreateSchedule] = providers.Singleton(
        CreateSchedule, schedules=schedules, checks=schedule_checks, times=cron_times, clock=clock, ids=ids
    )
    update_schedule: providers.Provider[UpdateSchedule] = providers.Singleton(
        UpdateSchedule, schedules=schedules, checks=schedule_checks, times=cron_times, clock=clock, ids=ids
    )
    get_schedule: providers.Provider[GetSchedule] = providers.Singleton(GetSchedule, schedules=schedules)
    list_schedules: providers.Provider[ListSchedules] = providers.Singleton(ListSchedules, schedules=schedules)
    delete_schedule: providers.Provider[DeleteSchedule] = providers.Singleton(
        DeleteSchedule, schedules=schedules, clock=clock, ids=ids
    )

    resume_run: providers.Provider[ResumeRun] = providers.Singleton(
        ResumeRun,
        runs=runs,
        queue=run_queue,
        decisions=providers.Singleton(
            CheckDecisions,
            approvals=approvals,
            agents=agents,
            catalog=tool_catalog,
            check=check_tool_call,
        ),
        agents=agents,
        schemas=schemas,
        box=secret_box,
        clock=clock,
    )
    decide_approval: providers.Provider[DecideApproval] = providers.Singleton(
        DecideApproval, approvals=approvals, resume_run=resume_run, of_session=decide_gateway_approval
    )
    list_approvals: providers.Provider[ListApprovals] = providers.Singleton(ListApprovals, approvals=approvals)
    stop_run: providers.Provider[StopRun] = providers.Singleton(
        StopRun, runs=runs, queue=run_queue, connections=announced_connections, trace_ended=trace_ended, clock=clock
    )
    cancel_run: providers.Provider[CancelRun] = providers.Singleton(CancelRun, runs=runs, stop_run=stop_run)
    cancel_runs: providers.Provider[CancelRuns] = providers.Singleton(
        CancelRuns,
        unfinished=providers.Singleton(SqlUnfinishedRuns, database=database),
        cancel_run=cancel_run,
        agents=agents,
        servers=servers,
        audit_log=audit_log,
        clock=clock,
        ids=ids,
    )
    token_cache: providers.Provider[TokenCache] = providers.Singleton(storage_assembly.token_cache, row_feed)
    key_standing: providers.Provider[KeyStanding] = providers.Singleton(
        KeyStanding, identities=identities, cache=token_cache, clock=clock
    )
    watch_run: providers.Provider[WatchRun] = providers.Singleton(
        WatchRun, runs=runs, keys=key_standing, wakeups=wakeups, clock=clock, meter=meters
    )
    get_run: providers.Provider[GetRun] = providers.Singleton(GetRun, runs=runs)
    list_runs: providers.Provider[ListRuns] = providers.Singleton(ListRuns, runs=runs)
    get_run_events: providers.Provider[GetRunEvents] = providers.Singleton(GetRunEvents, runs=runs)

    # Threads.
    create_thread: providers.Provider[CreateThread] = providers.Singleton(
        CreateThread, threads=threads, clock=clock, ids=ids
    )
    get_thread: providers.Provider[GetThread] = providers.Singleton(GetThread, threads=threads)
    list_threads: providers.Provider[ListThreads] = providers.Singleton(ListThreads, threads=threads)
    list_messages: providers.Provider[ListMessages] = providers.Singleton(ListMessages, threads=threads)
    append_message: providers.Provider[AppendMessage] = providers.Singleton(
        AppendMessage, threads=threads, clock=clock, ids=ids
    )
    delete_thread: providers.Provider[DeleteThread] = providers.Singleton(
        DeleteThread, threads=threads, clock=clock, ids=ids
    )
    release_thread: providers.Provider[ReleaseThread] = providers.Singleton(
        ReleaseThread, threads=threads, queue=run_queue, clock=clock, ids=ids
    )

    # Sources.
    add_source: providers.Provider[AddSource] = providers.Singleton(AddSource, store=store_source, clock=clock, ids=ids)
    list_sources: providers.Provider[ListSources] = providers.Singleton(ListSources, sources=sources, threads=threads)
    get_source: providers.Provider[GetSource] = providers.Singleton(GetSource, sources=sources)
    read_source: providers.Provider[ReadSource] = providers.Singleton(ReadSource, sources=sources)
    delete_source: providers.Provider[DeleteSource] = providers.Singleton(
        DeleteSource, sources=sources, clock=clock, ids=ids
    )

    # Agents.
    agent_checks: providers.Provider[AgentChecks] = providers.Singleton(
        AgentChecks,
        models=routed_models,
        prices=prices,
        native_tools=tool_catalog,
        servers=servers,
        agents=edited_agents,
        policies=policy_checks,
    )
    create_agent: providers.Provider[CreateAgent] = providers.Singleton(
        CreateAgent, agents=edited_agents, checks=agent_checks, clock=clock, ids=ids
    )
    update_agent: providers.Provider[UpdateAgent] = providers.Singleton(
        UpdateAgent, agents=edited_agents, checks=agent_checks, clock=clock, ids=ids
    )
    get_agent: providers.Provider[GetAgent] = providers.Singleton(GetAgent, agents=edited_agents)
    list_agents: providers.Provider[ListAgents] = providers.Singleton(ListAgents, agents=agents)
    name_agents: providers.Provider[NameAgents] = providers.Singleton(NameAgents, agents=agents)
    list_agent_versions: providers.Provider[ListAgentVersions] = providers.Singleton(ListAgentVersions, agents=agents)
    delete_agent: providers.Provider[DeleteAgent] = providers.Singleton(
        DeleteAgent, agents=edited_agents, clock=clock, ids=ids
    )

    # MCP servers.
    mcp_installer: providers.Provider[McpInstaller] = providers.Singleton(
        mcp_assembly.mcp_installer,
        home=home,
        directories=install_directories,
        node=node_runtime,
        launches=server_launches,
        clock=clock,
        ids=ids,
    )
    server_installs: providers.Provider[ServerInstalls] = providers.Singleton(
        ServerInstalls,
        installer=mcp_installer,
        servers=servers,
        connections=announced_connections,
        audit_log=audit_log,
        clock=clock,
        ids=ids,
    )
    server_statuses: providers.Provider[ServerStatuses] = providers.Singleton(
        ServerStatuses,
        connections=connections,
        installs=server_installs,
        installer=mcp_installer,
        reports=state_reporter,
    )
    install_mcp_server: providers.Provider[InstallMcpServer] = providers.Singleton(
        InstallMcpServer,
        servers=edited_servers,
        installs=server_installs,
        installer=mcp_installer,
        statuses=server_statuses,
    )
    uninstall_mcp_server: providers.Provider[UninstallMcpServer] = providers.Singleton(
        UninstallMcpServer,
        servers=edited_servers,
        installs=server_installs,
        statuses=server_statuses,
        connections=announced_connections,
        clock=clock,
        ids=ids,
    )
    register_mcp_server: providers.Provider[RegisterMcpServer] = providers.Singleton(
        RegisterMcpServer, servers=edited_servers, outbound=egress_policy, clock=clock, ids=ids
    )
    import_mcp_servers: providers.Provider[ImportMcpServers] = providers.Singleton(
        ImportMcpServers, register=register_mcp_server
    )
    preview_mcp_import: providers.Provider[PreviewMcpImport] = providers.Singleton(
        PreviewMcpImport, servers=edited_servers, outbound=egress_policy
    )
    update_mcp_server: providers.Provider[UpdateMcpServer] = providers.Singleton(
        UpdateMcpServer,
        servers=edited_servers,
        connections=announced_connections,
        outbound=egress_policy,
        clock=clock,
        ids=ids,
    )
    get_mcp_server: providers.Provider[GetMcpServer] = providers.Singleton(GetMcpServer, servers=edited_servers)
    list_mcp_servers: providers.Provider[ListMcpServers] = providers.Singleton(ListMcpServers, servers=servers)
    delete_mcp_server: providers.Provider[DeleteMcpServer] = providers.Singleton(
        DeleteMcpServer,
        servers=edited_servers,
        connections=announced_connections,
        installs=server_installs,
        clock=clock,
        ids=ids,
    )
    test_mcp_server: providers.Provider[TestMcpServer] = providers.Singleton(
        TestMcpServer,
        servers=edited_servers,
        server_catalogs=server_catalogs,
        switch=mcp_switch,
        connections=connections,
        audit_log=audit_log,
        clock=clock,
        ids=ids,
    )
    refresh_mcp_server: providers.Provider[RefreshMcpServer] = providers.Singleton(
        RefreshMcpServer, servers=edited_servers, server_catalogs=server_catalogs, switch=mcp_switch
    )
    approve_definition: providers.Provider[ApproveDefinition] = providers.Singleton(
        ApproveDefinition, servers=edited_servers, catalogs=edited_catalogs, clock=clock, ids=ids
    )
    disconnect_mcp_server: providers.Provider[DisconnectMcpServer] = providers.Singleton(
        DisconnectMcpServer, servers=edited_servers, connections=announced_connections, statuses=server_statuses
    )
    get_mcp_server_tools: providers.Provider[GetMcpServerTools] = providers.Singleton(
        GetMcpServerTools, servers=edited_servers, catalogs=edited_catalogs
    )
    get_mcp_server_status: providers.Provider[GetMcpServerStatus] = providers.Singleton(
        GetMcpServerStatus, servers=edited_servers, statuses=server_statuses
    )
    get_mcp_server_logs: providers.Provider[GetMcpServerLogs] = providers.Singleton(
        GetMcpServerLogs, servers=servers, connections=connections, installer=mcp_installer
    )

    authorize_mcp_server: providers.Provider[AuthorizeMcpServer] = providers.Singleton(
        AuthorizeMcpServer, servers=edited_servers, authorizer=oauth
    )
    finish_mcp_authorization: providers.Provider[FinishMcpAuthorization] = providers.Singleton(
        FinishMcpAuthorization,
        authorizer=oauth,
        connections=announced_connections,
        audit_log=audit_log,
        clock=clock,
        ids=ids,
    )
    describe_oauth_client: providers.Provider[DescribeOAuthClient] = providers.Singleton(
        DescribeOAuthClient, address=public_address
    )

    # Identity and audit.
    get_organization: providers.Provider[GetOrganization] = providers.Singleton(
        GetOrganization, organizations=edited_organizations
    )
    update_organization: providers.Provider[UpdateOrganization] = providers.Singleton(
        UpdateOrganization, organizations=edited_organizations, policies=policy_checks, clock=clock, ids=ids
    )
    create_organization: providers.Provider[CreateOrganization] = providers.Singleton(
        CreateOrganization, organizations=organizations, policies=policy_checks, clock=clock, ids=ids
    )
    create_organization_key: providers.Provider[CreateOrganizationKey] = providers.Singleton(
        CreateOrganizationKey, organizations=organizations, clock=clock, ids=ids
    )
    list_organizations: providers.Provider[ListOrganizations] = providers.Singleton(
        ListOrganizations, organizations=organizations
    )
    key_uses: providers.Provider[KeyUses] = providers.Singleton(KeyUses, identities=identities)
    key_limits: providers.Provider[KeyLimits] = providers.Singleton(
        KeyLimits, every=settings.provided.rate_limit_of_keys, clock=clock
    )
    authenticate: providers.Provider[Authenticate] = providers.Singleton(
        Authenticate,
        identities=identities,
        cache=token_cache,
        limits=key_limits,
        uses=key_uses,
        clock=clock,
    )
    bootstrap_identity: providers.Provider[BootstrapIdentity] = providers.Singleton(
        BootstrapIdentity, identities=identities, first_key=home, clock=clock, ids=ids
    )
    create_api_key: providers.Provider[CreateApiKey] = providers.Singleton(
        CreateApiKey, identities=identities, clock=clock, ids=ids
    )
    list_api_keys: providers.Provider[ListApiKeys] = providers.Singleton(
        ListApiKeys, identities=identities, uses=key_uses
    )
    revoke_api_key: providers.Provider[RevokeApiKey] = providers.Singleton(
        RevokeApiKey, identities=identities, cache=token_cache, clock=clock, ids=ids
    )
    list_audit_events: providers.Provider[ListAuditEvents] = providers.Singleton(ListAuditEvents, audit_log=audit_log)
    export_audit_events: providers.Provider[ExportAuditEvents] = providers.Singleton(
        ExportAuditEvents, chain=audit_chain
    )
    seal_audit: providers.Provider[SealAudit] = providers.Singleton(
        SealAudit, seals=audit_seals, keys=seal_keys, clock=clock
    )
    verify_audit_chain: providers.Provider[VerifyAuditChain] = providers.Singleton(
        VerifyAuditChain, chain=audit_chain, entries=audit_seals, sealing=seal_audit, keys=seal_keys, clock=clock
    )
    prune_audit: providers.Provider[PruneAudit] = providers.Singleton(
        PruneAudit, seals=audit_seals, keys=seal_keys, clock=clock, ids=ids
    )

    # The gateway.
    gateway_ledger: providers.Provider[GatewayLedger] = providers.Singleton(SqlGatewayLedger, database=database)
    gateway_access: providers.Provider[GatewayAccess] = providers.Singleton(
        storage_assembly.gateway_access,
        row_feed,
        sessions=gateway_sessions,
        agents=agents,
        authenticate=authenticate,
        limits=key_limits,
        clock=clock,
        wakeups=wakeups,
    )
    client_handshakes: providers.Provider[ClientHandshakes] = providers.Singleton(
        storage_assembly.client_handshakes,
        row_feed,
        clients=providers.Singleton(SqlGatewayClientStore, database=database),
        box=secret_box,
        clock=clock,
        ids=ids,
    )
    workflow_runs: providers.Provider[SqlWorkflowRunStore] = providers.Singleton(
        SqlWorkflowRunStore, database=database, wakeups=wakeups
    )
    open_gateway_session: providers.Provider[OpenGatewaySession] = providers.Singleton(
        OpenGatewaySession,
        sessions=gateway_sessions,
        agents=agents,
        runs=runs,
        tool_nodes=providers.Singleton(ToolNodes, runs=workflow_runs),
        address=public_address,
        clock=clock,
        ids=ids,
    )
    list_gateway_sessions: providers.Provider[ListGatewaySessions] = providers.Singleton(
        ListGatewaySessions, sessions=gateway_sessions
    )
    revoke_gateway_session: providers.Provider[RevokeGatewaySession] = providers.Singleton(
        RevokeGatewaySession,
        sessions=gateway_sessions,
        access=gateway_access,
        connections=announced_connections,
        wakeups=wakeups,
        clock=clock,
        ids=ids,
    )
    gateway_notes: providers.Provider[SqlGatewayNotes] = providers.Singleton(SqlGatewayNotes, database=database)
    settle_lost_calls: providers.Provider[SettleLostCalls] = providers.Singleton(
        SettleLostCalls, calls=gateway_approvals, ledger=gateway_ledger, notes=gateway_notes, clock=clock
    )
    release_ended_sessions: providers.Provider[ReleaseEndedSessions] = providers.Singleton(
        ReleaseEndedSessions, access=gateway_access, sessions=gateway_sessions, connections=connections, clock=clock
    )
    list_gateway_tools: providers.Provider[ListGatewayTools] = providers.Singleton(
        ListGatewayTools, toolbox=gateway_toolbox
    )
    request_states: providers.Provider[RequestStates] = providers.Singleton(RequestStates, box=secret_box)
    ask_client: providers.Provider[AskClient] = providers.Singleton(
        AskClient,
        notes=gateway_notes,
        wakeups=wakeups,
        box=secret_box,
        schemas=schemas,
        clock=clock,
        ids=ids,
        patience=Patience(),
    )
    held_calls: providers.Provider[HeldCalls] = providers.Singleton(
        HeldCalls,
        notes=gateway_notes,
        states=request_states,
        wakeups=wakeups,
        box=secret_box,
        schemas=schemas,
        clock=clock,
        ids=ids,
    )
    answer_gateway_question: providers.Provider[AnswerGatewayQuestion] = providers.Singleton(
        AnswerGatewayQuestion, notes=gateway_notes, wakeups=wakeups, box=secret_box, schemas=schemas, clock=clock
    )
    request_cancellations: providers.Provider[RequestCancellations] = providers.Singleton(
        RequestCancellations, notes=gateway_notes, wakeups=wakeups, clock=clock
    )
    clear_gateway_call: providers.Provider[ClearGatewayCall] = providers.Singleton(
        ClearGatewayCall,
        asking=gateway_approvals,
        approvals=approvals,
        check=check_tool_call,
        wakeups=wakeups,
        states=request_states,
        clock=clock,
        ids=ids,
        holds=Holds(),
        telling=providers.Singleton(TellOfApproval, asking=ask_client, approvals=approvals, wakeups=wakeups),
    )
    call_agent: providers.Provider[CallAgent] = providers.Singleton(
        CallAgent, start_run=start_run, cancel_run=cancel_run, runs=runs, wakeups=wakeups, clock=clock
    )
    halt_gateway_session: providers.Provider[HaltGatewaySession] = providers.Singleton(
        HaltGatewaySession, ledger=gateway_ledger, access=gateway_access, cancel_run=cancel_run
    )
    settle_gateway_call: providers.Provider[SettleGatewayCall] = providers.Singleton(
        SettleGatewayCall, ledger=gateway_ledger, halting=halt_gateway_session, tracer=tracer, clock=clock
    )
    call_gateway_tool: providers.Provider[CallGatewayTool] = providers.Singleton(
        CallGatewayTool,
        toolbox=gateway_toolbox,
        check=check_tool_call,
        clearing=clear_gateway_call,
        sending=providers.Singleton(
            SendGatewayCall,
            execute_tool=providers.Singleton(
                ExecuteTool,
                native_tools=native_tools,
                execute_mcp_tool=execute_mcp_tool,
                agents=call_agent,
                components=component_tools,
            ),
            asking=ask_client,
            held=held_calls,
            settling=settle_gateway_call,
            tracer=tracer,
            clock=clock,
        ),
        settling=settle_gateway_call,
        held=held_calls,
        states=request_states,
        ledger=gateway_ledger,
        clock=clock,
        ids=ids,
    )
    gateway_tasks: providers.Provider[GatewayTasks] = providers.Singleton(
        GatewayTasks,
        call_tool=call_gateway_tool,
        sessions=gateway_sessions,
        toolbox=gateway_toolbox,
        runs=runs,
        asking=gateway_approvals,
        approvals=approvals,
        ledger=gateway_ledger,
        halting=halt_gateway_session,
        cancel_run=cancel_run,
        wakeups=wakeups,
        task_ids=providers.Singleton(TaskIds, box=secret_box),
        clock=clock,
        ids=ids,
    )
    content_sources: providers.Provider[ContentSources] = providers.Singleton(
        ContentSources, toolbox=gateway_toolbox, servers=servers, contents=connections, switch=mcp_switch
    )
    check_subscription: providers.Provider[CheckSubscription] = providers.Singleton(
        CheckSubscription, sources=content_sources, check=check_tool_call
    )
    follow_changes: providers.Provider[FollowChanges] = providers.Singleton(
        FollowChanges,
        followers=followers,
        toolbox=gateway_toolbox,
        sources=content_sources,
        check=check_subscription,
        handshakes=client_handshakes,
        resources=resource_watches,
        wakeups=wakeups,
        clock=clock,
    )
    list_gateway_contents: providers.Provider[ListGatewayContents] = providers.Singleton(
        ListGatewayContents, sources=content_sources
    )
    read_gateway_content: providers.Provider[ReadGatewayContent] = providers.Singleton(
        ReadGatewayContent,
        sources=content_sources,
        contents=connections,
        check=check_tool_call,
        ledger=gateway_ledger,
        halting=halt_gateway_session,
        clock=clock,
        ids=ids,
    )

    retention: providers.Provider[RetentionStore] = providers.Singleton(SqlRetentionStore, database=database)
    sweep_lock: providers.Provider[SweepLock] = providers.Singleton(storage_assembly.sweep_lock, settings)
    sweep_house: providers.Provider[SweepHouse] = providers.Singleton(
        SweepHouse,
        organizations=organizations,
        retention=retention,
        apply_retention=providers.Singleton(
            ApplyRetention,
            retention=retention,
            prune_audit=prune_audit,
            audit_log=audit_log,
            clock=clock,
            ids=ids,
        ),
        lock=sweep_lock,
        clock=clock,
    )
    get_usage: providers.Provider[GetUsage] = providers.Singleton(GetUsage, reports=usage_store)

    # Model providers.
    create_model_provider: providers.Provider[CreateModelProvider] = providers.Singleton(
        CreateModelProvider, providers=edited_model_provider_store, outbound=egress_policy, clock=clock, ids=ids
    )
    update_model_provider: providers.Provider[UpdateModelProvider] = providers.Singleton(
        UpdateModelProvider, providers=edited_model_provider_store, outbound=egress_policy, clock=clock, ids=ids
    )
    get_model_provider: providers.Provider[GetModelProvider] = providers.Singleton(
        GetModelProvider, providers=edited_model_provider_store
    )
    list_model_providers: providers.Provider[ListModelProviders] = providers.Singleton(
        ListModelProviders, providers=model_provider_store
    )
    delete_model_provider: providers.Provider[DeleteModelProvider] = providers.Singleton(
        DeleteModelProvider, providers=edited_model_provider_store, clock=clock, ids=ids
    )

    # Secrets.
    set_secret: providers.Provider[SetSecret] = providers.Singleton(
        SetSecret, secrets=secrets, forget_server=announced_connections.provided.forget, clock=clock, ids=ids
    )
    list_secrets: providers.Provider[ListSecrets] = providers.Singleton(ListSecrets, secrets=secrets)
    delete_secret: providers.Provider[DeleteSecret] = providers.Singleton(
        DeleteSecret, secrets=secrets, clock=clock, ids=ids
    )
    workflows: providers.Provider[WorkflowStore] = providers.Singleton(SqlWorkflowStore, database=database)
    workflow_checks: providers.Provider[WorkflowChecks] = providers.Singleton(
        WorkflowChecks,
        expressions=expressions,
        schemas=schemas,
        agents=agents,
        servers=servers,
        secrets=secrets,
        outbound=egress_policy,
    )
    create_workflow: providers.Provider[CreateWorkflow] = providers.Singleton(
        CreateWorkflow, workflows=workflows, checks=workflow_checks, clock=clock, ids=ids
    )
    validate_workflow: providers.Provider[ValidateWorkflow] = providers.Singleton(
        ValidateWorkflow, checks=workflow_checks
    )
    update_workflow: providers.Provider[UpdateWorkflow] = providers.Singleton(
        UpdateWorkflow, workflows=workflows, checks=workflow_checks, clock=clock, ids=ids
    )
    get_workflow: providers.Provider[GetWorkflow] = providers.Singleton(GetWorkflow, workflows=workflows)
    list_workflows: providers.Provider[ListWorkflows] = providers.Singleton(ListWorkflows, workflows=workflows)
    list_workflow_versions: providers.Provider[ListWorkflowVersions] = providers.Singleton(
        ListWorkflowVersions, workflows=workflows
    )
    delete_workflow: providers.Provider[DeleteWorkflow] = providers.Singleton(
        DeleteWorkflow, workflows=workflows, clock=clock, ids=ids
    )

    workflow_inputs: providers.Provider[BoundInputs] = providers.Singleton(
        BoundInputs, secrets=secrets, expressions=expressions
    )
    tool_step: providers.Provider[ToolStep] = providers.Singleton(
        ToolStep,
        inputs=workflow_inputs,
        servers=servers,
        catalogs=warm_catalogs,
        connections=announced_connections,
        switch=mcp_switch,
        box=secret_box,
        clock=clock,
    )
    agent_step: providers.Provider[AgentStep] = providers.Singleton(
        AgentStep,
        start_run=start_run,
        runs=runs,
        stop_run=stop_run,
        wakeups=wakeups,
        expressions=expressions,
        clock=clock,
    )
    advance_workflow: providers.Provider[AdvanceWorkflow] = providers.Singleton(
        AdvanceWorkflow,
        runs=workflow_runs,
        journal=workflow_runs,
        executors=providers.Singleton(
            workflows_assembly.executors,
            providers.Singleton(LocalSteps, expressions=expressions, clock=clock),
            providers.Singleton(HttpStep, requests=workflow_requests, inputs=workflow_inputs),
            providers.Singleton(
                McpStep,
                catalog=tool_catalog,
                check=check_tool_call,
                execute=execute_mcp_tool,
                expressions=expressions,
                clock=clock,
            ),
        ),
        agents=agent_step,
        tools=tool_step,
        wakeups=wakeups,
        worker_id=worker_id,
        clock=clock,
        ids=ids,
        tracer=tracer,
    )
    workflow_drivers: providers.Provider[WorkflowDrivers] = providers.Singleton(
        WorkflowDrivers,
        advance=advance_workflow.provided.execute,
        journal=workflow_runs,
        queue=run_queue,
        wakeups=wakeups,
        clock=clock,
    )
    start_workflow_run: providers.Provider[StartWorkflowRun] = providers.Singleton(
        StartWorkflowRun,
        workflows=workflows,
        runs=workflow_runs,
        secrets=secrets,
        schemas=schemas,
        queue=run_queue,
        clock=clock,
        ids=ids,
    )
    resume_workflow_run: providers.Provider[ResumeWorkflowRun] = providers.Singleton(
        ResumeWorkflowRun,
        runs=workflow_runs,
        resume_run=resume_run,
        schemas=schemas,
        queue=run_queue,
        clock=clock,
        ids=ids,
    )
    stop_workflow_run: providers.Provider[StopWorkflowRun] = providers.Singleton(
        StopWorkflowRun,
        runs=workflow_runs,
        queue=run_queue,
        tools=tool_step,
        clock=clock,
        ids=ids,
        tracer=tracer,
    )
    get_workflow_run: providers.Provider[GetWorkflowRun] = providers.Singleton(GetWorkflowRun, runs=workflow_runs)
    list_workflow_runs: providers.Provider[ListWorkflowRuns] = providers.Singleton(ListWorkflowRuns, runs=workflow_runs)
    watch_workflow_run: providers.Provider[WatchWorkflowRun] = providers.Singleton(
        WatchWorkflowRun, runs=workflow_runs, keys=key_standing, wakeups=wakeups
    )

    rotate_secret_key: providers.Provider[RotateSecretKey] = providers.Singleton(
        RotateSecretKey,
        vault=providers.Singleton(SqlSecretVault, database=database, box=secret_box),
        key_ring=providers.Singleton(storage_assembly.key_ring, settings, secret_box),
        audit_log=audit_log,
        clock=clock,
        ids=ids,
    )
