"""Workflows and their runs."""

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
from infrastructure.containers.runs import Runs
from infrastructure.containers.storage import Storage
from infrastructure.containers.surroundings import Surroundings
from infrastructure.containers.tools import Tools
from infrastructure.persistence.workflows.store import SqlWorkflowStore


class Workflows(containers.DeclarativeContainer):
    """From a graph to its finished nodes."""

    workflows: providers.Provider[WorkflowStore] = providers.Singleton(SqlWorkflowStore, database=Storage.database)
    workflow_checks: providers.Provider[WorkflowChecks] = providers.Singleton(
        WorkflowChecks,
        expressions=Tools.expressions,
        schemas=Surroundings.schemas,
        agents=Storage.agents,
        servers=Storage.servers,
        secrets=Storage.secrets,
        outbound=Surroundings.egress_policy,
    )
    create_workflow: providers.Provider[CreateWorkflow] = providers.Singleton(
        CreateWorkflow, workflows=workflows, checks=workflow_checks, clock=Surroundings.clock, ids=Surroundings.ids
    )
    validate_workflow: providers.Provider[ValidateWorkflow] = providers.Singleton(
        ValidateWorkflow, checks=workflow_checks
    )
    update_workflow: providers.Provider[UpdateWorkflow] = providers.Singleton(
        UpdateWorkflow, workflows=workflows, checks=workflow_checks, clock=Surroundings.clock, ids=Surroundings.ids
    )
    get_workflow: providers.Provider[GetWorkflow] = providers.Singleton(GetWorkflow, workflows=workflows)
    list_workflows: providers.Provider[ListWorkflows] = providers.Singleton(ListWorkflows, workflows=workflows)
    list_workflow_versions: providers.Provider[ListWorkflowVersions] = providers.Singleton(
        ListWorkflowVersions, workflows=workflows
    )
    delete_workflow: providers.Provider[DeleteWorkflow] = providers.Singleton(
        DeleteWorkflow, workflows=workflows, clock=Surroundings.clock, ids=Surroundings.ids
    )
    workflow_inputs: providers.Provider[BoundInputs] = providers.Singleton(
        BoundInputs, secrets=Storage.secrets, expressions=Tools.expressions
    )
    tool_step: providers.Provider[ToolStep] = providers.Singleton(
        ToolStep,
        inputs=workflow_inputs,
        servers=Storage.servers,
        catalogs=McpServers.warm_catalogs,
        connections=McpServers.announced_connections,
        switch=McpServers.mcp_switch,
        box=Surroundings.secret_box,
        clock=Surroundings.clock,
    )
    agent_step: providers.Provider[AgentStep] = providers.Singleton(
        AgentStep,
        start_run=Runs.start_run,
        runs=Storage.runs,
        stop_run=Runs.stop_run,
        wakeups=Surroundings.wakeups,
        expressions=Tools.expressions,
        clock=Surroundings.clock,
    )
    active_workflow_runs: providers.Provider[ActiveRuns[WorkflowLease]] = providers.Singleton(
        ActiveRuns,
        leases=Storage.workflow_runs,
        clock=Surroundings.clock,
        worker_id=Surroundings.worker_id,
        settings=LeaseSettings(),
    )
    advance_workflow: providers.Provider[AdvanceWorkflow] = providers.Singleton(
        AdvanceWorkflow,
        runs=Storage.workflow_runs,
        journal=Storage.workflow_runs,
        executors=providers.Singleton(
            workflows_assembly.executors,
            providers.Singleton(LocalSteps, expressions=Tools.expressions, clock=Surroundings.clock),
            providers.Singleton(HttpStep, requests=Tools.workflow_requests, inputs=workflow_inputs),
            providers.Singleton(
                McpStep,
                catalog=Tools.tool_catalog,
                check=Tools.check_tool_call,
                execute=Tools.execute_mcp_tool,
                expressions=Tools.expressions,
                clock=Surroundings.clock,
            ),
        ),
        agents=agent_step,
        tools=tool_step,
        wakeups=Surroundings.wakeups,
        active_runs=active_workflow_runs,
        clock=Surroundings.clock,
        ids=Surroundings.ids,
        tracer=Surroundings.tracer,
    )
    recover_workflow_runs: providers.Provider[RecoverRuns] = providers.Singleton(
        RecoverRuns, leases=Storage.workflow_runs, queue=Storage.run_queue, clock=Surroundings.clock
    )
    workflow_drivers: providers.Provider[WorkflowDrivers] = providers.Singleton(
        WorkflowDrivers,
        advance=advance_workflow.provided.execute,
        recover=recover_workflow_runs,
        wakeups=Surroundings.wakeups,
    )
    start_workflow_run: providers.Provider[StartWorkflowRun] = providers.Singleton(
        StartWorkflowRun,
        workflows=workflows,
        runs=Storage.workflow_runs,
        secrets=Storage.secrets,
        schemas=Surroundings.schemas,
        queue=Storage.run_queue,
        clock=Surroundings.clock,
        ids=Surroundings.ids,
    )
    resume_workflow_run: providers.Provider[ResumeWorkflowRun] = providers.Singleton(
        ResumeWorkflowRun,
        runs=Storage.workflow_runs,
        resume_run=Runs.resume_run,
        schemas=Surroundings.schemas,
        queue=Storage.run_queue,
        clock=Surroundings.clock,
        ids=Surroundings.ids,
    )
    stop_workflow_run: providers.Provider[StopWorkflowRun] = providers.Singleton(
        StopWorkflowRun,
        runs=Storage.workflow_runs,
        queue=Storage.run_queue,
        tools=tool_step,
        clock=Surroundings.clock,
        ids=Surroundings.ids,
        tracer=Surroundings.tracer,
    )
    get_workflow_run: providers.Provider[GetWorkflowRun] = providers.Singleton(
        GetWorkflowRun, runs=Storage.workflow_runs
    )
    list_workflow_runs: providers.Provider[ListWorkflowRuns] = providers.Singleton(
        ListWorkflowRuns, runs=Storage.workflow_runs
    )
    watch_workflow_run: providers.Provider[WatchWorkflowRun] = providers.Singleton(
        WatchWorkflowRun, runs=Storage.workflow_runs, keys=Identity.key_validity, wakeups=Surroundings.wakeups
    )
