"""Providers of the gateway: sessions, and the requests of their clients."""

from dependency_injector import containers, providers

from application.gateway.authorization.check_authorization import CheckAuthorization
from application.gateway.authorization.describe_authorization import DescribeAuthorization
from application.gateway.authorization.find_client import FindOAuthClient
from application.gateway.authorization.grant_access import GrantAccess
from application.gateway.authorization.issued_tokens import TokenIssuer
from application.gateway.authorization.ports import ClientDocuments, ClientGrantStore
from application.gateway.authorization.redeem_code import RedeemCode
from application.gateway.authorization.refresh_access import RefreshAccess
from application.gateway.authorization.registrations import ClientRegistrations
from application.gateway.authorization.revoke_token import RevokeClientToken
from application.gateway.calls.answer_question import AnswerGatewayQuestion
from application.gateway.calls.ask_client import AnswerLimits, AskClient
from application.gateway.calls.call_tool import CallGatewayTool
from application.gateway.calls.clear_call import ApprovalWaits, ClearGatewayCall
from application.gateway.calls.decide_gateway_approval import DecideGatewayApproval
from application.gateway.calls.notify_of_approval import NotifyOfApproval
from application.gateway.calls.pending_calls import PendingCalls
from application.gateway.calls.request_cancellations import RequestCancellations
from application.gateway.calls.request_states import RequestStates
from application.gateway.calls.send_call import SendGatewayCall
from application.gateway.calls.settle_call import SettleGatewayCall
from application.gateway.calls.settle_lost_calls import SettleLostCalls
from application.gateway.calls.try_tool import TryTool
from application.gateway.contents.content_sources import ContentSources
from application.gateway.contents.list_contents import ListGatewayContents
from application.gateway.contents.list_server_contents import ListServerContents
from application.gateway.contents.read_content import ReadGatewayContent
from application.gateway.contents.read_server_content import ReadServerContent
from application.gateway.ports import GatewayClientStore, GatewayLedger, GatewaySessionStore
from application.gateway.sessions.client_handshakes import ClientHandshakes
from application.gateway.sessions.gateway_access import GatewayAccess
from application.gateway.sessions.halt_session import HaltGatewaySession
from application.gateway.sessions.open_session import OpenGatewaySession
from application.gateway.sessions.queries import ListGatewaySessions
from application.gateway.sessions.release_ended_sessions import ReleaseEndedSessions
from application.gateway.sessions.revoke_session import RevokeGatewaySession
from application.gateway.subscriptions.check_subscription import CheckSubscription
from application.gateway.subscriptions.subscribe_to_changes import SubscribeToChanges
from application.gateway.tasks.gateway_tasks import GatewayTasks
from application.gateway.tasks.task_ids import TaskIds
from application.gateway.tasks.task_results import TaskResults
from application.gateway.tasks.waiting_tasks import WaitingTasks
from application.gateway.tools.gateway_toolset import GatewayToolsets
from application.gateway.tools.list_tools import ListGatewayTools
from application.gateway.tools.tool_nodes import ToolNodes
from application.runs.call_agent import CallAgent
from application.tools.execute_tool import ExecuteTool
from infrastructure.assembly import storage as storage_assembly
from infrastructure.containers.identity import Identity
from infrastructure.containers.mcp_servers import McpServers
from infrastructure.containers.platform import Platform
from infrastructure.containers.runs import Runs
from infrastructure.containers.storage import Storage
from infrastructure.containers.tools import Tools
from infrastructure.containers.wiring import Singletons
from infrastructure.identity.client_documents import HttpClientDocuments
from infrastructure.persistence.gateway.approvals import SqlGatewayApprovals
from infrastructure.persistence.gateway.client_grants import SqlClientGrantStore
from infrastructure.persistence.gateway.clients import SqlGatewayClientStore
from infrastructure.persistence.gateway.ledger import SqlGatewayLedger
from infrastructure.persistence.gateway.notes import SqlGatewayNotes
from infrastructure.persistence.gateway.store import SqlGatewaySessionStore

