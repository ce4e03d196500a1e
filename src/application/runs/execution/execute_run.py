"""Executes one run on this worker: claims it, works until it ends, waits or is stopped, and leaves
it consistent."""

import asyncio
import logging
from dataclasses import dataclass, replace
from datetime import datetime

from application.mcp.ports import ConnectionScope, McpConnections
from application.models.ports import ModelError
from application.policy.canary_guard import CanaryGuard
from application.runs.execution.active_runs import ActiveRuns
from application.runs.execution.agent_loop import AgentLoop
from application.runs.execution.interruption import Interrupted, StopReason, StopSignal
from application.runs.execution.isolation import Isolation
from application.runs.execution.run_memory import RunMemory, RunRoom
from application.runs.execution.run_session import RunSession
from application.runs.ports import (
    AccountConsents,
    ClaimedRun,
    EndedAtClaim,
    LeaseLost,
    RunJournal,
    RunLeases,
    RunQueue,
    control_topic,
)
from application.runs.trace_ended_run import TraceEndedRun
from application.system.ended import ended
from application.system.ports import Clock, IdSource, LogContext
from application.system.wakeups import Subscription, Wakeups
from application.tracing.ports import Tracer
from domain.errors import is_storage_away
from domain.ids import RunId
from domain.runs.claiming import Suspected
from domain.runs.closing import cancelled_step, closing_step
from domain.runs.lease import Lease
from domain.runs.run import Run, RunError, RunStatus
from domain.runs.run_events import message_discarded
from domain.runs.step import Step
from domain.tools.result import ToolResult

logger = logging.getLogger(__name__)

CONTROL_REREAD_S = 5.0
"""Rereads cancel requests after this time in case a wake-up was lost."""
_FAILED = "The run failed before this call was finished."


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecuteRunCommand:
    """Signal that a run is ready to execute. `is_called`: a run that this worker executes waits for
    it."""

    run_id: RunId
    is_called: bool = False


