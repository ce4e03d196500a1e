"""Providers of the gateway: sessions, and the requests of their clients."""

from dependency_injector import containers, providers

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
from application.gateway.contents.content_sources import ContentSources
from application.gateway.contents.list_contents import ListGatewayContents
from application.gateway.contents.read_content import ReadGatewayContent
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
from infrastructure.persistence.gateway.approvals import SqlGatewayApprovals
from infrastructure.persistence.gateway.clients import SqlGatewayClientStore
from infrastructure.persistence.gateway.ledger import SqlGatewayLedger
from infrastructure.persistence.gateway.notes import SqlGatewayNotes
from infrastructure.persistence.gateway.store import SqlGatewaySessionStore


class Gateway(containers.DeclarativeContainer):
    gateway_ledger: providers.Provider[GatewayLedger] = providers.Singleton(SqlGatewayLedger, database=Storage.database)
    gateway_sessions: providers.Provider[GatewaySessionStore] = providers.Singleton(
        SqlGatewaySessionStore, database=Storage.database
    )
    gateway_toolsets: providers.Provider[GatewayToolsets] = providers.Singleton(
        GatewayToolsets,
        agents=Storage.agents,
        runs=Storage.runs,
        organizations=Storage.organizations,
        catalog=Tools.toolset_builder,
        agents_as_tools=Tools.agents_as_tools,
        rows=providers.Singleton(storage_assembly.gateway_toolset_rows, Platform.row_notifications),
    )
    gateway_approvals: providers.Provider[SqlGatewayApprovals] = providers.Singleton(
        SqlGatewayApprovals, database=Storage.database
    )
    gateway_notes: providers.Provider[SqlGatewayNotes] = providers.Singleton(SqlGatewayNotes, database=Storage.database)
    gateway_access: providers.Provider[GatewayAccess] = providers.Singleton(
        storage_assembly.gateway_access,
        Platform.row_notifications,
        sessions=gateway_sessions,
        agents=Storage.agents,
        authenticate=Identity.authenticate,
        limits=Identity.key_limits,
        clock=Platform.clock,
        wakeups=Platform.wakeups,
    )
    gateway_clients: providers.Provider[GatewayClientStore] = providers.Singleton(
        SqlGatewayClientStore, database=Storage.database
    )
    client_handshakes: providers.Provider[ClientHandshakes] = providers.Singleton(
        storage_assembly.client_handshakes,
        Platform.row_notifications,
        clients=gateway_clients,
        box=Platform.secret_box,
        clock=Platform.clock,
        ids=Platform.ids,
    )
    open_gateway_session: providers.Provider[OpenGatewaySession] = providers.Singleton(
        OpenGatewaySession,
        sessions=gateway_sessions,
        agents=Storage.agents,
        runs=Storage.runs,
        tool_nodes=providers.Singleton(ToolNodes, runs=Storage.workflow_runs),
        address=Platform.public_address,
        clock=Platform.clock,
        ids=Platform.ids,
    )
    list_gateway_sessions: providers.Provider[ListGatewaySessions] = providers.Singleton(
        ListGatewaySessions, sessions=gateway_sessions
    )
    decide_gateway_approval: providers.Provider[DecideGatewayApproval] = providers.Singleton(
        DecideGatewayApproval,
        asking=gateway_approvals,
        sessions=gateway_sessions,
        toolsets=gateway_toolsets,
        check=Tools.check_tool_call,
        wakeups=Platform.wakeups,
        clock=Platform.clock,
    )
    revoke_gateway_session: providers.Provider[RevokeGatewaySession] = providers.Singleton(
        RevokeGatewaySession,
        sessions=gateway_sessions,
        access=gateway_access,
        connections=McpServers.announced_connections,
        wakeups=Platform.wakeups,
        clock=Platform.clock,
        ids=Platform.ids,
    )
    settle_lost_calls: providers.Provider[SettleLostCalls] = providers.Singleton(
        SettleLostCalls, calls=gateway_approvals, ledger=gateway_ledger, notes=gateway_notes, clock=Platform.clock
    )
    release_ended_sessions: providers.Provider[ReleaseEndedSessions] = providers.Singleton(
        ReleaseEndedSessions,
        access=gateway_access,
        sessions=gateway_sessions,
        connections=McpServers.connections,
        clock=Platform.clock,
    )
    list_gateway_tools: providers.Provider[ListGatewayTools] = providers.Singleton(
        ListGatewayTools, toolsets=gateway_toolsets
    )
    request_states: providers.Provider[RequestStates] = providers.Singleton(RequestStates, box=Platform.secret_box)
    answer_limits: providers.Provider[AnswerLimits] = providers.Object(AnswerLimits())
    ask_client: providers.Provider[AskClient] = providers.Singleton(
        AskClient,
        notes=gateway_notes,
        wakeups=Platform.wakeups,
        box=Platform.secret_box,
        schemas=Platform.schemas,
        clock=Platform.clock,
        ids=Platform.ids,
        limits=answer_limits,
    )
    pending_calls: providers.Provider[PendingCalls] = providers.Singleton(
        PendingCalls,
        notes=gateway_notes,
        states=request_states,
        wakeups=Platform.wakeups,
        box=Platform.secret_box,
        schemas=Platform.schemas,
        clock=Platform.clock,
        ids=Platform.ids,
    )
    answer_gateway_question: providers.Provider[AnswerGatewayQuestion] = providers.Singleton(
        AnswerGatewayQuestion,
        notes=gateway_notes,
        wakeups=Platform.wakeups,
        box=Platform.secret_box,
        schemas=Platform.schemas,
        clock=Platform.clock,
    )
    request_cancellations: providers.Provider[RequestCancellations] = providers.Singleton(
        RequestCancellations, notes=gateway_notes, wakeups=Platform.wakeups, clock=Platform.clock
    )
    approval_waits: providers.Provider[ApprovalWaits] = providers.Object(ApprovalWaits())
    clear_gateway_call: providers.Provider[ClearGatewayCall] = providers.Singleton(
        ClearGatewayCall,
        asking=gateway_approvals,
        approvals=Storage.approvals,
        check=Tools.check_tool_call,
        wakeups=Platform.wakeups,
        states=request_states,
        clock=Platform.clock,
        ids=Platform.ids,
        waits=approval_waits,
        notifying=providers.Singleton(
            NotifyOfApproval, asking=ask_client, approvals=Storage.approvals, wakeups=Platform.wakeups
        ),
    )
    call_agent: providers.Provider[CallAgent] = providers.Singleton(
        CallAgent,
        start_run=Runs.start_run,
        cancel_run=Runs.cancel_run,
        runs=Storage.runs,
        wakeups=Platform.wakeups,
        clock=Platform.clock,
        suspended_wait_s=approval_waits.provided.last_s,
    )
    halt_gateway_session: providers.Provider[HaltGatewaySession] = providers.Singleton(
        HaltGatewaySession, ledger=gateway_ledger, access=gateway_access, cancel_run=Runs.cancel_run
    )
    settle_gateway_call: providers.Provider[SettleGatewayCall] = providers.Singleton(
        SettleGatewayCall,
        ledger=gateway_ledger,
        halting=halt_gateway_session,
        tracer=Platform.tracer,
        clock=Platform.clock,
    )
    call_gateway_tool: providers.Provider[CallGatewayTool] = providers.Singleton(
        CallGatewayTool,
        toolsets=gateway_toolsets,
        check=Tools.check_tool_call,
        clearing=clear_gateway_call,
        sending=providers.Singleton(
            SendGatewayCall,
            execute_tool=providers.Singleton(
                ExecuteTool,
                native_tools=Tools.native_tools,
                execute_mcp_tool=Tools.execute_mcp_tool,
                agents=call_agent,
                components=Tools.component_tools,
            ),
            asking=ask_client,
            pending=pending_calls,
            settling=settle_gateway_call,
            tracer=Platform.tracer,
            clock=Platform.clock,
        ),
        settling=settle_gateway_call,
        pending=pending_calls,
        states=request_states,
        ledger=gateway_ledger,
        clock=Platform.clock,
        ids=Platform.ids,
    )
    gateway_tasks: providers.Provider[GatewayTasks] = providers.Singleton(
        GatewayTasks,
        waiting=providers.Singleton(
            WaitingTasks,
            call_tool=call_gateway_tool,
            asking=gateway_approvals,
            approvals=Storage.approvals,
            ledger=gateway_ledger,
            wakeups=Platform.wakeups,
            clock=Platform.clock,
        ),
        results=providers.Singleton(
            TaskResults,
            toolsets=gateway_toolsets,
            halting=halt_gateway_session,
            clock=Platform.clock,
            ids=Platform.ids,
        ),
        sessions=gateway_sessions,
        runs=Storage.runs,
        cancel_run=Runs.cancel_run,
        wakeups=Platform.wakeups,
        task_ids=providers.Singleton(TaskIds, box=Platform.secret_box),
        clock=Platform.clock,
    )
    content_sources: providers.Provider[ContentSources] = providers.Singleton(
        ContentSources,
        toolsets=gateway_toolsets,
        servers=Storage.servers,
        contents=McpServers.connections,
        switch=McpServers.mcp_switch,
    )
    check_subscription: providers.Provider[CheckSubscription] = providers.Singleton(
        CheckSubscription, sources=content_sources, check=Tools.check_tool_call
    )
    subscribe_to_changes: providers.Provider[SubscribeToChanges] = providers.Singleton(
        SubscribeToChanges,
        subscribers=McpServers.subscribers,
        toolsets=gateway_toolsets,
        sources=content_sources,
        check=check_subscription,
        handshakes=client_handshakes,
        resources=McpServers.resource_watches,
        wakeups=Platform.wakeups,
        clock=Platform.clock,
    )
    list_gateway_contents: providers.Provider[ListGatewayContents] = providers.Singleton(
        ListGatewayContents, sources=content_sources
    )
    read_gateway_content: providers.Provider[ReadGatewayContent] = providers.Singleton(
        ReadGatewayContent,
        sources=content_sources,
        contents=McpServers.connections,
        check=Tools.check_tool_call,
        ledger=gateway_ledger,
        halting=halt_gateway_session,
        clock=Platform.clock,
        ids=Platform.ids,
    )
