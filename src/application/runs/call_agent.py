"""CallAgent: an agent called as a tool. The call starts a run, follows it, and returns its
answer."""

import asyncio
import hashlib
import json
import logging
from dataclasses import replace

from application.mcp.ports import McpProgress, ProgressCallback
from application.runs.agent_reply import progress_of, reply_of
from application.runs.called_runs import CalledRuns
from application.runs.cancel_run import CancelRun, CancelRunCommand
from application.runs.idempotency import idempotency_key_reused
from application.runs.new_run import KEY_LIFETIME
from application.runs.ports import RunReader, StoredThreads, events_topic, status_topic
from application.runs.start_run import StartRun, StartRunCommand
from application.system.ports import Clock
from application.system.wakeups import Wakeups
from application.tools.agent_calls import AgentCall, AgentReply
from domain.errors import ServiceError, Violation, conflict, existing, invalid, is_storage_away, not_found
from domain.ids import RunId, derived_id
from domain.runs.called_by import MAX_DEPTH, CalledBy
from domain.runs.run import Run, RunStatus
from domain.teams import teams_of
from domain.threads.message import TextContent
from domain.tools.result import ToolResult

logger = logging.getLogger(__name__)

SUSPENDED_WAIT_S = 25.0
"""How long a call stays open while its run is suspended: within the timeout of the least patient
clients."""
REREAD_S = 5.0
"""Rereads after this time in case a wake-up was lost."""
_PAGE = 500


