"""Everything the HTTP interface calls, as one bundle that the container fills."""

from dataclasses import dataclass
from typing import Protocol

from application.agents.create_agent import CreateAgent
from application.agents.delete_agent import DeleteAgent
from application.agents.name_agents import NameAgents
from application.agents.queries import GetAgent, ListAgents, ListAgentVersions
from application.agents.update_agent import UpdateAgent
from application.approvals.decide_approval import DecideApproval
from application.approvals.queries import ListApprovals
from application.audit.export_audit_events import ExportAuditEvents
from application.audit.queries import ListAuditEvents
from application.audit.verify_audit_chain import VerifyAuditChain
from application.gateway.calls.answer_question import AnswerGatewayQuestion
from application.gateway.calls.call_tool import CallGatewayTool
from application.gateway.calls.request_cancellations import RequestCancellations
from application.gateway.contents.list_contents import ListGatewayContents
from application.gateway.contents.read_content import ReadGatewayContent
from application.gateway.sessions.client_handshakes import ClientHandshakes
from application.gateway.sessions.gateway_access import GatewayAccess
from application.gateway.sessions.open_session import OpenGatewaySession
from application.gateway.sessions.queries import ListGatewaySessions
from application.gateway.sessions.revoke_session import RevokeGatewaySession
from application.gateway.subscriptions.check_subscription import CheckSubscription
from application.gateway.subscriptions.follow_changes import FollowChanges
from application.gateway.tasks.gateway_tasks import GatewayTasks
from application.gateway.tools.list_tools import ListGatewayTools
from application.identity.authenticate import Authenticate
from application.identity.create_api_key import CreateApiKey
from application.identity.create_organization import CreateOrganization
from application.identity.create_organization_key import CreateOrganizationKey
from application.identity.queries import GetOrganization, ListApiKeys, ListOrganizations
from application.identity.revoke_api_key import RevokeApiKey
from application.identity.update_organization import UpdateOrganization
from application.mcp.approve_definition import ApproveDefinition
from application.mcp.authorize_mcp_server import AuthorizeMcpServer
from application.mcp.check_mcp_server import CheckMcpServer
from application.mcp.delete_mcp_server import DeleteMcpServer
from application.mcp.disconnect_mcp_server import DisconnectMcpServer
from application.mcp.finish_mcp_authorization import FinishMcpAuthorization
from application.mcp.import_mcp_servers import ImportMcpServers
from application.mcp.install_mcp_server import InstallMcpServer
from application.mcp.oauth_client import DescribeOAuthClient, PublicAddress
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
from application.mcp.uninstall_mcp_server import UninstallMcpServer
from application.mcp.update_mcp_server import UpdateMcpServer
from application.model_providers.create_model_provider import CreateModelProvider
from application.model_providers.delete_model_provider import DeleteModelProvider
from application.model_providers.queries import GetModelProvider, ListModelProviders
from application.model_providers.update_model_provider import UpdateModelProvider
from application.models.ports import PriceTable
from application.runs.cancel_run import CancelRun
from application.runs.cancel_runs import CancelRuns
from application.runs.queries import GetRun, GetRunEvents, ListRuns
from application.runs.resume_run import ResumeRun
from application.runs.start_run import StartRun
from application.runs.watch_run import WatchRun
from application.schedules.create_schedule import CreateSchedule
from application.schedules.delete_schedule import DeleteSchedule
from application.schedules.queries import GetSchedule, ListSchedules
from application.schedules.update_schedule import UpdateSchedule
from application.secrets.delete_secret import DeleteSecret
from application.secrets.queries import ListSecrets
from application.secrets.rotate_secret_key import RotateSecretKey
from application.secrets.set_secret import SetSecret
from application.sources.add_source import AddSource
from application.sources.delete_source import DeleteSource
from application.sources.queries import GetSource, ListSources, ReadSource
from application.system.readiness import Obstacle
from application.threads.append_message import AppendMessage
from application.threads.create_thread import CreateThread
from application.threads.delete_thread import DeleteThread
from application.threads.queries import GetThread, ListMessages, ListThreads
from application.threads.release_thread import ReleaseThread
from application.tools.explain_agent import ExplainAgent
from application.tools.explain_tool import ExplainTool
from application.tools.list_tools import ListTools
from application.tools.review_tool_policies import ReviewToolPolicies
from application.tracing.ports import TraceAddresses
from application.usage.queries import GetUsage
from application.webhooks.create_webhook_key import CreateWebhookKey
from application.webhooks.queries import ListWebhookDeliveries
from application.webhooks.retry_webhook_delivery import RetryWebhookDelivery
from application.workflows.create_workflow import CreateWorkflow
from application.workflows.delete_workflow import DeleteWorkflow
from application.workflows.queries import GetWorkflow, ListWorkflows, ListWorkflowVersions
from application.workflows.resume_workflow_run import ResumeWorkflowRun
from application.workflows.run_queries import GetWorkflowRun, ListWorkflowRuns, WatchWorkflowRun
from application.workflows.start_workflow_run import StartWorkflowRun
from application.workflows.stop_workflow_run import StopWorkflowRun
from application.workflows.update_workflow import UpdateWorkflow
from application.workflows.validate_workflow import ValidateWorkflow


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class UseCases:
    """One instance each, shared by all requests. A handler asks for one by the name of its field."""

    authenticate: Authenticate

    public_address: PublicAddress
    trace_addresses: TraceAddresses
    prices: PriceTable
    gateway_access: GatewayAccess
    client_handshakes: ClientHandshakes
    check_subscription: CheckSubscription
    follow_changes: FollowChanges
    list_gateway_tools: ListGatewayTools
    call_gateway_tool: CallGatewayTool
    gateway_tasks: GatewayTasks
    answer_gateway_question: AnswerGatewayQuestion
    request_cancellations: RequestCancellations
    list_gateway_contents: ListGatewayContents
    read_gateway_content: ReadGatewayContent
    open_gateway_session: OpenGatewaySession
    list_gateway_sessions: ListGatewaySessions
    revoke_gateway_session: RevokeGatewaySession

    create_agent: CreateAgent
    update_agent: UpdateAgent
    get_agent: GetAgent
    list_agents: ListAgents
    name_agents: NameAgents
    list_agent_versions: ListAgentVersions
    delete_agent: DeleteAgent

    register_mcp_server: RegisterMcpServer
    update_mcp_server: UpdateMcpServer
    get_mcp_server: GetMcpServer
    list_mcp_servers: ListMcpServers
    delete_mcp_server: DeleteMcpServer
    check_mcp_server: CheckMcpServer
    refresh_mcp_server: RefreshMcpServer
    install_mcp_server: InstallMcpServer
    uninstall_mcp_server: UninstallMcpServer
    import_mcp_servers: ImportMcpServers
    preview_mcp_import: PreviewMcpImport
    disconnect_mcp_server: DisconnectMcpServer
    authorize_mcp_server: AuthorizeMcpServer
    finish_mcp_authorization: FinishMcpAuthorization
    describe_oauth_client: DescribeOAuthClient
    get_mcp_server_tools: GetMcpServerTools
    approve_definition: ApproveDefinition
    get_mcp_server_status: GetMcpServerStatus
    get_mcp_server_logs: GetMcpServerLogs

    list_tools: ListTools
    explain_tool: ExplainTool
    explain_agent: ExplainAgent
    review_tool_policies: ReviewToolPolicies

    create_thread: CreateThread
    get_thread: GetThread
    list_threads: ListThreads
    list_messages: ListMessages
    append_message: AppendMessage
    delete_thread: DeleteThread

    add_source: AddSource
    list_sources: ListSources
    get_source: GetSource
    read_source: ReadSource
    delete_source: DeleteSource
    release_thread: ReleaseThread

    start_run: StartRun
    resume_run: ResumeRun
    cancel_run: CancelRun
    list_approvals: ListApprovals
    decide_approval: DecideApproval
    cancel_runs: CancelRuns
    watch_run: WatchRun
    get_run: GetRun
    list_runs: ListRuns
    get_run_events: GetRunEvents

    get_organization: GetOrganization
    update_organization: UpdateOrganization
    create_organization: CreateOrganization
    create_organization_key: CreateOrganizationKey
    list_organizations: ListOrganizations

    list_audit_events: ListAuditEvents
    export_audit_events: ExportAuditEvents
    verify_audit_chain: VerifyAuditChain
    get_usage: GetUsage

    list_webhook_deliveries: ListWebhookDeliveries
    retry_webhook_delivery: RetryWebhookDelivery
    create_webhook_key: CreateWebhookKey

    create_api_key: CreateApiKey
    list_api_keys: ListApiKeys
    revoke_api_key: RevokeApiKey

    create_schedule: CreateSchedule
    list_schedules: ListSchedules
    get_schedule: GetSchedule
    update_schedule: UpdateSchedule
    delete_schedule: DeleteSchedule

    set_secret: SetSecret
    list_secrets: ListSecrets
    delete_secret: DeleteSecret
    rotate_secret_key: RotateSecretKey

    create_workflow: CreateWorkflow
    validate_workflow: ValidateWorkflow
    update_workflow: UpdateWorkflow
    get_workflow: GetWorkflow
    list_workflows: ListWorkflows
    list_workflow_versions: ListWorkflowVersions
    delete_workflow: DeleteWorkflow
    start_workflow_run: StartWorkflowRun
    resume_workflow_run: ResumeWorkflowRun
    stop_workflow_run: StopWorkflowRun
    get_workflow_run: GetWorkflowRun
    list_workflow_runs: ListWorkflowRuns
    watch_workflow_run: WatchWorkflowRun

    create_model_provider: CreateModelProvider
    list_model_providers: ListModelProviders
    get_model_provider: GetModelProvider
    update_model_provider: UpdateModelProvider
    delete_model_provider: DeleteModelProvider


class Readiness(Protocol):
    """Whether this process can serve requests now."""

    async def problems(self) -> tuple[Obstacle, ...]:
        """What is not ready, in bounded time; empty when all is."""
        ...
