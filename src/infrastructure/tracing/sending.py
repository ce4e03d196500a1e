"""Tracing to a remote backend. The caller only appends to a queue; the sending thread does the
rest."""

from collections.abc import Callable
from functools import partial

from application.tracing.ports import GatewayCallRecord, GenerationRecord, ToolCallRecord, WorkflowRecord
from domain.agents.agent import Agent
from domain.gateway.session import GatewaySession
from domain.ids import ToolCallId
from domain.runs.run import Run
from infrastructure.tracing import span_ids
from infrastructure.tracing.gateway_observations import gateway_call_observation
from infrastructure.tracing.observation_sender import ObservationSender, ObservationSink
from infrastructure.tracing.observations import (
    generation_observation,
    run_observation,
    tool_call_observation,
    traced_as,
)
from infrastructure.tracing.workflow_observations import workflow_observations

OpenSender = Callable[[Callable[[], ObservationSink]], ObservationSender]


class SendingTracer:
    """Sends records to the backend that `connect` reaches. An unavailable backend costs a run
    nothing; its observations are lost."""

    def __init__(self, connect: Callable[[], ObservationSink], *, sender: OpenSender = ObservationSender) -> None:
        self._sender = sender(connect)

    @property
    def enabled(self) -> bool:
        return True

    def generation(self, record: GenerationRecord) -> None:
        self._sender.submit(partial(generation_observation, record))

    def tool_call(self, record: ToolCallRecord) -> None:
        self._sender.submit(partial(tool_call_observation, record))

    def run_finished(self, run: Run, agent: Agent | None) -> None:
        self._sender.submit(partial(run_observation, run, agent))

    def trace_context(self, run: Run, call_id: ToolCallId) -> dict[str, str]:
        return {"traceparent": span_ids.traceparent(traced_as(run), call_id)}

    def workflow_finished(self, record: WorkflowRecord) -> None:
        for observe in workflow_observations(record):
            self._sender.submit(observe)

    def gateway_call(self, record: GatewayCallRecord) -> None:
        self._sender.submit(partial(gateway_call_observation, record))

    def gateway_context(self, session: GatewaySession, call_id: ToolCallId) -> dict[str, str]:
        return {"traceparent": span_ids.traceparent(call_id, call_id)}

    async def close(self) -> None:
        """Send what is left, within 2.5 seconds."""
        await self._sender.close()
