"""CallGatewayTool: one call of an outside client, under the same policy, ledger, audit and canaries as a call of a run."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import assert_never, cast

from application.gateway.agent_caller import agent_caller
from application.gateway.clear_call import Cleared, ClearGatewayCall, Ended, Refused, Waiting, pending_result
from application.gateway.gateway_access import GatewayAccess
from application.gateway.guarded_logs import guarded_logs
from application.gateway.ports import GatewayLedger
from application.gateway.toolbox import GatewayToolbox, Toolbox
from application.mcp.log_messages import LogTap
from application.mcp.ports import McpProgress, McpReply, ProgressCallback
from application.runs.cancel_run import CancelRun, CancelRunCommand
from application.system.ports import Clock, IdSource
from application.tools import failure_text
from application.tools.check_tool_call import CheckedCall, CheckToolCall
from application.tools.execute_tool import IDEMPOTENCY_META, ExecuteTool, ExecuteToolCommand, progress_data
from application.tools.ports import InputAwaited
from application.tools.result_text import cleaned
from application.tracing.ports import GatewayCallRecord, GatewayTracer
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import ServiceError, conflict, not_found
from domain.gateway.call import GatewayCall, GatewaySettlement, gateway_call_audit
from domain.gateway.session import GatewaySession
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ApprovalId, AuditEventId, RunId, ToolCallId, derived_id
from domain.json_value import JsonObject
from domain.policy.decision import Decision, decide_call
from domain.policy.rules import Verdict
from domain.threads.thread import Quarantine
from domain.tools.capabilities import ToolType
from domain.tools.names import MAX_NAME_LENGTH
from domain.tools.result import ToolResult
from domain.tools.tool import Tool

logger = logging.getLogger(__name__)

ABANDON_AFTER_S = 2.0
"""How much longer than its own timeout a tool may take to stop before it is abandoned."""
SETTLE_WITHIN_S = 60.0
"""How long after that the outcome may take to be stored, and by how much clocks may differ, before a call counts as lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallGatewayToolCommand:
    """`name` is the client's; `meta` goes along to an MCP server. A `resumable` client comes back with the `request_state` that
    it is given while its call waits for an approval; any other is told to make the same call again. With the same `retry_key`
    it means the same call of an agent."""

    session: GatewaySession
    name: str
    arguments: JsonObject
    meta: Mapping[str, str] = field(default_factory=dict)
    on_progress: ProgressCallback | None = None
    logs: LogTap | None = None
    resumable: bool = False
    request_state: str | None = None
    retry_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayAnswer:
    """What the client is told. `reply` is what the MCP server answered, where all of it may be passed on; then it says more
    than the text of `result`, which is for models. `waiting`: the call was not sent, as it waits for an approval; `result`
    says so to clients that cannot be given the state."""

    result: ToolResult
    reply: McpReply | None = None
    waiting: Waiting | None = None


