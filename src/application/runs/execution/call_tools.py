"""Executes the calls of one turn in parallel within a bound. Each is settled when it ends; answers
have the model's order."""

import asyncio
import logging
from contextlib import nullcontext
from dataclasses import dataclass, replace

from application.mcp.ports import McpProgress
from application.policy.canary_guard import CanaryFound
from application.runs.execution.change_state import ChangeState
from application.runs.execution.interruption import Interrupted, StopReason, TimeUp
from application.runs.execution.run_session import RunSession
from application.runs.sealed_input import sealed, unsealed
from application.system.ports import Clock
from application.tools import failure_text
from application.tools.agent_calls import DEPTH_META, AgentCaller
from application.tools.call_context import IDEMPOTENCY_META, ToolCallContext, scope_of_run
from application.tools.check_tool_call import gone_tool
from application.tools.execute_tool import ExecuteTool, progress_data
from application.tools.ports import Box, InputAwaited
from application.tools.toolset import Toolset
from application.tracing.ports import Tracer
from domain.errors import ServiceError
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ToolCallId
from domain.mcp.elicitation import InputRound
from domain.policy.decision import rule_decision
from domain.policy.layers import ToolPolicy
from domain.runs.audit_trail import tool_call_audit
from domain.runs.called_by import CalledBy
from domain.runs.events import NewEvent, RunEventType
from domain.runs.ledger import ToolCall, ToolCallState
from domain.runs.run import Run, RunStatus
from domain.runs.run_events import tool_settled, tool_started
from domain.runs.step import Step
from domain.runs.turn_end import turn_end
from domain.tools.capabilities import ToolType
from domain.tools.result import ToolResult
from domain.tools.tool import Tool

logger = logging.getLogger(__name__)


_MOVES = (StopReason.SHUTDOWN, StopReason.LEASE_LOST)
"""Another worker continues the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallToolsSettings:
    """`parallel_calls` bounds the parallel calls of a turn. `grace_s` is the time to stop after a
    tool's own timeout before it is abandoned."""

    parallel_calls: int = 8
    grace_s: float = 2.0