class CallAgent:
    """Rules:
    - The run belongs to the caller, on its own thread, under its agent's policies, limits and
      budgets.
      It belongs to the team of the caller's thread, which decides whose agents are called.
      The calling agent's allowlist and policies apply to it, too (`caller_rules`).
    - A call repeated with its key gets the same run.
    - An abandoned or timed-out call cancels the run that it started, unless the run is suspended.
      The run of a caller that moves to another worker continues.
    - A call of a suspended run returns after a while; another call of the same caller fetches the
      answer.
    - The run of a caller that is a run is not bounded by `max_queued`, and is executed beside its
      caller while no worker has it.
    - Agents call each other at most `MAX_DEPTH` deep.
    """

    def __init__(
        self,
        *,
        start_run: StartRun,
        cancel_run: CancelRun,
        runs: RunReader,
        threads: StoredThreads,
        wakeups: Wakeups,
        clock: Clock,
        called_runs: CalledRuns | None = None,
        suspended_wait_s: float = SUSPENDED_WAIT_S,
    ) -> None:
        self._called_runs = called_runs
        self._start_run = start_run
        self._cancel_run = cancel_run
        self._runs = runs
        self._threads = threads
        self._wakeups = wakeups
        self._clock = clock
        self._suspended_wait_s = suspended_wait_s
        self._undoing: set[asyncio.Task[None]] = set()

    async def call(self, call: AgentCall) -> AgentReply:
        """Raises UNAVAILABLE `storage_unavailable`."""
        beginning = asyncio.create_task(self.begun(call))
        try:
            # If storing the run is interrupted here, nothing else knows the run's id.
            run = await asyncio.shield(beginning)
            return await self._answer(call, run) if call.caller.waits else reply_of(run)
        except ServiceError as error:
            if is_storage_away(error):
                raise
            return AgentReply(result=ToolResult.failed(error.code, f"The agent gave no answer. {error.detail}"))
        except asyncio.CancelledError:
            if not call.caller.moves():
                await self._undo(call, beginning)
            raise

    async def begun(self, call: AgentCall) -> Run:
        """The run of the call: the named one, the one of an earlier attempt, or a new one. Raises
        INVALID, NOT_FOUND, FORBIDDEN and CONFLICT."""
        asked, named = call.arguments.get("input"), call.arguments.get("run_id")
        if (asked is None) == (named is None):
            exactly_one = Violation(path="input", message="exactly one of `input` and `run_id` must be given")
            raise invalid("tool_arguments_invalid", "Give either `input` or `run_id`.", exactly_one)
        if named is not None:
            return await self._of_caller(call, RunId(str(named)))
        caller = call.caller
        if caller.depth >= MAX_DEPTH:
            raise conflict("agent_depth_exceeded", f"Agents call each other at most {MAX_DEPTH} deep.")
        run_id = agent_run_id(caller.id, caller.retry_key or call.tool_call_id)
        earlier = await self._runs.get(caller.principal.organization_id, run_id)
        if earlier is not None and self._clock.now() - earlier.created_at >= KEY_LIFETIME:
            if earlier.agent_id != call.agent.agent_id:
                raise idempotency_key_reused()
            return earlier  # its key has expired
        called_by = CalledBy(
            gateway_session_id=caller.gateway_session_id,
            run_id=caller.run_id,
            tool_call_id=call.tool_call_id,
            depth=caller.depth + 1,
            agent_id=caller.agent_id,
        )
        thread = existing(
            await self._threads.get(caller.principal.organization_id, caller.thread_id), "thread", caller.thread_id
        )
        started = await self._start_run.execute(
            StartRunCommand(
                # An agent may have been given to another team since it became a tool.
                principal=replace(caller.principal, teams=teams_of(thread.team)),
                agent=call.agent.agent_id,
                input=(TextContent(text=str(asked)),),
                team=thread.team,
                called_by=called_by,
                wired=call.agent.wired,
                run_id=run_id,
                idempotency_key=derived_id("agc", run_id),
                body_digest=hashlib.sha256(json.dumps([call.agent.agent_id, asked]).encode()).hexdigest(),
            )
        )
        return started.run

    async def _of_caller(self, call: AgentCall, run_id: RunId) -> Run:
        run = await self._runs.get(call.caller.principal.organization_id, run_id)
        called_by = None if run is None else CalledBy.of(run.metadata)
        if run is None or called_by is None or called_by.caller_id != call.caller.id:
            raise not_found("run", run_id)
        if run.agent_id != call.agent.agent_id:
            raise not_found("run", run_id)
        return run

    async def _answer(self, call: AgentCall, run: Run) -> AgentReply:
        deadline = asyncio.timeout(call.timeout_s)
        try:
            async with deadline:
                return reply_of(await self._at_rest(call, run))
        except TimeoutError:
            if not deadline.expired():
                raise
        stored = await self._stored(run)
        if stored.status.is_terminal or stored.status is RunStatus.REQUIRES_ACTION or not _started_it(call):
            return reply_of(stored)
        stopped = await self._cancelled(call, run)
        text = f"The agent did not answer within {call.timeout_s:g} s, and its run {run.id} was cancelled."
        return AgentReply(result=ToolResult.failed("tool_timeout", text), run=reply_of(stopped).run)

    async def _at_rest(self, call: AgentCall, run: Run) -> Run:
        """The run once it has ended, or has been suspended for a while."""
        tell, seq, waits_since = call.on_progress, 0, None
        topic = status_topic(run.id) if tell is None else events_topic(run.id)
        told = _Told()
        async with self._wakeups.subscribe(topic) as woken:
            while True:
                run = await self._stored(run)
                if tell is not None:
                    seq = await self._tell(run, tell, told, after_seq=seq)
                if run.status.is_terminal:
                    return run
                if run.status is RunStatus.QUEUED and call.caller.run_id is not None and self._called_runs is not None:
                    self._called_runs.begin(run.id)
                wait_s = REREAD_S
                if run.status is RunStatus.REQUIRES_ACTION:
                    waits_since = self._clock.monotonic() if waits_since is None else waits_since
                    left_s = waits_since + self._suspended_wait_s - self._clock.monotonic()
                    if left_s <= 0:
                        return run
                    wait_s = min(REREAD_S, left_s)
                else:
                    waits_since = None
                await woken.wait(wait_s)

    async def _tell(self, run: Run, tell: ProgressCallback, told: "_Told", *, after_seq: int) -> int:
        """Report the events since `after_seq`. Returns the last event's number."""
        while True:
            events = await self._runs.events(run.organization_id, run.id, after_seq=after_seq, limit=_PAGE)
            for event in events:
                message = progress_of(event)
                if message is not None:
                    told.steps += 1
                    await tell(McpProgress(progress=float(told.steps), message=message))
            after_seq = events[-1].seq if events else after_seq
            if not events or (len(events) < _PAGE and after_seq >= run.last_seq):
                return after_seq

    async def _stored(self, run: Run) -> Run:
        return existing(await self._runs.get(run.organization_id, run.id), "run", run.id)

    async def _cancelled(self, call: AgentCall, run: Run) -> Run:
        return await self._cancel_run.execute(CancelRunCommand(principal=call.caller.principal, run_id=run.id))

    async def _undo(self, call: AgentCall, beginning: "asyncio.Task[Run]") -> None:
        """Cancel the run that the call started or is starting. Another cancellation of the caller
        does not stop this."""
        if not _started_it(call):
            beginning.cancel()
            return

        async def undone() -> None:
            try:
                await self._cancelled(call, await beginning)
            except ServiceError as error:
                logger.warning(
                    "cannot cancel the run of an abandoned call",
                    extra={"tool_call_id": call.tool_call_id, "code": error.code},
                )

        undoing = asyncio.create_task(undone())
        self._undoing.add(undoing)
        undoing.add_done_callback(self._undoing.discard)
        await asyncio.shield(undoing)


def agent_run_id(caller_id: str, key: str) -> RunId:
    """The run's id: the same for every repetition of a session's or a run's call."""
    return RunId(derived_id("run", "agent", caller_id, key))


class _Told:
    """The number of reported steps: progress only grows (MCP basic/utilities/progress)."""

    steps = 0


def _started_it(call: AgentCall) -> bool:
    """Whether the call started the run, not only asks for it."""
    return call.arguments.get("run_id") is None