class CallGatewayTool:
    """Rules: a name the session does not have is refused as unknown and audited, and so is one that an allowlist hides; arguments that do
    not fit, and what policy denies, are answered with the text a run's model gets; a call is sent only after its intent
    is durable, and answered only after its outcome is; a call whose client has gone is cancelled, and its outcome is
    unknown; a canary token in arguments or result ends the session and its run, and puts its thread in quarantine. A call that
    needs an approval is held open for a while, and is made when its client waits, or asks again, after somebody approved it.
    """

    def __init__(
        self,
        *,
        toolbox: GatewayToolbox,
        check: CheckToolCall,
        execute_tool: ExecuteTool,
        clearing: ClearGatewayCall,
        ledger: GatewayLedger,
        access: GatewayAccess,
        cancel_run: CancelRun,
        tracer: GatewayTracer,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._toolbox = toolbox
        self._check = check
        self._execute_tool = execute_tool
        self._clearing = clearing
        self._ledger = ledger
        self._access = access
        self._cancel_run = cancel_run
        self._tracer = tracer
        self._clock = clock
        self._ids = ids

    async def execute(self, command: CallGatewayToolCommand) -> GatewayAnswer:
        """The outcome. Raises NOT_FOUND `tool_not_found`, FORBIDDEN `agent_disabled` and `agent_not_found`, CONFLICT
        `gateway_session_halted`, INVALID `request_state_invalid`, UNAVAILABLE `storage_unavailable`."""
        approval_id = None
        if command.request_state is not None:
            approval_id = self._clearing.approval_in(command.request_state, command.session)
        hold_s, now = self._clearing.hold_s(resumable=command.resumable), asyncio.get_running_loop().time
        until = now() + hold_s
        while True:
            answer = await self._attempt(command, approval_id, max(0.0, until - now()))
            if not isinstance(answer, Ended):
                return answer
            approval_id = answer.approval_id

    async def _attempt(
        self, command: CallGatewayToolCommand, approval_id: ApprovalId | None, hold_s: float
    ) -> GatewayAnswer | Ended:
        session = command.session
        toolbox = await self._toolbox.of(session)
        name = toolbox.model_facing(command.name)
        if name is None:
            raise await self._unknown(command, toolbox)
        checked = self._check.recheck(name, command.arguments, toolbox.toolset)
        if checked.tool is None or (checked.decision is not None and checked.decision.is_hidden):
            raise await self._unknown(command, toolbox)
        call = self._call(session, toolbox, checked, checked.tool)
        found = toolbox.guard.arguments(call.params)
        if found is not None:
            refusal = ToolResult.blocked("run_halted", _HALTED)
            await self._halt(session, self._settled(call, refusal, 0.0), checked.decision, found)
            raise _halted(session)
        if checked.answer is not None:
            await self._refuse(session, toolbox, call, checked.answer, checked.decision)
            return GatewayAnswer(result=checked.answer)
        needs_approval = checked.decision is not None and checked.decision.verdict is Verdict.REQUIRE_APPROVAL
        if not needs_approval and approval_id is None:
            return await self._recorded(command, toolbox, call, checked)
        cleared = await self._clearing.execute(session, toolbox, call, checked, approval_id=approval_id, hold_s=hold_s)
        match cleared:
            case Cleared(call=sent, decision=decision, is_recorded=is_recorded):
                approved = replace(checked, params=sent.params, decision=decision)
                if is_recorded:
                    return await self._make(command, toolbox, sent, approved)
                return await self._recorded(command, toolbox, sent, approved)
            case Refused(call=refused, result=result, decision=decision, is_stored=is_stored):
                await self._refuse(session, toolbox, refused, result, decision, is_stored=is_stored)
                return GatewayAnswer(result=result)
            case Waiting(approval=approval):
                return GatewayAnswer(result=pending_result(approval), waiting=cleared)
            case Ended():
                return cleared
            case _:
                assert_never(cleared)

    async def _recorded(
        self, command: CallGatewayToolCommand, toolbox: Toolbox, call: GatewayCall, checked: CheckedCall
    ) -> GatewayAnswer:
        """Record the call, and make it."""
        policy = toolbox.toolset.policy_of(call.name)
        if not await self._ledger.intend(call, max_calls=policy.max_calls):
            reached = decide_call(policy, call.name, call.params, calls_so_far=policy.max_calls or 0)
            refusal = failure_text.blocked_by_policy(reached)
            await self._refuse(command.session, toolbox, call, refusal, reached)
            return GatewayAnswer(result=refusal)
        return await self._make(command, toolbox, call, checked)

    async def _make(
        self, command: CallGatewayToolCommand, toolbox: Toolbox, call: GatewayCall, checked: CheckedCall
    ) -> GatewayAnswer:
        """Send a recorded call, and settle it."""
        session, decision = command.session, checked.decision
        policy = toolbox.toolset.policy_of(call.name)
        began = self._clock.monotonic()
        replies: list[McpReply] = []
        try:
            result = await self._outcome(command, toolbox, call, checked, replies)
        except asyncio.CancelledError:
            # Whoever waited for the answer has gone; that the call was cut short is kept all the same.
            cut = self._settled(call, failure_text.outcome_unknown(), self._clock.monotonic() - began)
            await asyncio.shield(self._ledger.settle(cut, gateway_call_audit(session, cut, decision=decision)))
            self._trace(session, toolbox, cut)
            raise
        result, leaked = toolbox.guard.result(result)
        leaked = leaked or toolbox.guard.seen(call.id) or _leaked_beside(toolbox, replies)
        settlement = self._settled(call, result, self._clock.monotonic() - began)
        if leaked is not None:
            await self._halt(session, settlement, decision, leaked)
            self._trace(session, toolbox, settlement)
            raise _halted(session)
        await self._ledger.settle(settlement, gateway_call_audit(session, settlement, decision=decision))
        self._trace(session, toolbox, settlement)
        whole = replies[-1] if replies and policy.max_result_bytes is None else None
        return GatewayAnswer(result=result, reply=whole)

    async def _outcome(
        self,
        command: CallGatewayToolCommand,
        toolbox: Toolbox,
        call: GatewayCall,
        checked: CheckedCall,
        replies: list[McpReply],
    ) -> ToolResult:
        session, policy = command.session, toolbox.toolset.policy_of(call.name)
        assert checked.tool is not None
        timeout_s = toolbox.timeout_s(call.name)
        execution = ExecuteToolCommand(
            organization_id=session.organization_id,
            thread_id=session.thread_id,
            run_id=session.run_id,
            gateway_session_id=None if session.run_id is not None else session.id,
            tool_call_id=call.id,
            tool=checked.tool,
            arguments=call.params,
            timeout_s=timeout_s,
            meta={**self._context(command, call), IDEMPOTENCY_META: call.id},
            on_progress=None if command.on_progress is None else _guarded(toolbox, call.id, command.on_progress),
            max_results=policy.max_results,
            max_result_bytes=policy.max_result_bytes,
            holds_canary=toolbox.guard.watch_of(call.id),
            on_reply=replies.append,
            logs=None if command.logs is None else guarded_logs(toolbox.guard, call.id, command.logs),
            caller=agent_caller(session, command.meta, retry_key=command.retry_key),
        )
        deadline = asyncio.timeout(timeout_s + ABANDON_AFTER_S)
        try:
            async with deadline:
                return await self._execute_tool.execute(execution)
        except InputAwaited as asked:
            question = asked.awaited.current
            return failure_text.input_declined("" if question is None else question.message)
        except TimeoutError:
            if not deadline.expired():
                raise
            logger.warning(
                "tool did not stop in time and was abandoned", extra={"tool_call_id": call.id, "tool": call.name}
            )
            return failure_text.abandoned(timeout_s)

    def _call(self, session: GatewaySession, toolbox: Toolbox, checked: CheckedCall, tool: Tool) -> GatewayCall:
        now = self._clock.now()
        return GatewayCall(
            id=ToolCallId(self._ids.new("call")),
            session_id=session.id,
            organization_id=session.organization_id,
            name=checked.name,
            type=tool.type,
            server_id=None if tool.mcp is None else tool.mcp.server_id,
            params=checked.params,
            recorded_at=now,
            due_at=now + timedelta(seconds=toolbox.timeout_s(checked.name) + ABANDON_AFTER_S + SETTLE_WITHIN_S),
        )

    def _settled(self, call: GatewayCall, result: ToolResult, duration_s: float) -> GatewaySettlement:
        return GatewaySettlement(call=call, result=result, duration_ms=round(duration_s * 1000), at=self._clock.now())

    def _context(self, command: CallGatewayToolCommand, call: GatewayCall) -> Mapping[str, str]:
        """What goes along to a server: the caller's trace, else ours."""
        if "traceparent" in command.meta or not self._tracer.enabled:
            return command.meta
        return {**command.meta, **self._tracer.gateway_context(command.session, call.id)}

    def _trace(self, session: GatewaySession, toolbox: Toolbox, settlement: GatewaySettlement) -> None:
        if self._tracer.enabled:
            tool = toolbox.toolset.find(settlement.call.name)
            self._tracer.gateway_call(
                GatewayCallRecord(session=session, agent=toolbox.agent, tool=tool, settlement=settlement)
            )

    async def _refuse(
        self,
        session: GatewaySession,
        toolbox: Toolbox,
        call: GatewayCall,
        refusal: ToolResult,
        decision: Decision | None,
        *,
        is_stored: bool = False,
    ) -> None:
        settlement = self._settled(call, refusal, 0.0)
        audit = gateway_call_audit(session, settlement, decision=decision)
        if is_stored:
            await self._ledger.settle(settlement, audit)
        else:
            await self._ledger.refuse(settlement, audit)
        self._trace(session, toolbox, settlement)

    async def _unknown(self, command: CallGatewayToolCommand, toolbox: Toolbox) -> ServiceError:
        """Keep that somebody called what the session does not have, by its name alone; then it is refused."""
        now = self._clock.now()
        name = toolbox.guard.words(" ".join(cleaned(command.name).split())[:MAX_NAME_LENGTH])
        call = GatewayCall(
            id=ToolCallId(self._ids.new("call")),
            session_id=command.session.id,
            organization_id=command.session.organization_id,
            name=name,
            type=ToolType.MCP_TOOL,
            server_id=None,
            params={},
            recorded_at=now,
            due_at=now,
        )
        await self._refuse(command.session, toolbox, call, failure_text.unknown_tool(name), None)
        return not_found("tool", command.name)

    async def _halt(
        self, session: GatewaySession, settlement: GatewaySettlement, decision: Decision | None, canary_id: str
    ) -> None:
        call = settlement.call
        halted = AuditEvent(
            id=AuditEventId(derived_id("aud", call.id, "halted")),
            organization_id=session.organization_id,
            action=AuditAction.SESSION_HALTED,
            actor="system",
            resource=session.id,
            at=settlement.at,
            run_id=session.run_id,
            details={"reason": "canary", "canary_id": canary_id, "tool_call_id": call.id},
        )
        quarantine = Quarantine(run_id=session.run_id or RunId(session.id), canary_id=canary_id, at=settlement.at)
        await self._ledger.halt(
            settlement, (gateway_call_audit(session, settlement, decision=decision), halted), quarantine
        )
        self._access.forget(session.id)
        if session.run_id is not None:
            opener = Principal(organization_id=session.organization_id, key_id=session.created_by, role=Role.OPERATOR)
            await self._cancel_run.execute(CancelRunCommand(principal=opener, run_id=session.run_id))


_HALTED = "The session was halted before this call was sent."


def _guarded(toolbox: Toolbox, call_id: ToolCallId, tell: ProgressCallback) -> ProgressCallback:
    """Tells the client of progress, until that holds a canary token."""

    async def guarded(progress: McpProgress) -> None:
        toolbox.guard.progress(call_id, progress_data(progress))
        if toolbox.guard.seen(call_id) is None:
            await tell(progress)

    return guarded


def _leaked_beside(toolbox: Toolbox, replies: list[McpReply]) -> str | None:
    """The id of a token in what a server answered beside text and images."""
    raw = replies[-1].raw if replies else None
    return None if raw is None else toolbox.guard.arguments(cast(JsonObject, raw))


def _halted(session: GatewaySession) -> ServiceError:
    return conflict("gateway_session_halted", f"The session {session.id} was halted.")
