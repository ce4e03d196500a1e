"""Registered tools of workflow runs in memory."""

from domain.ids import OrganizationId
from domain.tools.wired import RegisteredTool, WiredNodes
from tests.doubles.state import InMemoryState


class InMemoryWorkflowToolStore:
    """The `WorkflowToolStore` port, over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def of(self, organization_id: OrganizationId, nodes: WiredNodes) -> tuple[RegisteredTool, ...]:
        """Those of the nodes that are registered."""
        stored = self._state.workflow_runs.get(nodes.workflow_run_id)
        if stored is None or stored.run.organization_id != organization_id:
            return ()
        return tuple(stored.tools[node_id] for node_id in nodes.node_ids if node_id in stored.tools)
