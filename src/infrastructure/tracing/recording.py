"""Traces in memory, for tests and for the demo's summary."""

from application.system.lru import LruCache
from application.tracing.ports import GatewayCallRecord, GenerationRecord, ToolCallRecord, WorkflowRecord
from domain.agents.agent import Agent
from domain.gateway.session import GatewaySession
from domain.ids import GatewaySessionId, RunId, ToolCallId, WorkflowRunId
from domain.runs.run import Run
from infrastructure.tracing import span_ids
from infrastructure.tracing.gateway_observations import gateway_call_observation
from infrastructure.tracing.observations import (
    Observation,
    ObservationKind,
    generation_observation,
    run_observation,
    tool_call_observation,
    traced_as,
)
from infrastructure.tracing.workflow_observations import workflow_observations


class RecordingTracer:
    """Stores the traces of the last `max_runs` runs. A span that is recorded twice is stored once,
    as in a backend."""

    def __init__(self, *, max_runs: int = 1_000) -> None:
        self._traces: LruCache[str, dict[int, Observation]] = LruCache(max_runs)

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
        """The spans of a run, of a gateway session, or of a workflow run without its agents' runs: the
        root first, then the others by start."""
        found = self._traces.get(run_id) or {}
        return tuple(sorted(found.values(), key=lambda span: (span.parent_id is not None, span.started_at)))

    def summary(self, run_id: RunId) -> str:
        """The trace as a tree of lines for a terminal: name, details, duration."""
        spans = self.spans(run_id)
        roots = [span for span in spans if span.parent_id is None]
        children = [span for span in spans if span.parent_id is not None]
        lines = [_line(span) for span in roots] or ["execute_run (not finished)"]
        for index, span in enumerate(children):
            branch = "└─" if index == len(children) - 1 else "├─"
            lines.append(f"{branch} {_line(span)}")
        return "\n".join(lines)

    def _keep(self, observation: Observation) -> None:
        spans = self._traces.get(observation.run_id)
        if spans is None:
            spans = {}
            self._traces.put(observation.run_id, spans)
        spans[observation.span_id] = observation


def _line(span: Observation) -> str:
    parts = [span.name]
    if span.kind is ObservationKind.AGENT:
        parts.append(str(span.metadata["status"]))
    if span.model is not None:
        parts.append(span.model)
    if span.usage is not None:
        parts.append(f"{span.usage.input_tokens} → {span.usage.output_tokens} tokens")
    if span.error is not None:
        parts.append(f"ERROR {span.error}")
    milliseconds = (span.finished_at - span.started_at).total_seconds() * 1000
    parts.append(f"{milliseconds:.0f} ms")
    return " · ".join(parts)
