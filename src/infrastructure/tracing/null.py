"""Tracing switched off."""

from application.tracing.ports import GenerationRecord, ToolCallRecord
from domain.agents.agent import Agent
from domain.ids import ToolCallId
from domain.runs.run import Run


class NullTracer:
    """Takes records and forgets them."""

    def generation(self, record: GenerationRecord) -> None:
        """Nothing."""

    def tool_call(self, record: ToolCallRecord) -> None:
        """Nothing."""

    def run_finished(self, run: Run, agent: Agent) -> None:
        """Nothing."""

    def trace_context(self, run: Run, call_id: ToolCallId) -> dict[str, str]:
        """No context: there is no trace to continue."""
        return {}

    async def close(self) -> None:
        """Nothing to send."""
