"""No tracing: what runs when no backend is configured."""

from application.tracing.ports import GatewayCallRecord, GenerationRecord, ToolCallRecord, WorkflowRecord
from domain.agents.agent import Agent
from domain.gateway.session import GatewaySession
from domain.ids import ToolCallId
from domain.runs.run import Run


class NullTracer:
    """Takes everything and tells nobody."""

    @property
    def enabled(self) -> bool:
        """Nobody listens."""
        return False

    def generation(self, record: GenerationRecord) -> None:
        """Nothing is kept."""

    def tool_call(self, record: ToolCallRecord) -> None:
        """Nothing is kept."""

    def run_finished(self, run: Run, agent: Agent | None) -> None:
        """Nothing is kept."""

    def trace_context(self, run: Run, call_id: ToolCallId) -> dict[str, str]:
        """No context: there is no trace to go on with."""
        return {}

    def workflow_finished(self, record: WorkflowRecord) -> None:
        """Nothing is kept."""

    def gateway_call(self, record: GatewayCallRecord) -> None:
        """Nothing is kept."""

    def gateway_context(self, session: GatewaySession, call_id: ToolCallId) -> dict[str, str]:
        """No context either."""
        return {}

    async def close(self) -> None:
        """Nothing to end."""
