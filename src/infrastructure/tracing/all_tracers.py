"""Several backends of tracing at once; each has its own thread, so that none waits for another."""

import asyncio

from application.tracing.ports import GatewayCallRecord, GenerationRecord, ToolCallRecord, WorkflowRecord
from domain.agents.agent import Agent
from domain.gateway.session import GatewaySession
from domain.ids import ToolCallId
from domain.runs.run import Run
from infrastructure.tracing.closable import ClosableTracer


class AllTracers:
    """The ports `Tracer` and `GatewayTracer`, over one or more adapters of them. Their ids are derived, hence the same."""

    def __init__(self, *tracers: ClosableTracer) -> None:
        self._tracers = tracers

    @property
    def enabled(self) -> bool:
        """There is a backend."""
        return True

    def generation(self, record: GenerationRecord) -> None:
        """A model call is over."""
        for tracer in self._tracers:
            tracer.generation(record)

    def tool_call(self, record: ToolCallRecord) -> None:
        """A tool call is over."""
        for tracer in self._tracers:
            tracer.tool_call(record)

    def run_finished(self, run: Run, agent: Agent | None) -> None:
        """The run has ended."""
        for tracer in self._tracers:
            tracer.run_finished(run, agent)

    def trace_context(self, run: Run, call_id: ToolCallId) -> dict[str, str]:
        """`traceparent` of the call's span."""
        return self._tracers[0].trace_context(run, call_id)

    def workflow_finished(self, record: WorkflowRecord) -> None:
        """A workflow run has ended."""
        for tracer in self._tracers:
            tracer.workflow_finished(record)

    def gateway_call(self, record: GatewayCallRecord) -> None:
        """A call of a gateway session is over."""
        for tracer in self._tracers:
            tracer.gateway_call(record)

    def gateway_context(self, session: GatewaySession, call_id: ToolCallId) -> dict[str, str]:
        """`traceparent` of the call's span."""
        return self._tracers[0].gateway_context(session, call_id)

    async def close(self) -> None:
        """Send what is left."""
        async with asyncio.TaskGroup() as group:
            for tracer in self._tracers:
                group.create_task(tracer.close())
