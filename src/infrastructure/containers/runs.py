"""Providers of runs: execution by workers, and requests of clients."""

from dependency_injector import containers, providers

from application.a2a.delete_push_config import DeletePushConfig
from application.a2a.ports import CardSigner, PushConfigStore
from application.a2a.put_push_config import PutPushConfig
from application.a2a.queries import ListPushConfigs
from application.approvals.check_decisions import CheckDecisions
from application.runs.call_agent import CallAgent
from application.runs.called_runs import CalledRuns
from application.runs.cancel_run import CancelRun
from application.runs.cancel_runs import CancelRuns
from application.runs.execution.active_runs import ActiveRuns, LeaseSettings
from application.runs.execution.agent_loop import AgentLoop
from application.runs.execution.ask_model import AskModel
from application.runs.execution.call_tools import CallTools, CallToolsSettings
from application.runs.execution.change_state import ChangeState
from application.runs.execution.check_output import CheckOutput
from application.runs.execution.daily_budget import DailyBudgets
from application.runs.execution.execute_run import ExecuteRun
from application.runs.execution.prepare_prompt import PreparePrompt
from application.runs.execution.recheck_calls import RecheckCalls
from application.runs.execution.record_reply import RecordReply
from application.runs.execution.recover_runs import RecoverRuns
from application.runs.execution.run_memory import RunMemory
from application.runs.queries import CountRuns, ExportRuns, GetQueue, GetRun, GetRunEvents, ListChangedRuns, ListRuns
from application.runs.queue_lines import QueueReader
from application.runs.requeue_runs import RequeueRuns
from application.runs.resume_authorized_runs import ResumeAuthorizedRuns
from application.runs.resume_run import ResumeRun
from application.runs.retry_run import RetryRun
from application.runs.start_run import StartRun
from application.runs.stop_run import StopRun
from application.runs.trace_ended_run import TraceEndedRun
from application.runs.unfinished_runs import UnfinishedRuns
from application.runs.watch_run import WatchRun
from application.system.memory_budget import MemoryBudget
from application.tools.execute_tool import ExecuteTool
from domain.runs.lease import Lease
from infrastructure.assembly import identity as identity_assembly
from infrastructure.containers.identity import Identity
from infrastructure.containers.mcp_servers import McpServers
from infrastructure.containers.models import Models
from infrastructure.containers.platform import Platform
from infrastructure.containers.storage import Storage
from infrastructure.containers.tools import Tools
from infrastructure.containers.webhooks import Webhooks
from infrastructure.containers.wiring import Singletons
from infrastructure.persistence.a2a.push_configs import SqlPushConfigStore
from infrastructure.persistence.runs.queue_lines import SqlQueueReader
from infrastructure.persistence.runs.unfinished_runs import SqlUnfinishedRuns

singleton = Singletons(Platform, Storage)


class Runs(containers.DeclarativeContainer):
    active_runs: providers.Provider[ActiveRuns[Lease]] = singleton(ActiveRuns, settings=LeaseSettings())
    trace_ended = singleton(TraceEndedRun)
    start_run = singleton(
        StartRun,
        webhooks=Webhooks.webhook_check,
        models=Models.routed_models,
        prices=Models.prices,
        queue=Storage.run_queue,
        connections=McpServers.announced_connections,
        trace_ended=trace_ended,
    )
    stop_run = singleton(
        StopRun, queue=Storage.run_queue, connections=McpServers.announced_connections, trace_ended=trace_ended
    )
    cancel_run = singleton(CancelRun, stop_run=stop_run)
    push_configs: providers.Provider[PushConfigStore] = singleton(SqlPushConfigStore, box=Platform.secret_box)
    put_push_config = singleton(PutPushConfig, configs=push_configs, webhooks=Webhooks.webhook_check)
    delete_push_config = singleton(DeletePushConfig, configs=push_configs)
    card_signer: providers.Provider[CardSigner] = providers.Singleton(
        identity_assembly.card_signer, Platform.settings.provided.a2a_signing_key
    )
    list_push_configs = singleton(ListPushConfigs, configs=push_configs)
    # Runs call agents that are wired to them.
    called_runs: providers.Provider[CalledRuns] = providers.Singleton(CalledRuns)
    execute_tool = singleton(
        ExecuteTool,
        native_tools=Tools.native_tools,
        execute_mcp_tool=Tools.execute_mcp_tool,
        components=Tools.component_tools,
        agents=singleton(CallAgent, start_run=start_run, cancel_run=cancel_run, called_runs=called_runs),
    )
    agent_loop = singleton(
        AgentLoop,
        prepare_prompt=singleton(PreparePrompt, catalog=Tools.toolset_builder),
        ask_model=singleton(AskModel, models=Models.models, prices=Models.prices),
        record_reply=singleton(RecordReply, check=Tools.check_tool_call, check_output=singleton(CheckOutput)),
        recheck_calls=singleton(RecheckCalls, check=Tools.check_tool_call),
        call_tools=singleton(
            CallTools,
            execute_tool=execute_tool,
            change_state=singleton(ChangeState),
            box=Platform.secret_box,
            settings=CallToolsSettings(),
        ),
        budgets=singleton(DailyBudgets, reservations=Storage.usage_store, prices=Models.prices),
        prices=Models.prices,
    )
    run_memory = providers.Singleton(
        RunMemory, providers.Singleton(MemoryBudget, Platform.settings.provided.work_bytes)
    )
    resume_authorized_runs = singleton(
        ResumeAuthorizedRuns,
        reader=Storage.runs,
        queue=Storage.run_queue,
        authorizer=McpServers.accounts,
        box=Platform.secret_box,
    )
    execute_run = singleton(
        ExecuteRun,
        queue=Storage.run_queue,
        loop=agent_loop,
        active_runs=active_runs,
        memory=run_memory,
        connections=McpServers.connections,
        trace_ended=trace_ended,
        consents=resume_authorized_runs,
    )
    recover_runs = singleton(RecoverRuns, queue=Storage.run_queue)
    retry_run = singleton(RetryRun, start_run=start_run, reader=Storage.runs)
    resume_run = singleton(
        ResumeRun,
        reader=Storage.runs,
        servers=Storage.fresh_servers,
        queue=Storage.run_queue,
        decisions=singleton(
            CheckDecisions,
            servers=Storage.fresh_servers,
            catalog=Tools.toolset_builder,
            check=Tools.check_tool_call,
            deciders=Identity.deciders,
            consents=Identity.consents,
        ),
        box=Platform.secret_box,
    )
    unfinished_runs: providers.Provider[UnfinishedRuns] = singleton(SqlUnfinishedRuns)
    cancel_runs = singleton(CancelRuns, unfinished=unfinished_runs, cancel_run=cancel_run)
    queue_lines: providers.Provider[QueueReader] = singleton(SqlQueueReader)
    get_queue = singleton(GetQueue, lines=queue_lines)
    requeue_runs = singleton(RequeueRuns, lines=queue_lines, queue=Storage.run_queue)
    watch_run = singleton(WatchRun, keys=Identity.key_validity, meter=Platform.meters)
    get_run = singleton(GetRun)
    list_runs = singleton(ListRuns)
    count_runs = singleton(CountRuns)
    export_runs = singleton(ExportRuns)
    list_changed_runs = singleton(ListChangedRuns)
    get_run_events = singleton(GetRunEvents)
