"""ValidateWorkflow: check a workflow without saving it."""

from dataclasses import dataclass

from application.workflows.workflow_checks import CheckedWorkflow, WorkflowChecks
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.workflows.graph import WorkflowDefinition


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateWorkflowCommand:
    principal: Principal
    definition: WorkflowDefinition


class ValidateWorkflow:
    """Rules: requires `admin`, because the result reveals which agents, servers and secrets
    exist."""

    def __init__(self, *, checks: WorkflowChecks) -> None:
        self._checks = checks

    async def execute(self, command: ValidateWorkflowCommand) -> CheckedWorkflow:
        """All faults, or the plan. Raises FORBIDDEN."""
        command.principal.require(Permission.WORKFLOWS_MANAGE)
        return await self._checks.check(command.principal.organization_id, command.definition)
