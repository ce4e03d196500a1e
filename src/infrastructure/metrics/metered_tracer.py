"""Derives metrics from trace records and passes the records on."""

from dataclasses import dataclass
from datetime import datetime

from prometheus_client import Counter, Histogram

from application.system.lru import LruCache
from application.tracing.ports import GatewayCallRecord, GenerationRecord, ToolCallRecord, WorkflowRecord
from domain.agents.agent import Agent
from domain.gateway.session import GatewaySession
from domain.ids import RunId, ToolCallId
from domain.runs.run import Run
from domain.tools.capabilities import ToolType
from domain.tools.result import ToolOutcome
from infrastructure.metrics.instruments import Instruments
from infrastructure.tracing.closable import ClosableTracer

MAX_TURNS_UNDER_WAY = 4096
"""Runs with a known current turn. The end of a run that another process continues is never seen
here."""
_UNKNOWN_TOOL = "unknown"
_OUTCOMES = {
    ToolOutcome.SUCCEEDED: "ok",
    ToolOutcome.FAILED: "error",
    ToolOutcome.UNKNOWN: "error",
    ToolOutcome.BLOCKED: "blocked",
}


@dataclass(frozen=True, slots=True)
class _Turn:
    attempt: int
    began_at: datetime


class MeteredTracer:
    """The ports `Tracer`, `GatewayTracer` and `WorkflowTracer` as a wrapper. It is always enabled,
    because metrics cannot be switched off."""

    def __init__(self, tracer: ClosableTracer, *, instruments: Instruments) -> None:
        self._tracer = tracer
        self._instruments = instruments
        self._turns: LruCache[RunId, _Turn] = LruCache(MAX_TURNS_UNDER_WAY)
        # Looking up a metric by labels costs more than counting.
        self._gateway_calls: dict[tuple[ToolType, ToolOutcome], Histogram] = {}
        self._tool_calls: dict[tuple[ToolType | None, ToolOutcome], Histogram] = {}
        self._model_calls: dict[tuple[str, bool], Histogram] = {}
        self._tokens: dict[str, tuple[Counter, Counter, Counter]] = {}
        self._costs: dict[str, Counter] = {}

    @property
    def enabled(self) -> bool:
        """Metrics need every record."""
        return True

    def generation(self, record: GenerationRecord) -> None:
        instruments, reply = self._instruments, record.reply
        model = instruments.model_label(record.request.model if reply is None else reply.model)
        took_s = (record.finished_at - record.started_at).total_seconds()
        outcome = (model, record.error_code is None)
        calls = self._model_calls.get(outcome)
        if calls is None:
            labelled = instruments.model_call.labels(model, "ok" if record.error_code is None else "error")
            calls = self._model_calls[outcome] = labelled
        calls.observe(took_s)
        if reply is not None:
            usage = reply.usage
            taken_in, put_out, cached = self._tokens.get(model) or self._tokens_of(model)
            taken_in.inc(usage.input_tokens)
            put_out.inc(usage.output_tokens)
            if usage.cached_tokens:
                cached.inc(usage.cached_tokens)
            if usage.cost_usd is not None:
                cost = self._costs.get(model) or self._cost_of(model)
                cost.inc(float(usage.cost_usd))
        self._turn_over(record.run, record.started_at)
        self._turns.put(record.run.id, _Turn(record.run.attempt, record.started_at))
        self._tracer.generation(record)

    def tool_call(self, record: ToolCallRecord) -> None:
        kind = (record.call.type, record.result.outcome)
        found = self._tool_calls.get(kind)
        if found is None:
            shown = _UNKNOWN_TOOL if kind[0] is None else kind[0].value
            labelled = self._instruments.tool_call.labels(shown, _OUTCOMES[kind[1]])
            found = self._tool_calls[kind] = labelled
        found.observe((record.finished_at - record.started_at).total_seconds())
        self._tracer.tool_call(record)

    def run_finished(self, run: Run, agent: Agent | None) -> None:
        instruments = self._instruments
        instruments.runs_ended.labels(run.status.value).inc()
        if run.started_at is not None:
            instruments.run_active.observe(run.active_s)
            instruments.run_start_delay.observe((run.started_at - run.created_at).total_seconds())
        if run.finished_at is not None:
            self._turn_over(run, run.finished_at)
        self._tracer.run_finished(run, agent)

    def trace_context(self, run: Run, call_id: ToolCallId) -> dict[str, str]:
        return self._tracer.trace_context(run, call_id)

    def workflow_finished(self, record: WorkflowRecord) -> None:
        self._instruments.workflow_runs_ended.labels(record.run.status.value).inc()
        self._tracer.workflow_finished(record)

    def gateway_call(self, record: GatewayCallRecord) -> None:
        settlement = record.settlement
        kind = (settlement.call.type, settlement.result.outcome)
        found = self._gateway_calls.get(kind)
        if found is None:
            labelled = self._instruments.gateway_call.labels(kind[0].value, _OUTCOMES[kind[1]])
            found = self._gateway_calls[kind] = labelled
        found.observe(settlement.duration_ms / 1000)
        self._tracer.gateway_call(record)

    def gateway_context(self, session: GatewaySession, call_id: ToolCallId) -> dict[str, str]:
        return self._tracer.gateway_context(session, call_id)

    async def close(self) -> None:
        await self._tracer.close()

    def _tokens_of(self, model: str) -> tuple[Counter, Counter, Counter]:
        tokens = self._instruments.tokens
        found = (tokens.labels(model, "input"), tokens.labels(model, "output"), tokens.labels(model, "cached"))
        self._tokens[model] = found
        return found

    def _cost_of(self, model: str) -> Counter:
        """Only for models with a price: the others have no sample."""
        found = self._costs[model] = self._instruments.cost.labels(model)
        return found

    def _turn_over(self, run: Run, at: datetime) -> None:
        """Record the turn's duration. A suspension ends the attempt, so waiting for people is never
        included."""
        turn = self._turns.pop(run.id)
        if turn is not None and turn.attempt == run.attempt:
            self._instruments.turn.observe((at - turn.began_at).total_seconds())
