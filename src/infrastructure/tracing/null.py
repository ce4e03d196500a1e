"""No tracing, without a configured backend."""

from application.tracing.ports import GatewayCallRecord, GenerationRecord, ToolCallRecord, WorkflowRecord
from domain.agents.agent import Agent
from domain.gateway.session import GatewaySession
from domain.ids import ToolCallId
from domain.runs.run import Run


class NullTracer:
    """Discards all records."""

    @property
    def enabled(self) -> bool:
        return False

    def generation(self, record: GenerationRecord) -> None:
        """Discarded."""

    def tool_call(self, record: ToolCallRecord) -> None:
        """Discarded."""

    def run_finished(self, run: Run, agent: Agent | None) -> None:
        """Discarded."""

    def trace_context(self, run: Run, call_id: ToolCallId) -> dict[str, str]:
        return {}

    def workflow_finished(self, record: WorkflowRecord) -> None:
        """Discarded."""

    def gateway_call(self, record: GatewayCallRecord) -> None:
        """Discarded."""

    def gateway_context(self, session: GatewaySession, call_id: ToolCallId) -> dict[str, str]:
        return {}

    async def close(self) -> None:
        """Nothing to end."""