class ExecuteRun:
    """Rules:
    - A run is claimed once there is room for its transcript (`RunMemory`). A worker that drains
      submits it for others.
    - The claim decides which worker executes the run.
    - A run that is suspected of ending workers waits for its place (`Isolation`). Run recovery
      submits it again.
    - A called run waits neither for room nor for that place, which its caller may have.
    - A stop from outside interrupts waits, but no write. At every end each call has a result.
    - An internal error fails the run with a reference and never ends the worker.
    - After a lost lease nothing is written.
    - A run whose steps cannot be stored is left unchanged. It is recovered when its lease expires.
    - A run that waits for an account continues if it was connected just before the wait was stored.
    - At the end, connections of the run are released, and the thread's next run, or this run if
      it was handed back, is submitted.
    """

    def __init__(
        self,
        *,
        leases: RunLeases,
        journal: RunJournal,
        queue: RunQueue,
        wakeups: Wakeups,
        loop: AgentLoop,
        active_runs: ActiveRuns[Lease],
        memory: RunMemory,
        connections: McpConnections,
        tracer: Tracer,
        trace_ended: TraceEndedRun,
        consents: AccountConsents,
        clock: Clock,
        ids: IdSource,
        log_context: LogContext,
    ) -> None:
        self._leases = leases
        self._journal = journal
        self._queue = queue
        self._wakeups = wakeups
        self._loop = loop
        self._active_runs = active_runs
        self._memory = memory
        self._connections = connections
        self._tracer = tracer
        self._trace_ended = trace_ended
        self._consents = consents
        self._clock = clock
        self._ids = ids
        self._log_context = log_context
        self._isolation = Isolation(clock)

    async def execute(self, command: ExecuteRunCommand) -> None:
        """Returns when this worker has finished with the run, or at once if the run cannot be
        claimed."""
        run_id, since = command.run_id, self._clock.now()
        room = self._memory.room_beside_caller() if command.is_called else await self._memory.room()
        if room is None:
            await self._queue.submit(run_id)
            return
        with room.hold:
            session = await self._execute(run_id, room, takes_suspects=command.is_called)
            if isinstance(session, Suspected) and await self._has_place(session.run):
                try:
                    session = await self._execute(run_id, room, takes_suspects=True)
                finally:
                    self._isolation.leave(run_id)
        if isinstance(session, RunSession):
            await self._leave(session, since)

    async def _has_place(self, suspect: Run) -> bool:
        """Occupy the place of suspects. False if the run must wait."""
        with self._isolation.candidate(suspect):
            await self._active_runs.claims_ended()
            return self._isolation.enter(suspect.id, others=self._active_runs.count_with_claims)

    async def _execute(self, run_id: RunId, room: RunRoom, *, takes_suspects: bool) -> RunSession | Suspected | None:
        """The session of the run after its execution. None if there is nothing to execute."""
        async with self._wakeups.subscribe(control_topic(run_id)) as control:
            began = self._clock.monotonic()
            with self._active_runs.claiming():
                claimed = await self._leases.claim(
                    run_id,
                    self._active_runs.worker_id,
                    lease_s=self._active_runs.lease_s,
                    at=self._clock.now(),
                    takes_suspects=takes_suspects,
                )
            if isinstance(claimed, EndedAtClaim):
                await self._ended_at_claim(claimed)
            if not isinstance(claimed, ClaimedRun):
                return claimed if isinstance(claimed, Suspected) else None
            await CanaryGuard.prepared(claimed.agent, run_id)  # so that the session finds its forms ready
            stop = StopSignal()
            holds = self._active_runs.add(claimed.lease, stop, claimed_at=began)
            session = RunSession(
                claimed=claimed,
                journal=self._journal,
                clock=self._clock,
                tracer=self._tracer,
                stop=stop,
                lease_holds=holds,
                on_progress=lambda: self._progressed(run_id, session, room),
            )
            session.window.measure(session.transcript)
            room.read(session.window.held_bytes)
            lease = claimed.lease
            with self._log_context(
                run_id=lease.run_id, thread_id=lease.thread_id, organization_id=lease.organization_id
            ):
                await self._hold(session, control)
        return session

    def _progressed(self, run_id: RunId, session: RunSession, room: RunRoom) -> None:
        self._isolation.leave(run_id)
        room.grown(session.window.held_bytes)

    async def _ended_at_claim(self, claimed: EndedAtClaim) -> None:
        run = claimed.run
        ids = {"run_id": run.id, "thread_id": run.thread_id, "organization_id": run.organization_id}
        logger.log(
            logging.WARNING if run.status is RunStatus.FAILED else logging.INFO,
            "run ended when it was claimed",
            extra={
                **ids,
                "agent_id": run.agent_id,
                "attempt": run.attempt,
                "status": run.status.value,
                "error_code": None if run.error is None else run.error.code,
            },
        )
        await self._connections.release(ConnectionScope(organization_id=run.organization_id, run_id=run.id))
        if claimed.promoted is not None:
            await self._queue.submit(claimed.promoted)
        await self._trace_ended.execute(run)

    async def _hold(self, session: RunSession, control: Subscription) -> None:
        watching = asyncio.create_task(self._watch_control(session.lease, control, session.stop))
        try:
            await self._work(session)
        finally:
            session.buffer.close()
            self._active_runs.remove(session.lease)
            watching.cancel()
            await ended(watching)

    async def _work(self, session: RunSession) -> None:
        ids = _log_ids(session)
        try:
            await self._loop.run(session)
            logger.debug("run left the loop", extra={**ids, "status": session.run.status.value})
        except LeaseLost:
            logger.warning("lease lost; this worker stops writing the run", extra=ids)
        except Interrupted as stopped:
            await self._stopped(session, stopped.reason)
        except ModelError as error:
            logger.warning("model failed", extra={**ids, "error_code": error.code})
            failed = RunError(code=error.code, detail=error.detail, provider_error=error.provider_error)
            await self._fail(session, failed)
        except Exception as error:
            if is_storage_away(error):
                logger.warning("storage unavailable; run will be recovered when its lease expires", extra=ids)
                return
            reference = self._ids.new("ref")
            logger.exception("run failed unexpectedly", extra={**ids, "reference": reference})
            detail = f"The run failed because of an internal error (reference {reference})."
            await self._fail(session, RunError(code="internal_error", detail=detail))

    async def _stopped(self, session: RunSession, reason: StopReason) -> None:
        ids = _log_ids(session)
        try:
            if reason is StopReason.CANCELLED:
                now = self._clock.now()
                await session.advance(
                    lambda: cancelled_step(
                        session.run, tuple(session.open_calls.values()), at=now, actor=session.stop.actor
                    )
                )
                logger.info("run cancelled", extra=ids)
            elif reason is StopReason.SHUTDOWN:
                if session.abandoned:
                    await session.advance(lambda: Step(run=session.run))
                await session.flush()
                if await self._leases.hand_back(session.lease, active_s=session.active_s, at=self._clock.now()):
                    logger.info("run handed back", extra=ids)
                    await self._queue.submit(session.run.id)  # another worker may claim it at once
                else:
                    logger.warning("lease lost; this worker stops writing the run", extra=ids)
            else:
                logger.warning("lease lost; this worker stops writing the run", extra=ids)
        except LeaseLost:
            logger.warning("lease lost; this worker stops writing the run", extra=ids)
        except Exception:
            logger.exception("cannot store the stop of a run", extra={**ids, "reason": reason.value})

    async def _fail(self, session: RunSession, error: RunError) -> None:
        """End the run as failed. If that cannot be stored, the run is recovered when its lease
        expires."""
        if session.run.status is not RunStatus.IN_PROGRESS:
            return
        now = self._clock.now()

        def build() -> Step:
            failed = session.run.ended(RunStatus.FAILED, at=now, error=error)
            step = closing_step(
                failed, tuple(session.open_calls.values()), result=ToolResult.failed("run_failed", _FAILED), at=now
            )
            if session.unfinished is None:
                return step
            taken_back = message_discarded(session.unfinished, reason=error.code, at=now)
            return replace(step, events=(taken_back, *step.events))

        try:
            await session.advance(build)
        except LeaseLost:
            logger.warning("lease lost; this worker stops writing the run", extra=_log_ids(session))
        except Exception:
            logger.exception("cannot store the failure of a run", extra=_log_ids(session))

    async def _leave(self, session: RunSession, since: datetime) -> None:
        run = session.run
        # Only connections of the run: the thread's next run uses the thread's. A server that waits
        # for an answer stays connected, because many servers sign their state with a key of their
        # process.
        if not (run.status is RunStatus.REQUIRES_ACTION and any(use.elicitation for use in run.pending)):
            await self._connections.release(ConnectionScope(organization_id=run.organization_id, run_id=run.id))
        if run.status.is_terminal:
            self._tracer.run_finished(run, session.agent)
        if session.promoted is not None:
            await self._queue.submit(session.promoted)
        if any(use.elicitation is not None and use.elicitation.is_for_account for use in run.pending):
            try:
                await self._consents.began_to_wait(run, since)
            except Exception:
                logger.exception("cannot read whether an account is connected", extra=_log_ids(session))

    async def _watch_control(self, lease: Lease, control: Subscription, stop: StopSignal) -> None:
        """Stop the run when a cancellation is requested. A failed read is repeated at the next
        wake-up."""
        while stop.fired is None:
            await control.wait(CONTROL_REREAD_S)
            try:
                actor = await self._journal.cancel_requested_by(lease)
                if actor is not None:
                    stop.fire(StopReason.CANCELLED, actor=actor)
            except Exception:
                logger.exception("cannot read cancel requests", extra={"run_id": lease.run_id})


def _log_ids(session: RunSession) -> dict[str, object]:
    run = session.run
    return {
        "run_id": run.id,
        "thread_id": run.thread_id,
        "organization_id": run.organization_id,
        "attempt": run.attempt,
        "turns": run.usage.turns,
    }
