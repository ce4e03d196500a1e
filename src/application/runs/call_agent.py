"""CallAgent: an agent called as a tool. The call starts a run like any other, follows it, and answers with what it came to."""

import asyncio
import hashlib
import json
import logging

from application.mcp.ports import McpProgress, ProgressCallback
from application.runs.agent_reply import progress_of, reply_of
from application.runs.cancel_run import CancelRun, CancelRunCommand
from application.runs.idempotency import idempotency_key_reused
from application.runs.ports import KEY_LIFETIME, RunReader, events_topic, status_topic
from application.runs.start_run import StartRun, StartRunCommand
from application.system.ports import Clock
from application.system.wakeups import Wakeups
from application.tools.agent_calls import AgentCall, AgentReply
from domain.errors import ServiceError, Violation, conflict, invalid, is_storage_away, not_found
from domain.ids import GatewaySessionId, RunId, derived_id
from domain.runs.called_by import MAX_DEPTH, CalledBy
from domain.runs.run import Run, RunStatus
from domain.threads.message import TextContent
from domain.tools.result import ToolResult

logger = logging.getLogger(__name__)

HOLD_S = 25.0
"""How long a call stays open while its run waits for somebody: no longer than the least patient clients do."""
REREAD_S = 5.0
"""How often the run is looked at even if nobody rang."""
_PAGE = 500


