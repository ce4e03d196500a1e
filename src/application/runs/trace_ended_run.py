"""Completes the trace of a run that ended without a worker: by the thread's next message, a stop,
or its claim."""

import logging

from application.agents.ports import AgentStore
from application.policy.canary_guard import CanaryGuard
from application.runs.ports import RunReader
from application.tracing.ports import ToolCallRecord, Tracer
from domain.agents.agent import Agent
from domain.runs.ledger import ToolCall
from domain.runs.run import Run

logger = logging.getLogger(__name__)


class TraceEndedRun:
    """Rules:
    - The run is traced, with the calls of its last turn that no worker traced: settled by
      people, or with the end of the run.
    - Without tracing nothing is read. A failed read leaves the trace incomplete and does not affect
      the run.
    """

    def __init__(self, *, runs: RunReader, agents: AgentStore, tracer: Tracer) -> None:
        self._runs = runs
        self._agents = agents
        self._tracer = tracer

    async def execute(self, run: Run) -> None:
        if not self._tracer.enabled:
            return
        agent: Agent | None = None
        calls: tuple[ToolCall, ...] = ()
        try:
            agent = await self._agents.get(run.organization_id, run.agent_id)
            calls = await self._runs.tool_calls(run.organization_id, run.id)
        except Exception:
            logger.exception("the trace of an ended run is incomplete", extra={"run_id": run.id})
        guard = CanaryGuard({}) if agent is None else await CanaryGuard.prepared(agent, run.id)
        last_turn = max((call.turn for call in calls), default=0)
        for call in calls:
            ended_with_run = call.settled_at is not None and call.settled_at == run.finished_at
            if call.turn == last_turn and (ended_with_run or call.was_settled_by_people):
                self._tracer.tool_call(ToolCallRecord(run=run, call=guard.call(call), tool=None))
        self._tracer.run_finished(run, agent)