singleton = Singletons(Platform, Storage)


class Gateway(containers.DeclarativeContainer):
    gateway_ledger: providers.Provider[GatewayLedger] = singleton(SqlGatewayLedger)
    gateway_sessions: providers.Provider[GatewaySessionStore] = singleton(SqlGatewaySessionStore)
    gateway_toolsets = singleton(
        GatewayToolsets,
        catalog=Tools.toolset_builder,
        agents_as_tools=Tools.agents_as_tools,
        rows=singleton(storage_assembly.gateway_toolset_rows, Platform.row_notifications),
        search_threshold=Platform.settings.provided.gateway_tool_search_threshold,
    )
    gateway_approvals = singleton(SqlGatewayApprovals)
    gateway_notes = singleton(SqlGatewayNotes)
    gateway_access: providers.Provider[GatewayAccess] = singleton(
        storage_assembly.gateway_access,
        Platform.row_notifications,
        address=Platform.public_address,
        external=Platform.settings.provided.gateway_authorization_server,
        sessions=gateway_sessions,
        authenticate=Identity.authenticate,
        limits=Identity.key_limits,
    )
    gateway_clients: providers.Provider[GatewayClientStore] = singleton(SqlGatewayClientStore)
    client_handshakes: providers.Provider[ClientHandshakes] = singleton(
        storage_assembly.client_handshakes, Platform.row_notifications, clients=gateway_clients, box=Platform.secret_box
    )
    open_gateway_session = singleton(
        OpenGatewaySession,
        sessions=gateway_sessions,
        tool_nodes=singleton(ToolNodes, runs=Storage.workflow_runs),
        address=Platform.public_address,
    )
    list_gateway_sessions = singleton(ListGatewaySessions, sessions=gateway_sessions)
    decide_gateway_approval = singleton(
        DecideGatewayApproval,
        asking=gateway_approvals,
        sessions=gateway_sessions,
        toolsets=gateway_toolsets,
        check=Tools.check_tool_call,
        deciders=Identity.deciders,
        consents=Identity.consents,
    )
    revoke_gateway_session = singleton(
        RevokeGatewaySession,
        sessions=gateway_sessions,
        access=gateway_access,
        connections=McpServers.announced_connections,
    )
    client_grants: providers.Provider[ClientGrantStore] = singleton(SqlClientGrantStore)
    client_documents: providers.Provider[ClientDocuments] = singleton(HttpClientDocuments, http=Tools.workflow_http)
    client_registrations = singleton(ClientRegistrations, grants=client_grants, box=Platform.secret_box)
    describe_authorization = singleton(
        DescribeAuthorization,
        address=Platform.public_address,
        external=Platform.settings.provided.gateway_authorization_server,
    )
    check_authorization = singleton(
        CheckAuthorization,
        find_client=singleton(FindOAuthClient, documents=client_documents, registrations=client_registrations),
        address=Platform.public_address,
        external=Platform.settings.provided.gateway_authorization_server,
    )
    grant_access = singleton(GrantAccess, check_authorization=check_authorization, grants=client_grants)
    token_issuer = singleton(
        TokenIssuer,
        grants=client_grants,
        access=gateway_access,
        revoke_session=revoke_gateway_session,
        external=Platform.settings.provided.gateway_authorization_server,
    )
    redeem_code = singleton(RedeemCode, grants=client_grants, tokens=token_issuer)
    refresh_access = singleton(RefreshAccess, grants=client_grants, tokens=token_issuer)
    revoke_client_token = singleton(RevokeClientToken, grants=client_grants, tokens=token_issuer)
    settle_lost_calls = singleton(SettleLostCalls, calls=gateway_approvals, ledger=gateway_ledger, notes=gateway_notes)
    release_ended_sessions = singleton(
        ReleaseEndedSessions, access=gateway_access, sessions=gateway_sessions, connections=McpServers.connections
    )
    list_gateway_tools = singleton(ListGatewayTools, toolsets=gateway_toolsets)
    request_states = singleton(RequestStates, box=Platform.secret_box)
    answer_limits: providers.Provider[AnswerLimits] = providers.Object(AnswerLimits())
    ask_client = singleton(AskClient, notes=gateway_notes, box=Platform.secret_box, limits=answer_limits)
    pending_calls = singleton(PendingCalls, notes=gateway_notes, states=request_states, box=Platform.secret_box)
    answer_gateway_question = singleton(AnswerGatewayQuestion, notes=gateway_notes, box=Platform.secret_box)
    request_cancellations = singleton(RequestCancellations, notes=gateway_notes)
    approval_waits: providers.Provider[ApprovalWaits] = providers.Object(ApprovalWaits())
    clear_gateway_call = singleton(
        ClearGatewayCall,
        asking=gateway_approvals,
        check=Tools.check_tool_call,
        states=request_states,
        waits=approval_waits,
        notifying=singleton(NotifyOfApproval, asking=ask_client),
    )
    call_agent = singleton(
        CallAgent, start_run=Runs.start_run, cancel_run=Runs.cancel_run, suspended_wait_s=approval_waits.provided.last_s
    )
    halt_gateway_session = singleton(
        HaltGatewaySession, ledger=gateway_ledger, access=gateway_access, cancel_run=Runs.cancel_run
    )
    settle_gateway_call = singleton(SettleGatewayCall, ledger=gateway_ledger, halting=halt_gateway_session)
    call_gateway_tool = singleton(
        CallGatewayTool,
        toolsets=gateway_toolsets,
        check=Tools.check_tool_call,
        clearing=clear_gateway_call,
        sending=singleton(
            SendGatewayCall,
            execute_tool=singleton(
                ExecuteTool,
                native_tools=Tools.native_tools,
                execute_mcp_tool=Tools.execute_mcp_tool,
                agents=call_agent,
                components=Tools.component_tools,
            ),
            asking=ask_client,
            pending=pending_calls,
            settling=settle_gateway_call,
        ),
        settling=settle_gateway_call,
        pending=pending_calls,
        states=request_states,
        ledger=gateway_ledger,
    )
    try_tool = singleton(TryTool, access=gateway_access, call_tool=call_gateway_tool)
    gateway_tasks = singleton(
        GatewayTasks,
        waiting=singleton(WaitingTasks, call_tool=call_gateway_tool, asking=gateway_approvals, ledger=gateway_ledger),
        results=singleton(TaskResults, toolsets=gateway_toolsets, halting=halt_gateway_session),
        sessions=gateway_sessions,
        cancel_run=Runs.cancel_run,
        task_ids=singleton(TaskIds, box=Platform.secret_box),
    )
    content_sources = singleton(
        ContentSources, toolsets=gateway_toolsets, contents=McpServers.connections, switch=McpServers.mcp_switch
    )
    check_subscription = singleton(CheckSubscription, sources=content_sources, check=Tools.check_tool_call)
    subscribe_to_changes = singleton(
        SubscribeToChanges,
        subscribers=McpServers.subscribers,
        toolsets=gateway_toolsets,
        sources=content_sources,
        check=check_subscription,
        handshakes=client_handshakes,
        resources=McpServers.resource_watches,
    )
    list_gateway_contents = singleton(ListGatewayContents, sources=content_sources)
    read_gateway_content = singleton(
        ReadGatewayContent,
        sources=content_sources,
        contents=McpServers.connections,
        check=Tools.check_tool_call,
        ledger=gateway_ledger,
        halting=halt_gateway_session,
    )
    list_server_contents = singleton(ListServerContents, access=gateway_access, sources=content_sources)
    read_server_content = singleton(ReadServerContent, access=gateway_access, reading=read_gateway_content)
