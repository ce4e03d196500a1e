"""Several tracing backends at once. Each has its own thread, so that none waits for another."""

import asyncio

from application.tracing.ports import GatewayCallRecord, GenerationRecord, ToolCallRecord, WorkflowRecord
from domain.agents.agent import Agent
from domain.gateway.session import GatewaySession
from domain.ids import ToolCallId
from domain.runs.run import Run
from infrastructure.tracing.closable import ClosableTracer


class AllTracers:
    """The tracing ports over several adapters. Their ids are derived and therefore equal."""

    def __init__(self, *tracers: ClosableTracer) -> None:
        self._tracers = tracers

    @property
    def enabled(self) -> bool:
        return True

    def generation(self, record: GenerationRecord) -> None:
        for tracer in self._tracers:
            tracer.generation(record)

    def tool_call(self, record: ToolCallRecord) -> None:
        for tracer in self._tracers:
            tracer.tool_call(record)

    def run_finished(self, run: Run, agent: Agent | None) -> None:
        for tracer in self._tracers:
            tracer.run_finished(run, agent)

    def trace_context(self, run: Run, call_id: ToolCallId) -> dict[str, str]:
        return self._tracers[0].trace_context(run, call_id)

    def workflow_finished(self, record: WorkflowRecord) -> None:
        for tracer in self._tracers:
            tracer.workflow_finished(record)

    def gateway_call(self, record: GatewayCallRecord) -> None:
        for tracer in self._tracers:
            tracer.gateway_call(record)

    def gateway_context(self, session: GatewaySession, call_id: ToolCallId) -> dict[str, str]:
        return self._tracers[0].gateway_context(session, call_id)

    async def close(self) -> None:
        async with asyncio.TaskGroup() as group:
            for tracer in self._tracers:
                group.create_task(tracer.close())
