"""A workflow run as it stands in memory."""

from dataclasses import dataclass, field
from datetime import datetime

from application.runs.new_run import IdempotencyKey
from domain.tools.wired import RegisteredTool
from domain.workflows.run import WorkflowEvent, WorkflowRun


@dataclass(slots=True)
class StoredWorkflowRun:
    """A run with its events and registered tools, and until when a worker holds it."""

    run: WorkflowRun
    events: list[WorkflowEvent] = field(default_factory=list)
    lease_until: datetime | None = None
    key: IdempotencyKey | None = None
    tools: dict[str, RegisteredTool] = field(default_factory=dict)
