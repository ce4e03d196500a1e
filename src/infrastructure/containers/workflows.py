"""Providers of workflows and their runs."""

from dependency_injector import containers, providers

from application.runs.execution.active_runs import ActiveRuns, LeaseSettings
from application.runs.execution.recover_runs import RecoverRuns
from application.workflows.advance_workflow import AdvanceWorkflow
from application.workflows.agent_step import AgentStep
from application.workflows.create_workflow import CreateWorkflow
from application.workflows.delete_workflow import DeleteWorkflow
from application.workflows.http_step import BoundInputs, HttpStep
from application.workflows.local_steps import LocalSteps
from application.workflows.mcp_step import McpStep
from application.workflows.ports import WorkflowLease, WorkflowStore
from application.workflows.queries import GetWorkflow, ListWorkflows, ListWorkflowVersions
from application.workflows.resume_workflow_run import ResumeWorkflowRun
from application.workflows.run_queries import GetWorkflowRun, ListWorkflowRuns, WatchWorkflowRun
from application.workflows.start_workflow_run import StartWorkflowRun
from application.workflows.stop_workflow_run import StopWorkflowRun
from application.workflows.tool_step import ToolStep
from application.workflows.update_workflow import UpdateWorkflow
from application.workflows.validate_workflow import ValidateWorkflow
from application.workflows.workflow_checks import WorkflowChecks
from application.workflows.workflow_drivers import WorkflowDrivers
from infrastructure.assembly import workflows as workflows_assembly
from infrastructure.containers.identity import Identity
from infrastructure.containers.mcp_servers import McpServers
from infrastructure.containers.platform import Platform
from infrastructure.containers.runs import Runs
from infrastructure.containers.storage import Storage
from infrastructure.containers.tools import Tools
from infrastructure.persistence.workflows.store import SqlWorkflowStore


class Workflows(containers.DeclarativeContainer):
    workflows: providers.Provider[WorkflowStore] = providers.Singleton(SqlWorkflowStore, database=Storage.database)
    workflow_checks: providers.Provider[WorkflowChecks] = providers.Singleton(
        WorkflowChecks,
        expressions=Tools.expressions,
        schemas=Platform.schemas,
        agents=Storage.agents,
        servers=Storage.servers,
        secrets=Storage.secrets,
        outbound=Platform.egress_policy,
    )
    create_workflow: providers.Provider[CreateWorkflow] = providers.Singleton(
        CreateWorkflow, workflows=workflows, checks=workflow_checks, clock=Platform.clock, ids=Platform.ids
    )
    validate_workflow: providers.Provider[ValidateWorkflow] = providers.Singleton(
        ValidateWorkflow, checks=workflow_checks
    )
    update_workflow: providers.Provider[UpdateWorkflow] = providers.Singleton(
        UpdateWorkflow, workflows=workflows, checks=workflow_checks, clock=Platform.clock, ids=Platform.ids
    )
    get_workflow: providers.Provider[GetWorkflow] = providers.Singleton(GetWorkflow, workflows=workflows)
    list_workflows: providers.Provider[ListWorkflows] = providers.Singleton(ListWorkflows, workflows=workflows)
    list_workflow_versions: providers.Provider[ListWorkflowVersions] = providers.Singleton(
        ListWorkflowVersions, workflows=workflows
    )
    delete_workflow: providers.Provider[DeleteWorkflow] = providers.Singleton(
        DeleteWorkflow, workflows=workflows, clock=Platform.clock, ids=Platform.ids
    )
    workflow_inputs: providers.Provider[BoundInputs] = providers.Singleton(
        BoundInputs, secrets=Storage.secrets, expressions=Tools.expressions
    )
    tool_step: providers.Provider[ToolStep] = providers.Singleton(
        ToolStep,
        inputs=workflow_inputs,
        servers=Storage.servers,
        catalogs=McpServers.catalog_reader,
        connections=McpServers.announced_connections,
        switch=McpServers.mcp_switch,
        box=Platform.secret_box,
        clock=Platform.clock,
    )
    agent_step: providers.Provider[AgentStep] = providers.Singleton(
        AgentStep,
        start_run=Runs.start_run,
        runs=Storage.runs,
        stop_run=Runs.stop_run,
        wakeups=Platform.wakeups,
        expressions=Tools.expressions,
        clock=Platform.clock,
    )
    active_workflow_runs: providers.Provider[ActiveRuns[WorkflowLease]] = providers.Singleton(
        ActiveRuns,
        leases=Storage.workflow_runs,
        clock=Platform.clock,
        worker_id=Platform.worker_id,
        settings=LeaseSettings(),
    )
    advance_workflow: providers.Provider[AdvanceWorkflow] = providers.Singleton(
        AdvanceWorkflow,
        runs=Storage.workflow_runs,
        journal=Storage.workflow_runs,
        executors=providers.Singleton(
            workflows_assembly.executors,
            providers.Singleton(LocalSteps, expressions=Tools.expressions, clock=Platform.clock),
            providers.Singleton(HttpStep, requests=Tools.workflow_requests, inputs=workflow_inputs),
            providers.Singleton(
                McpStep,
                catalog=Tools.toolset_builder,
                check=Tools.check_tool_call,
                execute=Tools.execute_mcp_tool,
                expressions=Tools.expressions,
                clock=Platform.clock,
            ),
        ),
        agents=agent_step,
        tools=tool_step,
        wakeups=Platform.wakeups,
        active_runs=active_workflow_runs,
        clock=Platform.clock,
        ids=Platform.ids,
        tracer=Platform.tracer,
    )
    recover_workflow_runs: providers.Provider[RecoverRuns] = providers.Singleton(
        RecoverRuns, leases=Storage.workflow_runs, queue=Storage.run_queue, clock=Platform.clock
    )
    workflow_drivers: providers.Provider[WorkflowDrivers] = providers.Singleton(
        WorkflowDrivers,
        advance=advance_workflow.provided.execute,
        recover=recover_workflow_runs,
        wakeups=Platform.wakeups,
    )
    start_workflow_run: providers.Provider[StartWorkflowRun] = providers.Singleton(
        StartWorkflowRun,
        workflows=workflows,
        runs=Storage.workflow_runs,
        secrets=Storage.secrets,
        schemas=Platform.schemas,
        queue=Storage.run_queue,
        clock=Platform.clock,
        ids=Platform.ids,
    )
    resume_workflow_run: providers.Provider[ResumeWorkflowRun] = providers.Singleton(
        ResumeWorkflowRun,
        runs=Storage.workflow_runs,
        resume_run=Runs.resume_run,
        schemas=Platform.schemas,
        queue=Storage.run_queue,
        clock=Platform.clock,
        ids=Platform.ids,
    )
    stop_workflow_run: providers.Provider[StopWorkflowRun] = providers.Singleton(
        StopWorkflowRun,
        runs=Storage.workflow_runs,
        queue=Storage.run_queue,
        tools=tool_step,
        clock=Platform.clock,
        ids=Platform.ids,
        tracer=Platform.tracer,
    )
    get_workflow_run: providers.Provider[GetWorkflowRun] = providers.Singleton(
        GetWorkflowRun, runs=Storage.workflow_runs
    )
    list_workflow_runs: providers.Provider[ListWorkflowRuns] = providers.Singleton(
        ListWorkflowRuns, runs=Storage.workflow_runs
    )
    watch_workflow_run: providers.Provider[WatchWorkflowRun] = providers.Singleton(
        WatchWorkflowRun, runs=Storage.workflow_runs, keys=Identity.key_validity, wakeups=Platform.wakeups
    )
