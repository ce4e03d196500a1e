"""Ports of the workflows slice."""

from typing import Protocol

from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.ids import OrganizationId, WorkflowId
from domain.json_value import JsonValue
from domain.workflows.graph import Workflow


class WorkflowStore(Protocol):
    """Workflows with all their versions; each write carries the audit event that describes it."""

    async def add(self, workflow: Workflow, audit: AuditEvent) -> None:
        """Store a new workflow. Raises CONFLICT `workflow_name_taken` if the name is in use in the organization."""
        ...

    async def save(self, workflow: Workflow, *, expected_version: int, audit: AuditEvent) -> None:
        """Store a new version. Raises NOT_FOUND, PRECONDITION `version_conflict` if the stored version is not
        `expected_version`, CONFLICT `workflow_name_taken` if the new name is in use."""
        ...

    async def get(self, organization_id: OrganizationId, workflow_id: WorkflowId) -> Workflow | None:
        """The newest version, or None."""
        ...

    async def find(self, organization_id: OrganizationId, name: str) -> Workflow | None:
        """The newest version of the workflow of that name, or None."""
        ...

    async def page(self, organization_id: OrganizationId, request: PageRequest) -> Page[Workflow]:
        """Workflows at their newest version, newest workflow first."""
        ...

    async def versions(
        self, organization_id: OrganizationId, workflow_id: WorkflowId, request: PageRequest
    ) -> Page[Workflow]:
        """All versions of one workflow, newest first; empty if there is no such workflow."""
        ...

    async def delete(self, organization_id: OrganizationId, workflow_id: WorkflowId, audit: AuditEvent) -> bool:
        """Remove the workflow from use; its name becomes free. False if there is none."""
        ...


class ExpressionFailed(Exception):
    """An expression has no value over what it was given; the message is written for people."""


class Expressions(Protocol):
    """JMESPath (https://jmespath.org/specification.html)."""

    def problem_with(self, expression: str) -> str | None:
        """Why it cannot be used, as a clause without a full stop, or None."""
        ...

    def evaluate(self, expression: str, value: JsonValue) -> JsonValue:
        """Its value. Raises ExpressionFailed."""
        ...
