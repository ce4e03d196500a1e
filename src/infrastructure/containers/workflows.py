"""Providers of workflows and their runs."""

from dependency_injector import containers, providers

from application.identity.finish_sign_in import FinishSignIn
from application.mcp.account_connected import AccountConnected
from application.mcp.connect_by_sign_in import ConnectBySignIn
from application.mcp.finish_mcp_authorization import FinishMcpAuthorization
from application.mcp.give_account_secrets import GiveAccountSecrets
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
from application.workflows.replay_workflow_run import ReplayWorkflowRun
from application.workflows.resume_authorized_workflow_runs import ResumeAuthorizedWorkflowRuns
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
from infrastructure.containers.wiring import Singletons
from infrastructure.persistence.workflows.store import SqlWorkflowStore

singleton = Singletons(Platform, Storage)


class Workflows(containers.DeclarativeContainer):
    workflows: providers.Provider[WorkflowStore] = singleton(SqlWorkflowStore)
    workflow_checks = singleton(WorkflowChecks, expressions=Tools.expressions, outbound=Platform.egress_policy)
    create_workflow = singleton(CreateWorkflow, workflows=workflows, checks=workflow_checks)
    validate_workflow = singleton(ValidateWorkflow, workflows=workflows, checks=workflow_checks)
    update_workflow = singleton(UpdateWorkflow, workflows=workflows, checks=workflow_checks)
    get_workflow = singleton(GetWorkflow, workflows=workflows)
    list_workflows = singleton(ListWorkflows, workflows=workflows)
    list_workflow_versions = singleton(ListWorkflowVersions, workflows=workflows)
    delete_workflow = singleton(DeleteWorkflow, workflows=workflows)
    workflow_inputs = singleton(BoundInputs, expressions=Tools.expressions)
    tool_step = singleton(
        ToolStep,
        inputs=workflow_inputs,
        catalogs=McpServers.catalog_reader,
        connections=McpServers.announced_connections,
        switch=McpServers.mcp_switch,
        box=Platform.secret_box,
        tool_ttl_s=Platform.settings.provided.workflow_tool_ttl_s,
    )
    agent_step = singleton(AgentStep, start_run=Runs.start_run, stop_run=Runs.stop_run, expressions=Tools.expressions)
    active_workflow_runs: providers.Provider[ActiveRuns[WorkflowLease]] = singleton(
        ActiveRuns, leases=Storage.workflow_runs, settings=LeaseSettings()
    )
    resume_authorized_workflow_runs = singleton(
        ResumeAuthorizedWorkflowRuns,
        runs=Storage.workflow_runs,
        queue=Storage.run_queue,
        authorizer=McpServers.accounts,
    )
    account_connected = singleton(
        AccountConnected,
        connections=McpServers.announced_connections,
        catalog_updater=McpServers.catalog_updater,
        waiters=providers.List(Runs.resume_authorized_runs, resume_authorized_workflow_runs),
    )
    finish_mcp_authorization = singleton(
        FinishMcpAuthorization,
        authorizer=McpServers.accounts,
        connections=McpServers.announced_connections,
        accounts=account_connected,
    )
    finish_sign_in = singleton(
        FinishSignIn,
        client=Identity.identity_client,
        tokens=Identity.signed_tokens,
        admit_person=Identity.admit_person,
        listener=singleton(
            ConnectBySignIn, servers=Storage.fresh_servers, authorizer=McpServers.accounts, accounts=account_connected
        ),
    )
    give_account_secrets = singleton(GiveAccountSecrets, servers=Storage.fresh_servers, accounts=account_connected)
    advance_workflow = singleton(
        AdvanceWorkflow,
        runs=Storage.workflow_runs,
        journal=Storage.workflow_runs,
        executors=singleton(
            workflows_assembly.executors,
            singleton(LocalSteps, expressions=Tools.expressions),
            singleton(HttpStep, requests=Tools.workflow_requests, inputs=workflow_inputs),
            singleton(
                McpStep,
                catalog=Tools.toolset_builder,
                check=Tools.check_tool_call,
                execute=Tools.execute_mcp_tool,
                expressions=Tools.expressions,
            ),
        ),
        agents=agent_step,
        accounts=resume_authorized_workflow_runs,
        tools=tool_step,
        active_runs=active_workflow_runs,
    )
    recover_workflow_runs = singleton(RecoverRuns, leases=Storage.workflow_runs, queue=Storage.run_queue)
    workflow_drivers = singleton(
        WorkflowDrivers, advance=advance_workflow.provided.execute, recover=recover_workflow_runs
    )
    start_workflow_run = singleton(
        StartWorkflowRun, workflows=workflows, runs=Storage.workflow_runs, queue=Storage.run_queue
    )
    replay_workflow_run = singleton(
        ReplayWorkflowRun, workflows=workflows, runs=Storage.workflow_runs, start_workflow_run=start_workflow_run
    )
    resume_workflow_run = singleton(
        ResumeWorkflowRun, runs=Storage.workflow_runs, resume_run=Runs.resume_run, queue=Storage.run_queue
    )
    stop_workflow_run = singleton(StopWorkflowRun, runs=Storage.workflow_runs, queue=Storage.run_queue, tools=tool_step)
    get_workflow_run = singleton(GetWorkflowRun, runs=Storage.workflow_runs)
    list_workflow_runs = singleton(ListWorkflowRuns, runs=Storage.workflow_runs)
    watch_workflow_run = singleton(WatchWorkflowRun, runs=Storage.workflow_runs, keys=Identity.key_validity)
