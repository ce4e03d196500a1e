"""Registered tools of workflow runs in memory."""

from dataclasses import replace
from datetime import datetime

from domain.ids import OrganizationId
from domain.tools.wired import RegisteredTool, WiredNodes
from tests.doubles.state import InMemoryState


class InMemoryWorkflowToolStore:
    """The ports `WorkflowToolStore` and `ExpiringTools`, over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def of(self, organization_id: OrganizationId, nodes: WiredNodes) -> tuple[RegisteredTool, ...]:
        """Those of the nodes that are registered."""
        stored = self._state.workflow_runs.get(nodes.workflow_run_id)
        if stored is None or stored.run.organization_id != organization_id:
            return ()
        return tuple(stored.tools[node_id] for node_id in nodes.node_ids if node_id in stored.tools)

    async def expire(self, organization_id: OrganizationId, at: datetime, *, limit: int) -> int:
        """Those of all runs of the organization."""
        expired = [
            (stored.tools, node_id, tool)
            for stored in self._state.workflow_runs.values()
            for node_id, tool in stored.tools.items()
            if tool.organization_id == organization_id and tool.bound is not None
            if tool.expires_at is not None and tool.expires_at <= at
        ][:limit]
        for tools, node_id, tool in expired:
            tools[node_id] = replace(tool, bound=None)
        return len(expired)