class CallTools:
    """Rules:
    - A call is executed only while the lease is valid. Whether it is allowed is decided before.
    - A call whose server asks for input waits. It is recorded again before it is sent with the
      answers.
    - The task of a remote agent is recorded before it is waited for.
    - Calls that change the state of the front end are settled one after another (`ChangeState`).
    - An agent as a tool has the time of the run that it starts; `tool_timeout_s` and
      `turn_tool_timeout_s` are for other tools.
    - An approved call is recorded before it is sent. Every outcome is stored when it is known.
    - The last outcome of a turn also stores the tool message and starts the next turn, or suspends
      the run.
    """

    def __init__(
        self,
        *,
        execute_tool: ExecuteTool,
        change_state: ChangeState,
        box: Box,
        tracer: Tracer,
        clock: Clock,
        settings: CallToolsSettings,
    ) -> None:
        self._execute_tool = execute_tool
        self._change_state = change_state
        self._box = box
        self._tracer = tracer
        self._clock = clock
        self._settings = settings

    async def execute(self, session: RunSession, toolset: Toolset) -> None:
        """Complete the current turn. Raises Interrupted, LeaseLost and CanaryFound; a canary token
        cancels running calls."""
        todo = [call for call in session.open_calls.values() if call.state.is_executable]
        deadline = self._clock.monotonic() + min(session.limits.turn_tool_timeout_s, session.work_time_left_s)
        if not todo:
            await self._finish_turn(session)
        elif len(todo) == 1:
            await self._settle(session, toolset, todo[0], deadline)
        else:
            places, changing = asyncio.Semaphore(self._settings.parallel_calls), asyncio.Lock()

            async def in_turn(call: ToolCall) -> None:
                async with places, changing if call.type is ToolType.CLIENT_STATE else nullcontext():
                    await self._settle(session, toolset, call, deadline)

            try:
                async with asyncio.TaskGroup() as group:
                    for call in sorted(todo, key=lambda entry: entry.index):
                        group.create_task(in_turn(call))
            except ExceptionGroup as failures:
                leaks = (failure for failure in failures.exceptions if isinstance(failure, CanaryFound))
                raise next(leaks, failures.exceptions[0]) from None
        # A turn that ended or suspended the run is complete, even if a stop came later.
        if session.stop.fired is not None and session.run.status is RunStatus.IN_PROGRESS:
            raise Interrupted(session.stop.fired)

    async def _finish_turn(self, session: RunSession) -> None:
        """Add the tool message of a resumed run, whose calls are all settled."""

        def build() -> Step:
            end = turn_end(session.run, tuple(session.open_calls.values()), session.transcript, at=self._clock.now())
            return end or Step(run=session.run)

        await session.advance(build)

    async def _settle(self, session: RunSession, toolset: Toolset, call: ToolCall, deadline: float) -> None:
        if call.state in (ToolCallState.INPUT_GIVEN, ToolCallState.APPROVED):
            began_now = (tool_started(call, at=self._clock.now()),) if call.state is ToolCallState.APPROVED else ()
            call = replace(call, state=ToolCallState.RECORDED)
            await session.advance(lambda: Step(run=session.run, events=began_now, changed=(call,)))
        began = self._clock.monotonic()
        try:
            result = await self._outcome(session, toolset, call, deadline)
        except Interrupted:
            return  # the stop of the run answers its open calls; `execute` raises again
        except InputAwaited as asked:
            if asked.awaited.current is None:
                call = replace(call, input=sealed(asked.awaited, self._box))
                await session.advance(lambda: Step(run=session.run, changed=(call,)))
                await self._settle(session, toolset, call, deadline)
                return
            leaked = session.guard.questions(asked.awaited) or session.guard.seen(call.id)
            if leaked is not None:
                raise CanaryFound(leaked, tool_call_id=call.id) from None
            await self._await_input(session, call, asked.awaited)
            return
        result, leaked = session.guard.result(result)
        leaked = leaked or session.guard.seen(call.id)
        duration_s = self._clock.monotonic() - began
        settled = call.settled(result, at=self._clock.now(), duration_ms=round(duration_s * 1000))
        if leaked is not None:
            raise CanaryFound(leaked, tool_call_id=call.id, settled=settled)
        await self._store(session, toolset, settled)

    async def _outcome(self, session: RunSession, toolset: Toolset, call: ToolCall, deadline: float) -> ToolResult:
        tool = toolset.find(call.name)
        if tool is None:
            return gone_tool(toolset, call.name)
        if tool.type is ToolType.CLIENT_STATE:
            return await self._change_state.execute(session, call)
        policy = toolset.policy_of(call.name)
        timeout_s = self._allowed_s(session, tool, policy, deadline)
        if timeout_s <= 0:
            return failure_text.limit_reached("timeout_s" if session.work_time_left_s <= 0 else "turn_tool_timeout_s")
        try:
            given = None if call.input is None else unsealed(call.input, self._box)
        except ServiceError:
            logger.warning("cannot decrypt answers for a tool", extra={"run_id": call.run_id, "tool": call.name})
            return failure_text.input_lost()
        if not session.lease_holds:
            session.stop.fire(StopReason.LEASE_LOST)
        context = ToolCallContext(
            tool_call_id=call.id,
            scope=scope_of_run(session.run),
            timeout_s=timeout_s,
            meta={IDEMPOTENCY_META: call.id, **_depth(session.run), **self._tracer.trace_context(session.run, call.id)},
            on_progress=lambda progress: self._progress(session, call.id, progress),
            input=given,
            max_results=policy.max_results,
            max_result_bytes=policy.max_result_bytes,
            holds_canary=session.guard.watch_of(call.id),
            caller=_caller(session, tool),
            keeps_state=True,
            moves=lambda: session.stop.fired in _MOVES,
        )
        try:
            with session.stop.interruptible(timeout_s + self._settings.grace_s):
                return await self._execute_tool.execute(tool, call.params, context)
        except TimeUp:
            ids = {"run_id": call.run_id, "tool_call_id": call.id, "tool": call.name, "server_id": call.server_id}
            logger.warning("tool did not stop in time and was abandoned", extra=ids)
            return failure_text.abandoned(timeout_s)

    def _allowed_s(self, session: RunSession, tool: Tool, policy: ToolPolicy, deadline: float) -> float:
        if tool.agent is None:
            allowed_s, left_s = session.limits.tool_timeout_s, deadline - self._clock.monotonic()
        else:
            allowed_s, left_s = tool.agent.timeout_s, session.work_time_left_s
        return min(allowed_s, left_s) if policy.timeout_s is None else min(allowed_s, left_s, policy.timeout_s)

    async def _await_input(self, session: RunSession, call: ToolCall, awaited: InputRound) -> None:
        def build() -> Step:
            asking = replace(
                call,
                state=ToolCallState.AWAITING_INPUT,
                elicitation=awaited.current,
                input=sealed(awaited, self._box),
            )
            calls = {**session.open_calls, call.id: asking}
            end = turn_end(session.run, tuple(calls.values()), session.transcript, at=self._clock.now())
            return replace(end or Step(run=session.run), changed=(asking,))

        await session.advance(build)

    async def _store(self, session: RunSession, toolset: Toolset, call: ToolCall) -> None:
        decision = rule_decision(toolset.policy_of(call.name))
        event = tool_settled(call, server=toolset.server_slug_of(call.name), decision=decision)
        audit = tool_call_audit(session.run, call, decision=decision)

        def build() -> Step:
            calls = {**session.open_calls, call.id: call}
            end = turn_end(session.run, tuple(calls.values()), session.transcript, at=event.at)
            if end is None:
                return Step(run=session.run, events=(event,), settled=(call,), audit=(audit,))
            return end.led_by(event, settled=call, audit=audit)

        await session.advance(build)

    async def _progress(self, session: RunSession, call_id: ToolCallId, progress: McpProgress) -> None:
        session.buffer.add(
            NewEvent(
                type=RunEventType.TOOL_PROGRESS,
                at=self._clock.now(),
                data={"tool_call_id": call_id, **session.guard.progress(call_id, progress_data(progress))},
            )
        )


def _caller(session: RunSession, tool: Tool) -> AgentCaller | None:
    """The run as the caller of an agent. Another worker that continues it makes an interrupted call
    again."""
    run, stop = session.run, session.stop
    if tool.agent is None or run.requested_by is None:
        return None
    called_by = CalledBy.of(run.metadata)
    # Which agents it may call is decided by its toolset and, once it calls, by the team of its
    # thread.
    starter = Principal(key_id=run.requested_by, organization_id=run.organization_id, role=Role.RUNNER, teams=None)
    return AgentCaller(
        principal=starter,
        agent_id=session.agent.id,
        thread_id=run.thread_id,
        run_id=run.id,
        depth=0 if called_by is None else called_by.depth,
        moves=lambda: stop.fired in _MOVES,
    )


def _depth(run: Run) -> dict[str, str]:
    """The depth of the chain of agents up to this run, for a server that may call Dragoman."""
    called_by = CalledBy.of(run.metadata)
    return {} if called_by is None else {DEPTH_META: str(called_by.depth)}
