"""The working state of one claimed run: a copy of the stored state, and the only way to advance
it."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from application.policy.canary_guard import CanaryGuard
from application.runs.execution.context_window import ContextWindow
from application.runs.execution.event_buffer import EventBuffer
from application.runs.execution.interruption import StopSignal
from application.runs.ports import ClaimedRun, RunJournal, StepOutcome
from application.system.ports import Clock
from application.tools.toolset import Toolset
from application.tracing.ports import ToolCallRecord, Tracer
from domain.agents.agent import Agent
from domain.copies import with_changes
from domain.identity.organization import Organization
from domain.ids import MessageId, RunId
from domain.json_value import JsonObject
from domain.policy.caller import CallerRules
from domain.runs.events import NewEvent
from domain.runs.ledger import ToolCall, ToolCallState
from domain.runs.limits import Limits
from domain.runs.output import is_repair_request
from domain.runs.shared_state import SharedState
from domain.runs.step import Step
from domain.runs.usage import ModelSpending, Usage
from domain.threads.message import Role


class RunSession:
    """Belongs to the task that executes the run; its tool tasks share it.

    - `open_calls`: calls of the current turn without a tool message, in the model's order.
    - `model`: the present model; a change of the agent may replace it. `toolset`: of the current
      turn.
    - `limits`: those of the agent, narrowed by the run and the organization. `organization`: as
      read at the start of the turn.
    - `caller`: the rules of the agent that called the run's agent as a tool, as read at the start
      of the turn.
    - `calls_made`: calls by tool, counted once a policy needs them.
    - `promoted`: the thread's next run after this one has ended.
    - `kept_reserve_usd`: reserved part of a daily budget after the current model call; None without
      a budget.
    - `abandoned`: interrupted model calls that the next step stores.
    - `unfinished`: a partly published message, neither stored nor discarded.
    - `shared_state`: the state of the front end, as far as it was read.

    `on_progress` is called after each stored step. Settled calls are traced when their step is
    stored.
    """

    def __init__(
        self,
        *,
        claimed: ClaimedRun,
        journal: RunJournal,
        clock: Clock,
        tracer: Tracer,
        stop: StopSignal,
        lease_holds: Callable[[], bool],
        on_progress: Callable[[], None] = lambda: None,
    ) -> None:
        self.lease = claimed.lease
        self.run = claimed.run
        self.agent = claimed.agent
        self.model = claimed.run.model
        self.guard = CanaryGuard.of(claimed.agent, claimed.run.id)
        self.transcript = [self.guard.message(message) for message in claimed.transcript]
        self.open_calls = {call.id: self.guard.call(call) for call in claimed.open_calls}
        self.stop = stop
        self.promoted: RunId | None = None
        self.kept_reserve_usd: Decimal | None = None
        self.abandoned: tuple[ModelSpending, ...] = ()
        self.unfinished: MessageId | None = None
        self.buffer = EventBuffer(self._append)
        self._journal = journal
        self._clock = clock
        self._tracer = tracer
        self._settled_before = [call for call in self.open_calls.values() if call.was_settled_by_people]
        self._last_seq = claimed.run.last_seq
        self._lease_holds = lease_holds
        self._on_progress = on_progress
        self._claimed_at = clock.monotonic()
        self._active_before = claimed.run.active_s
        self._writing = asyncio.Lock()
        self.window = ContextWindow()
        self.toolset: Toolset | None = None
        self.organization: Organization | None = None
        self.caller: CallerRules | None = None
        self.limits = self._limits()
        self.calls_made: Counter[str] | None = None
        self.shared_state = SharedState.of(claimed.run)

    @property
    def output_schema(self) -> JsonObject | None:
        """The run's, otherwise the agent's."""
        return self.agent.config.output_schema if self.run.output_schema is None else self.run.output_schema

    @property
    def repairs_output(self) -> bool:
        """Whether the model is asked to repair its answer now."""
        return bool(self.transcript) and is_repair_request(self.transcript[-1], self.run)

    @property
    def has_repaired_output(self) -> bool:
        """Whether the model was asked to repair an answer of this run."""
        return any(is_repair_request(message, self.run) for message in reversed(self.transcript))

    @property
    def usage(self) -> Usage:
        """The run's totals, including unstored model calls."""
        return _with_abandoned(self.run.usage, self.abandoned)

    @property
    def active_s(self) -> float:
        """Active time of all attempts, in seconds."""
        return self._active_before + self._clock.monotonic() - self._claimed_at

    @property
    def time_left_s(self) -> float:
        """Remaining active time, including the closing turn's share."""
        return self.limits.timeout_s - self.active_s

    @property
    def work_time_left_s(self) -> float:
        """Remaining active time before the closing turn's share."""
        return self.time_left_s - self.limits.closing_time_s

    @property
    def lease_holds(self) -> bool:
        """Whether the lease is valid (checked before every send)."""
        return self._lease_holds()

    def adopt(self, newest: Agent) -> None:
        """Continue with the newest agent. A run on its agent's model changes with it; another model
        stays while it is listed."""
        follows = self.model == self.agent.config.model
        if newest.config.canary_tokens != self.agent.config.canary_tokens:
            self.guard = CanaryGuard.of(newest, self.run.id)
            self.transcript = [self.guard.message(message) for message in self.transcript]
        self.agent = newest
        self.model = newest.config.model if follows else self._listed(self.model)
        self.run = replace(self.run, agent_version=newest.version)
        self.limits = self._limits()

    def govern(self, organization: Organization | None) -> None:
        """Continue under the organization's present settings. A model that is no longer listed is
        replaced by the agent's."""
        self.organization = organization
        self.model = self._listed(self.model)
        self.limits = self._limits()

    async def advance(self, build: Callable[[], Step]) -> StepOutcome:
        """Store one step, after buffered events, and update this session. Raises LeaseLost.

        `build` is called when the step's turn comes, so that it sees earlier steps. A started
        write completes even if the caller is cancelled, so that the session equals the stored
        state.
        """
        return await asyncio.shield(self._advance(build))

    async def flush(self) -> None:
        """Write buffered events. Raises LeaseLost."""
        async with self._writing:
            waiting = await self.buffer.take()
            if waiting:
                with self.buffer.paused():
                    await self._append(waiting)

    async def _advance(self, build: Callable[[], Step]) -> StepOutcome:
        async with self._writing:
            waiting = await self.buffer.take()
            abandoned = self.abandoned
            step = self._completed(build(), waiting)
            # One write at a time: event numbers show whether an unanswered commit took effect.
            with self.buffer.paused():
                outcome = await self._journal.commit(self.lease, step)
            self._on_progress()
            if abandoned:
                self.abandoned = self.abandoned[len(abandoned) :]
            self._mirror(step, outcome)
            if outcome.ending is not None:
                self._mirror(outcome.ending, outcome)
            return outcome

    def _completed(self, step: Step, waiting: tuple[NewEvent, ...]) -> Step:
        """The step with `waiting` events and interrupted model calls. Its run has its final values,
        so that `_mirror` needs no copy."""
        abandoned, spent = self.abandoned, step.spent
        if abandoned:
            spent = (*(replace(call, still_reserved_usd=self.kept_reserve_usd) for call in abandoned), *spent)
        events = (*waiting, *step.events) if waiting else step.events
        run = step.run.advanced(
            usage=_with_abandoned(step.run.usage, abandoned),
            active_s=self.active_s,
            last_seq=self._last_seq + len(events),
        )
        return with_changes(step, run=run, events=events, spent=spent)

    def _mirror(self, step: Step, outcome: StepOutcome) -> None:
        foreseen = step.run.last_seq == outcome.last_seq and not step.run.lapses
        self.run = step.run if foreseen else step.run.advanced(usage=step.run.usage, last_seq=outcome.last_seq)
        self._last_seq = outcome.last_seq
        self.promoted = outcome.promoted or self.promoted
        over = self._settled_before
        self._settled_before = []
        for call in step.recorded:
            self.open_calls[call.id] = call
            if call.state is ToolCallState.SETTLED:
                over.append(call)
        for call in step.changed:
            self.open_calls[call.id] = call
        for call in step.settled:
            self.open_calls[call.id] = call
            over.append(call)
        if over and self._tracer.enabled:
            self._tell(over)
        for message in step.messages:
            self.transcript.append(message)
            if message.role is Role.TOOL:
                self.open_calls.clear()
            if message.id == self.unfinished:
                self.unfinished = None

    def _tell(self, calls: list[ToolCall]) -> None:
        for call in calls:
            tool = None if self.toolset is None else self.toolset.find(call.name)
            self._tracer.tool_call(ToolCallRecord(run=self.run, call=call, tool=tool))

    async def _append(self, events: tuple[NewEvent, ...]) -> None:
        await self._journal.append(self.lease, events)
        self._last_seq += len(events)

    def _limits(self) -> Limits:
        settings = self.agent.config.limits.narrowed_by(self.run.limits)
        return Limits.of(settings if self.organization is None else settings.narrowed_by(self.organization.limits))

    def _listed(self, model: str) -> str:
        """The model if it is still listed, otherwise the agent's."""
        of_organization = () if self.organization is None else self.organization.models
        config = self.agent.config
        return model if model in config.models or model in of_organization else config.model


def _with_abandoned(usage: Usage, abandoned: tuple[ModelSpending, ...]) -> Usage:
    for call in abandoned:
        usage = usage.after_abandoned(call.usage)
    return usage
