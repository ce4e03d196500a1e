"""ValidateWorkflow: check a workflow without saving it."""

from dataclasses import dataclass

from application.workflows.ports import WorkflowStore
from application.workflows.workflow_checks import CheckedWorkflow, WorkflowChecks
from application.workflows.workflow_lookup import existing_workflow
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.workflows.graph import WorkflowDefinition


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateWorkflowCommand:
    """`workflow` is the id or name of the one that is changed; None for a new one."""

    principal: Principal
    definition: WorkflowDefinition
    workflow: str | None = None


class ValidateWorkflow:
    """Rules: requires `admin`, because the result reveals which agents, servers and secrets
    exist."""

    def __init__(self, *, workflows: WorkflowStore, checks: WorkflowChecks) -> None:
        self._workflows = workflows
        self._checks = checks

    async def execute(self, command: ValidateWorkflowCommand) -> CheckedWorkflow:
        """All faults, or the plan. Raises FORBIDDEN, NOT_FOUND."""
        principal, former = command.principal, None
        principal.require(Permission.WORKFLOWS_MANAGE)
        if command.workflow is not None:
            former = (await existing_workflow(self._workflows, principal, command.workflow)).team
        return await self._checks.check(principal, command.definition, former_team=former)
