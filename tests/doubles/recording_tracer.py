"""Traces in memory."""

from collections import defaultdict

from application.tracing.ports import GatewayCallRecord, GenerationRecord, ToolCallRecord, WorkflowRecord
from domain.agents.agent import Agent
from domain.gateway.session import GatewaySession
from domain.ids import GatewaySessionId, RunId, ToolCallId, WorkflowRunId
from domain.runs.run import Run
from infrastructure.tracing import span_ids
from infrastructure.tracing.gateway_observations import gateway_call_observation
from infrastructure.tracing.observations import (
    Observation,
    generation_observation,
    run_observation,
    tool_call_observation,
    traced_as,
)
from infrastructure.tracing.workflow_observations import workflow_observations


class RecordingTracer:
    """A span that is recorded twice is stored once, as in a backend."""

    def __init__(self) -> None:
        self._traces: defaultdict[str, dict[int, Observation]] = defaultdict(dict)

    @property
    def enabled(self) -> bool:
        return True

    def generation(self, record: GenerationRecord) -> None:
        self._keep(generation_observation(record))

    def tool_call(self, record: ToolCallRecord) -> None:
        self._keep(tool_call_observation(record))

    def run_finished(self, run: Run, agent: Agent | None) -> None:
        self._keep(run_observation(run, agent))

    def trace_context(self, run: Run, call_id: ToolCallId) -> dict[str, str]:
        return {"traceparent": span_ids.traceparent(traced_as(run), call_id)}

    def workflow_finished(self, record: WorkflowRecord) -> None:
        for observe in workflow_observations(record):
            self._keep(observe())

    def gateway_call(self, record: GatewayCallRecord) -> None:
        self._keep(gateway_call_observation(record))

    def gateway_context(self, session: GatewaySession, call_id: ToolCallId) -> dict[str, str]:
        return {"traceparent": span_ids.traceparent(call_id, call_id)}

    async def close(self) -> None:
        """Nothing to end."""

    def spans(self, run_id: RunId | GatewaySessionId | WorkflowRunId) -> tuple[Observation, ...]:
        """The spans of a run, of a gateway session, or of a workflow run without its agents' runs:
        the root first, then the others by start."""
        found = self._traces[run_id].values()
        return tuple(sorted(found, key=lambda span: (span.parent_id is not None, span.started_at)))

    def _keep(self, observation: Observation) -> None:
        self._traces[observation.run_id][observation.span_id] = observation
