"""The working state of one claimed run: what is stored, mirrored in memory, and the only way to advance it."""

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
from domain.identity.organization import Organization
from domain.ids import MessageId, RunId
from domain.runs.events import NewEvent
from domain.runs.ledger import ToolCall, ToolCallState
from domain.runs.limits import Limits
from domain.runs.step import Step
from domain.runs.usage import ModelSpending, Usage
from domain.threads.message import Role


class RunSession:
    """Belongs to the task that executes the run; its tool tasks share it. `open_calls` are the calls of the turn
    under way that no tool message answers yet, in the model's order; `model` is the one in force, which a change of the agent may replace; `limits` are the agent's, narrowed by
    the run's and the organization's; `organization` is what the run's organization said when the turn began (None before the
    first), `calls_made` counts calls by tool once a policy
    has asked for it; `promoted` is the thread's next run once this one has ended; `kept_reserve_usd` is what stays
    reserved of a daily budget once the model call under way is paid for, None without a budget; `abandoned` are model
    calls that were cut off and are not stored yet: the next step stores them, whatever it is; `unfinished` is a message that
    was published in part, neither stored nor taken back yet; `toolset` is the one of the
    turn, once there is one. Every call that is settled in a step is told to tracing when the step is stored."""

    def __init__(
        self,
        *,
        claimed: ClaimedRun,
        journal: RunJournal,
        clock: Clock,
        tracer: Tracer,
        stop: StopSignal,
        lease_holds: Callable[[], bool],
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
        self._claimed_at = clock.monotonic()
        self._active_before = claimed.run.active_s
        self._writing = asyncio.Lock()
        self.window = ContextWindow()
        self.toolset: Toolset | None = None
        self.organization: Organization | None = None
        self.limits = self._limits()
        self.calls_made: Counter[str] | None = None

    @property
    def usage(self) -> Usage:
        """The run's totals, with what is not stored yet."""
        return _with_abandoned(self.run.usage, self.abandoned)

    @property
    def active_s(self) -> float:
        """Active time of the run over all attempts, in seconds."""
        return self._active_before + self._clock.monotonic() - self._claimed_at

    @property
    def time_left_s(self) -> float:
        """Active time left, the closing turn's share included."""
        return self.limits.timeout_s - self.active_s

    @property
    def work_time_left_s(self) -> float:
        """Active time left before the closing turn's share begins."""
        return self.time_left_s - self.limits.closing_time_s

    @property
    def lease_holds(self) -> bool:
        """Whether the lease was renewed recently enough to act outside (checked before every send)."""
        return self._lease_holds()

    def adopt(self, newest: Agent) -> None:
        """Go on with the agent as it is now. A run on its agent's model follows it; one on another stays there while the
        agent lists it."""
        follows = self.model == self.agent.config.model
        if newest.config.canary_tokens != self.agent.config.canary_tokens:
            self.guard = CanaryGuard.of(newest, self.run.id)
            self.transcript = [self.guard.message(message) for message in self.transcript]
        self.agent = newest
        self.model = newest.config.model if follows else self._listed(self.model)
        self.run = replace(self.run, agent_version=newest.version)
        self.limits = self._limits()

    def govern(self, organization: Organization | None) -> None:
        """Go on under what the organization says now. A run on a model that neither its agent nor the organization lists
        any more takes the agent's."""
        self.organization = organization
        self.model = self._listed(self.model)
        self.limits = self._limits()

    async def advance(self, build: Callable[[], Step]) -> StepOutcome:
        """Store one step, buffered events first, and mirror it here. Raises LeaseLost.

        `build` is called when it is this step's turn, so that it sees what the steps before it have changed. A write that
        has begun is finished even if the caller is cancelled: what is stored and what is mirrored never part.
        """
        return await asyncio.shield(self._advance(build))

    async def flush(self) -> None:
        """Write out what is buffered. Raises LeaseLost."""
        async with self._writing:
            waiting = await self.buffer.take()
            if waiting:
                with self.buffer.held():
                    await self._append(waiting)

    async def _advance(self, build: Callable[[], Step]) -> StepOutcome:
        async with self._writing:
            waiting = await self.buffer.take()
            abandoned = self.abandoned
            step = self._completed(build(), waiting)
            # One write at a time: the numbers of a run's events tell whether a commit that was not answered took effect.
            with self.buffer.held():
                outcome = await self._journal.commit(self.lease, step)
            if abandoned:
                self.abandoned = self.abandoned[len(abandoned) :]
            self._mirror(step, outcome)
            if outcome.ending is not None:
                self._mirror(outcome.ending, outcome)
            return outcome

    def _completed(self, step: Step, waiting: tuple[NewEvent, ...]) -> Step:
        """The step with what waits to be stored with it: `waiting` events, and model calls that were cut off. Its run is as it
        will be once it is stored, so that nothing is to be made anew then."""
        abandoned, spent = self.abandoned, step.spent
        if abandoned:
            spent = (*(replace(call, still_reserved_usd=self.kept_reserve_usd) for call in abandoned), *spent)
        events = (*waiting, *step.events) if waiting else step.events
        run = step.run.advanced(
            usage=_with_abandoned(step.run.usage, abandoned),
            active_s=self.active_s,
            last_seq=self._last_seq + len(events),
        )
        return replace(step, run=run, events=events, spent=spent)

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
        for settlement in step.settled:
            call = self.open_calls[settlement.tool_call_id].settled(settlement)
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
            self._tracer.tool_call(ToolCallRecord.of(self.run, call, tool))

    async def _append(self, events: tuple[NewEvent, ...]) -> None:
        await self._journal.append(self.lease, events)
        self._last_seq += len(events)

    def _limits(self) -> Limits:
        settings = self.agent.config.limits.narrowed_by(self.run.limits)
        return Limits.of(settings if self.organization is None else settings.narrowed_by(self.organization.limits))

    def _listed(self, model: str) -> str:
        """The model, unless whoever listed it has given it up."""
        of_organization = () if self.organization is None else self.organization.models
        config = self.agent.config
        return model if model in config.models or model in of_organization else config.model


def _with_abandoned(usage: Usage, abandoned: tuple[ModelSpending, ...]) -> Usage:
    for call in abandoned:
        usage = usage.after_abandoned(call.usage)
    return usage
