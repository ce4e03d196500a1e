"""Saved and validated workflows with their findings, as JSON."""

from application.workflows.create_workflow import SavedWorkflow
from application.workflows.workflow_checks import CheckedWorkflow, place_of
from domain.workflows.faults import Fault
from domain.workflows.graph import WorkflowDefinition
from interfaces.http.workflows.views import FaultView, SavedWorkflowView, ValidationView, plan_view, workflow_view


def saved_workflow_view(saved: SavedWorkflow) -> SavedWorkflowView:
    warnings = [_fault_view(fault, saved.workflow.definition) for fault in saved.checked.warnings]
    return {**workflow_view(saved.workflow), "warnings": warnings}


def validation_view(checked: CheckedWorkflow, definition: WorkflowDefinition) -> ValidationView:
    return {
        "valid": not checked.faults,
        "errors": [_fault_view(fault, definition) for fault in checked.faults],
        "warnings": [_fault_view(fault, definition) for fault in checked.warnings],
        "plan": plan_view(checked.plan),
    }


def _fault_view(fault: Fault, definition: WorkflowDefinition) -> FaultView:
    return {
        "code": fault.code.value,
        "message": fault.message,
        "node_ids": list(fault.node_ids),
        "path": place_of(fault, definition),
    }
