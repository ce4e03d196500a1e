"""CallGatewayTool: one call of an outside client, under the same policy, ledger, audit and canaries as a call of a run."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never, cast

from application.gateway.agent_caller import agent_caller, begun_run
from application.gateway.answer import GatewayAnswer
from application.gateway.ask_client import AskableClient, AskClient, Conversation
from application.gateway.clear_call import Cleared, ClearGatewayCall, Ended, Refused, Waiting, pending_result
from application.gateway.guarded_logs import guarded_logs
from application.gateway.halt_session import HaltGatewaySession
from application.gateway.held_calls import Continuation, HeldCall, HeldCalls
from application.gateway.param_headers import HeaderParam, header_mismatch
from application.gateway.ports import GatewayLedger
from application.gateway.request_states import RequestStates
from application.gateway.settle_lost_calls import ABANDON_AFTER_S, SETTLE_WITHIN_S, due_at
from application.gateway.toolbox import GatewayToolbox, Toolbox
from application.mcp.log_messages import LogTap
from application.mcp.ports import McpProgress, McpReply, ProgressCallback
from application.system.ports import Clock, IdSource
from application.tools import failure_text
from application.tools.check_tool_call import CheckedCall, CheckToolCall
from application.tools.execute_tool import IDEMPOTENCY_META, ExecuteTool, ExecuteToolCommand, progress_data
from application.tools.ports import CapabilitiesMissing, InputAwaited
from application.tools.result_text import cleaned
from application.tracing.ports import GatewayCallRecord, GatewayTracer
from domain.errors import ServiceError, invalid, not_found
from domain.gateway.call import GatewayCall, GatewaySettlement, gateway_call_audit
from domain.gateway.session import GatewaySession
from domain.ids import ApprovalId, ToolCallId
from domain.json_value import JsonObject, JsonValue
from domain.policy.decision import Decision, decide_call
from domain.policy.rules import Verdict
from domain.tools.capabilities import ToolType
from domain.tools.elicitation import InputRound
from domain.tools.names import MAX_NAME_LENGTH
from domain.tools.result import ToolResult
from domain.tools.tool import Tool

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallGatewayToolCommand:
    """`name` is the client's; `meta` goes along to an MCP server. A `resumable` client comes back with the `request_state` that
    it is given while its call waits for an approval, or, with `responses`, for itself; any other is told to make the same call
    again once it is approved. `client` can be asked in the middle of the call. With the same `retry_key` it means the same call
    of an agent, of which nothing is waited for `as_task`. `param_headers` are the arguments as HTTP headers repeat them, or None."""

    session: GatewaySession
    name: str
    arguments: JsonObject
    meta: Mapping[str, str] = field(default_factory=dict)
    on_progress: ProgressCallback | None = None
    logs: LogTap | None = None
    resumable: bool = False
    request_state: str | None = None
    retry_key: str | None = None
    as_task: bool = False
    client: AskableClient | None = None
    responses: Mapping[str, JsonValue] = field(default_factory=dict)
    param_headers: Mapping[str, str | None] | None = None


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
        asking: AskClient,
        held: HeldCalls,
        states: RequestStates,
        ledger: GatewayLedger,
        halting: HaltGatewaySession,
        tracer: GatewayTracer,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._toolbox = toolbox
        self._check = check
        self._execute_tool = execute_tool
        self._clearing = clearing
        self._asking = asking
        self._held = held
        self._states = states
        self._ledger = ledger
        self._halting = halting
        self._tracer = tracer
        self._clock = clock
        self._ids = ids

    async def execute(self, command: CallGatewayToolCommand) -> GatewayAnswer:
        """The outcome. Raises NOT_FOUND `tool_not_found`, FORBIDDEN `agent_disabled` and `agent_not_found`, CONFLICT
        `gateway_session_halted`, INVALID `request_state_invalid`, `header_mismatch`, UNAVAILABLE `storage_unavailable`."""
        approval_id = None
        if command.request_state is not None:
            state = self._states.opened(command.session, command.request_state)
            if "call" in state:
                return await self._held.go_on(_continued(command, state))
            approval_id = ApprovalId(str(state.get("approval")))
        hold_s, now = self._clearing.hold_s(resumable=command.resumable), asyncio.get_running_loop().time
        until = now() + (0.0 if command.as_task else hold_s)
        while True:
            answer = await self._attempt(command, approval_id, max(0.0, until - now()))
            if not isinstance(answer, Ended):
                return answer
            approval_id = answer.approval_id

    async def resume(self, command: CallGatewayToolCommand, approval_id: ApprovalId) -> GatewayAnswer | None:
        """The same for a call that was asked for, which is not asked for again; None if it does not wait any more."""
        answer = await self._attempt(command, approval_id, None)
        return None if isinstance(answer, Ended) else answer

    async def _attempt(
        self, command: CallGatewayToolCommand, approval_id: ApprovalId | None, hold_s: float | None
    ) -> GatewayAnswer | Ended:
        session = command.session
        toolbox = await self._toolbox.of(session)
        name = toolbox.model_facing(command.name)
        if name is None:
            raise await self._unknown(command, toolbox)
        checked = self._check.recheck(name, command.arguments, toolbox.toolset)
        if checked.tool is None or (checked.decision is not None and checked.decision.is_hidden):
            raise await self._unknown(command, toolbox)
        if command.param_headers is not None:
            _check_headers(toolbox.header_params(checked.tool), command.arguments, command.param_headers)
        call = self._call(session, toolbox, checked, checked.tool)
        found = toolbox.guard.arguments(
            {**call.params, _ANSWERS: {**command.responses}} if command.responses else call.params
        )
        if found is not None:
            refusal = ToolResult.blocked("run_halted", _HALTED)
            raise await self._halting.execute(session, self._settled(call, refusal, 0.0), checked.decision, found)
        if checked.answer is not None:
            await self._refuse(session, toolbox, call, checked.answer, checked.decision)
            return GatewayAnswer(result=checked.answer)
        needs_approval = checked.decision is not None and checked.decision.verdict is Verdict.REQUIRE_APPROVAL
        if not needs_approval and approval_id is None:
            return await self._recorded(command, toolbox, call, checked)
        cleared = await self._clearing.execute(
            session, toolbox, call, checked, approval_id=approval_id, hold_s=hold_s, client=command.client
        )
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
        """Make a recorded call, and answer when it has ended, or its client is asked."""
        within_s = toolbox.timeout_s(call.name) + ABANDON_AFTER_S + SETTLE_WITHIN_S
        conversation = self._asking.about(
            command.session, call, checked.tool, command.client, guard=toolbox.guard, call_s=within_s
        )
        if conversation is None or not command.resumable:
            return await self._made(command, toolbox, call, checked, conversation)
        held = HeldCall(
            session=command.session,
            call_id=call.id,
            name=command.name,
            arguments=command.arguments,
            within_s=within_s,
        )
        return await self._held.begin(held, conversation, self._made(command, toolbox, call, checked, conversation))

    async def _made(
        self,
        command: CallGatewayToolCommand,
        toolbox: Toolbox,
        call: GatewayCall,
        checked: CheckedCall,
        conversation: Conversation | None,
    ) -> GatewayAnswer:
        """Send a recorded call, and settle it."""
        session, decision = command.session, checked.decision
        asked = () if conversation is None else conversation.asked
        policy = toolbox.toolset.policy_of(call.name)
        began = self._clock.monotonic()
        replies: list[McpReply] = []
        try:
            result = await self._outcome(command, toolbox, call, checked, replies, conversation=conversation)
        except asyncio.CancelledError:
            # Whoever waited for the answer has gone; that the call was cut short is kept all the same.
            cut = self._settled(call, failure_text.outcome_unknown(), self._clock.monotonic() - began)
            cut_audit = gateway_call_audit(session, cut, decision=decision, asked=asked)
            await asyncio.shield(self._ledger.settle(cut, cut_audit))
            self._trace(session, toolbox, cut)
            raise
        result, leaked = toolbox.guard.result(result)
        leaked = leaked or toolbox.guard.seen(call.id) or _leaked_beside(toolbox, replies)
        settlement = self._settled(call, result, self._clock.monotonic() - began)
        if leaked is not None:
            halted = await self._halting.execute(session, settlement, decision, leaked)
            self._trace(session, toolbox, settlement)
            raise halted
        await self._ledger.settle(settlement, gateway_call_audit(session, settlement, decision=decision, asked=asked))
        self._trace(session, toolbox, settlement)
        whole = replies[-1] if replies and policy.max_result_bytes is None else None
        missing = {} if conversation is None else conversation.missing
        answer = GatewayAnswer(result=result, reply=whole, missing=missing, uris_of=toolbox.slug_of(checked.tool))
        return replace(answer, begun=begun_run(call, replies))

    async def _outcome(
        self,
        command: CallGatewayToolCommand,
        toolbox: Toolbox,
        call: GatewayCall,
        checked: CheckedCall,
        replies: list[McpReply],
        *,
        conversation: Conversation | None,
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
            caller=agent_caller(session, command.meta, retry_key=command.retry_key, waits=not command.as_task),
            relay=conversation,
            input=None if conversation is None else _given_unasked(command.responses),
        )
        deadline = asyncio.timeout(timeout_s + ABANDON_AFTER_S)
        if conversation is not None:
            conversation.deadline = deadline
        try:
            async with deadline:
                return await self._execute_tool.execute(execution)
        except CapabilitiesMissing as missing:
            assert conversation is not None
            conversation.missing = missing.capabilities
            return failure_text.capabilities_missing(tuple(missing.capabilities))
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
            due_at=due_at(now, toolbox.timeout_s(checked.name)),
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


_ANSWERS = "inputResponses"
_HALTED = "The session was halted before this call was sent."


def _continued(command: CallGatewayToolCommand, state: JsonObject) -> Continuation:
    return Continuation(
        session=command.session,
        name=command.name,
        arguments=command.arguments,
        state=state,
        responses=command.responses,
    )


def _given_unasked(responses: Mapping[str, JsonValue]) -> InputRound | None:
    """Answers that come with the call itself: the server is to say what it makes of them."""
    given = {key: response for key, response in responses.items() if isinstance(response, dict)}
    return InputRound(number=0, questions=(), answers=given) if given else None


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


def _check_headers(params: tuple[HeaderParam, ...], arguments: JsonObject, headers: Mapping[str, str | None]) -> None:
    if params and (wrong := header_mismatch(params, arguments, headers)) is not None:
        raise invalid("header_mismatch", wrong)
