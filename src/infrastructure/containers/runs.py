"""Providers of runs: execution by workers, and requests of clients."""

from dependency_injector import containers, providers

from application.approvals.check_decisions import CheckDecisions
from application.runs.cancel_run import CancelRun
from application.runs.cancel_runs import CancelRuns
from application.runs.execution.active_runs import ActiveRuns, LeaseSettings
from application.runs.execution.agent_loop import AgentLoop
from application.runs.execution.ask_model import AskModel
from application.runs.execution.call_tools import CallTools, CallToolsSettings
from application.runs.execution.daily_budget import DailyBudgets
from application.runs.execution.execute_run import ExecuteRun
from application.runs.execution.prepare_prompt import PreparePrompt
from application.runs.execution.recheck_calls import RecheckCalls
from application.runs.execution.record_reply import RecordReply
from application.runs.execution.recover_runs import RecoverRuns
from application.runs.queries import GetRun, GetRunEvents, ListRuns
from application.runs.resume_run import ResumeRun
from application.runs.start_run import StartRun
from application.runs.stop_run import StopRun
from application.runs.trace_ended_run import TraceEndedRun
from application.runs.unfinished_runs import UnfinishedRuns
from application.runs.watch_run import WatchRun
from domain.runs.lease import Lease
from infrastructure.containers.identity import Identity
from infrastructure.containers.mcp_servers import McpServers
from infrastructure.containers.models import Models
from infrastructure.containers.platform import Platform
from infrastructure.containers.storage import Storage
from infrastructure.containers.tools import Tools
from infrastructure.containers.webhooks import Webhooks
from infrastructure.persistence.runs.unfinished_runs import SqlUnfinishedRuns


class Runs(containers.DeclarativeContainer):
    active_runs: providers.Provider[ActiveRuns[Lease]] = providers.Singleton(
        ActiveRuns,
        leases=Storage.leases,
        clock=Platform.clock,
        worker_id=Platform.worker_id,
        settings=LeaseSettings(),
    )
    agent_loop: providers.Provider[AgentLoop] = providers.Singleton(
        AgentLoop,
        prepare_prompt=providers.Singleton(
            PreparePrompt, catalog=Tools.toolset_builder, agents=Storage.agents, organizations=Storage.organizations
        ),
        ask_model=providers.Singleton(
            AskModel, models=Models.models, prices=Models.prices, tracer=Platform.tracer, clock=Platform.clock
        ),
        record_reply=providers.Singleton(
            RecordReply, check=Tools.check_tool_call, runs=Storage.runs, clock=Platform.clock
        ),
        recheck_calls=providers.Singleton(RecheckCalls, check=Tools.check_tool_call, clock=Platform.clock),
        call_tools=providers.Singleton(
            CallTools,
            execute_tool=Tools.execute_tool,
            box=Platform.secret_box,
            tracer=Platform.tracer,
            clock=Platform.clock,
            settings=CallToolsSettings(),
        ),
        budgets=providers.Singleton(
            DailyBudgets,
            organizations=Storage.organizations,
            reservations=Storage.usage_store,
            prices=Models.prices,
            clock=Platform.clock,
        ),
        prices=Models.prices,
        clock=Platform.clock,
    )
    trace_ended: providers.Provider[TraceEndedRun] = providers.Singleton(
        TraceEndedRun, runs=Storage.runs, agents=Storage.agents, tracer=Platform.tracer
    )
    execute_run: providers.Provider[ExecuteRun] = providers.Singleton(
        ExecuteRun,
        leases=Storage.leases,
        journal=Storage.journal,
        queue=Storage.run_queue,
        wakeups=Platform.wakeups,
        loop=agent_loop,
        active_runs=active_runs,
        connections=McpServers.connections,
        tracer=Platform.tracer,
        trace_ended=trace_ended,
        clock=Platform.clock,
        ids=Platform.ids,
        log_context=Platform.log_context,
    )
    recover_runs: providers.Provider[RecoverRuns] = providers.Singleton(
        RecoverRuns, leases=Storage.leases, queue=Storage.run_queue, clock=Platform.clock
    )

    start_run: providers.Provider[StartRun] = providers.Singleton(
        StartRun,
        runs=Storage.runs,
        webhooks=Webhooks.webhook_check,
        agents=Storage.agents,
        organizations=Storage.organizations,
        models=Models.routed_models,
        prices=Models.prices,
        queue=Storage.run_queue,
        connections=McpServers.announced_connections,
        trace_ended=trace_ended,
        clock=Platform.clock,
        ids=Platform.ids,
    )
    resume_run: providers.Provider[ResumeRun] = providers.Singleton(
        ResumeRun,
        runs=Storage.runs,
        reader=Storage.runs,
        queue=Storage.run_queue,
        decisions=providers.Singleton(
            CheckDecisions,
            approvals=Storage.approvals,
            agents=Storage.agents,
            catalog=Tools.toolset_builder,
            check=Tools.check_tool_call,
        ),
        agents=Storage.agents,
        schemas=Platform.schemas,
        box=Platform.secret_box,
        clock=Platform.clock,
    )
    stop_run: providers.Provider[StopRun] = providers.Singleton(
        StopRun,
        runs=Storage.runs,
        queue=Storage.run_queue,
        connections=McpServers.announced_connections,
        trace_ended=trace_ended,
        clock=Platform.clock,
    )
    cancel_run: providers.Provider[CancelRun] = providers.Singleton(CancelRun, runs=Storage.runs, stop_run=stop_run)
    unfinished_runs: providers.Provider[UnfinishedRuns] = providers.Singleton(
        SqlUnfinishedRuns, database=Storage.database
    )
    cancel_runs: providers.Provider[CancelRuns] = providers.Singleton(
        CancelRuns,
        unfinished=unfinished_runs,
        cancel_run=cancel_run,
        agents=Storage.agents,
        servers=Storage.servers,
        audit_log=Storage.audit_log,
        clock=Platform.clock,
        ids=Platform.ids,
    )
    watch_run: providers.Provider[WatchRun] = providers.Singleton(
        WatchRun,
        runs=Storage.runs,
        keys=Identity.key_validity,
        wakeups=Platform.wakeups,
        clock=Platform.clock,
        meter=Platform.meters,
    )
    get_run: providers.Provider[GetRun] = providers.Singleton(GetRun, runs=Storage.runs)
    list_runs: providers.Provider[ListRuns] = providers.Singleton(ListRuns, runs=Storage.runs)
    get_run_events: providers.Provider[GetRunEvents] = providers.Singleton(GetRunEvents, runs=Storage.runs)