class CallAgent:
    """Rules: the run is the caller's, on a thread of its own, under its agent's policies, limits and budgets; a call that is
    made again with its key has the run that it had; a call that is given up, or lasts too long, cancels the run that it
    started, unless that waits for somebody; a run that waits is told of after a while, and its answer can be had by another
    call of the same session; agents call each other no deeper than `MAX_DEPTH`."""

    def __init__(
        self,
        *,
        start_run: StartRun,
        cancel_run: CancelRun,
        runs: RunReader,
        wakeups: Wakeups,
        clock: Clock,
        hold_s: float = HOLD_S,
    ) -> None:
        self._start_run = start_run
        self._cancel_run = cancel_run
        self._runs = runs
        self._wakeups = wakeups
        self._clock = clock
        self._hold_s = hold_s
        self._undoing: set[asyncio.Task[None]] = set()

    async def call(self, call: AgentCall) -> AgentReply:
        """The answer. Raises UNAVAILABLE `storage_unavailable`."""
        beginning = asyncio.create_task(self.begun(call))
        try:
            # A run that is being stored is found again only by who waits for its id.
            run = await asyncio.shield(beginning)
            return await self._answer(call, run) if call.caller.waits else reply_of(run)
        except ServiceError as error:
            if is_storage_away(error):
                raise
            return AgentReply(result=ToolResult.failed(error.code, f"The agent gave no answer. {error.detail}"))
        except asyncio.CancelledError:
            await self._undo(call, beginning)
            raise

    async def begun(self, call: AgentCall) -> Run:
        """The run of the call: the one that it names, or was given before, else one that is started now. Raises INVALID,
        NOT_FOUND, FORBIDDEN and CONFLICT."""
        asked, named = call.arguments.get("input"), call.arguments.get("run_id")
        if (asked is None) == (named is None):
            exactly_one = Violation(path="input", message="exactly one of `input` and `run_id` is to be given")
            raise invalid("tool_arguments_invalid", "Give either `input` or `run_id`.", exactly_one)
        if named is not None:
            return await self._of_session(call, RunId(str(named)))
        caller = call.caller
        if caller.depth >= MAX_DEPTH:
            raise conflict("agent_depth_exceeded", f"Agents call each other at most {MAX_DEPTH} deep.")
        run_id = agent_run_id(caller.gateway_session_id, caller.retry_key or call.tool_call_id)
        earlier = await self._runs.get(caller.principal.organization_id, run_id)
        if earlier is not None and self._clock.now() - earlier.created_at >= KEY_LIFETIME:
            if earlier.agent_id != call.agent.agent_id:
                raise idempotency_key_reused()
            return earlier  # its key is forgotten by now
        called_by = CalledBy(
            gateway_session_id=caller.gateway_session_id, tool_call_id=call.tool_call_id, depth=caller.depth + 1
        )
        started = await self._start_run.execute(
            StartRunCommand(
                principal=caller.principal,
                agent=call.agent.agent_id,
                input=(TextContent(text=str(asked)),),
                metadata=called_by.metadata(),
                run_id=run_id,
                idempotency_key=derived_id("agc", run_id),
                body_digest=hashlib.sha256(json.dumps([call.agent.agent_id, asked]).encode()).hexdigest(),
            )
        )
        return started.run

    async def _of_session(self, call: AgentCall, run_id: RunId) -> Run:
        run = await self._runs.get(call.caller.principal.organization_id, run_id)
        called_by = None if run is None else CalledBy.of(run.metadata)
        if run is None or called_by is None or called_by.gateway_session_id != call.caller.gateway_session_id:
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
        stands = await self._stored(run)
        if stands.status.is_terminal or stands.status is RunStatus.REQUIRES_ACTION or not _started_it(call):
            return reply_of(stands)
        stopped = await self._cancelled(call, run)
        text = f"The agent did not answer within {call.timeout_s:g} s, and its run {run.id} was cancelled."
        return AgentReply(result=ToolResult.failed("tool_timeout", text), run=reply_of(stopped).run)

    async def _at_rest(self, call: AgentCall, run: Run) -> Run:
        """The run once it has ended, or has waited for somebody for a while."""
        tell, seq, waits_since = call.on_progress, 0, None
        topic = status_topic(run.id) if tell is None else events_topic(run.id)
        told = _Told()
        async with self._wakeups.subscribe(topic) as bell:
            while True:
                run = await self._stored(run)
                if tell is not None:
                    seq = await self._tell(run, tell, told, after_seq=seq)
                if run.status.is_terminal:
                    return run
                patience_s = REREAD_S
                if run.status is RunStatus.REQUIRES_ACTION:
                    waits_since = self._clock.monotonic() if waits_since is None else waits_since
                    left_s = waits_since + self._hold_s - self._clock.monotonic()
                    if left_s <= 0:
                        return run
                    patience_s = min(REREAD_S, left_s)
                else:
                    waits_since = None
                await bell.wait(patience_s)

    async def _tell(self, run: Run, tell: ProgressCallback, told: "_Told", *, after_seq: int) -> int:
        """Tell of the events since, and the last one's number."""
        while True:
            events = await self._runs.events(run.organization_id, run.id, after_seq=after_seq, limit=_PAGE)
            for event in events:
                message = progress_of(event)
                if message is not None:
                    told.steps += 1
                    await tell(McpProgress(progress=float(told.steps), message=message))
            after_seq = events[-1].seq if events else after_seq
            if len(events) < _PAGE:
                return after_seq

    async def _stored(self, run: Run) -> Run:
        stored = await self._runs.get(run.organization_id, run.id)
        if stored is None:
            raise not_found("run", run.id)
        return stored

    async def _cancelled(self, call: AgentCall, run: Run) -> Run:
        return await self._cancel_run.execute(CancelRunCommand(principal=call.caller.principal, run_id=run.id))

    async def _undo(self, call: AgentCall, beginning: "asyncio.Task[Run]") -> None:
        """Cancel what the call has started, or is about to; that is finished even if whoever waits is cancelled again."""
        if not _started_it(call):
            beginning.cancel()
            return

        async def undone() -> None:
            try:
                await self._cancelled(call, await beginning)
            except ServiceError as error:
                logger.warning(
                    "the run of a call that was given up could not be cancelled",
                    extra={"tool_call_id": call.tool_call_id, "code": error.code},
                )

        undoing = asyncio.create_task(undone())
        self._undoing.add(undoing)
        undoing.add_done_callback(self._undoing.discard)
        await asyncio.shield(undoing)


def agent_run_id(session_id: GatewaySessionId, key: str) -> RunId:
    """The run of a call: the same for the same call of a session, however often and wherever it is made."""
    return RunId(derived_id("run", "agent", session_id, key))


class _Told:
    """How many steps the caller was told of: progress only grows (MCP basic/utilities/progress)."""

    steps = 0


def _started_it(call: AgentCall) -> bool:
    """Whether the run is the call's, and not one that it only asks about."""
    return call.arguments.get("run_id") is None
