"""SendGatewayCall: sends a recorded call, and answers once its outcome is stored."""

import asyncio
import logging
from collections.abc import Mapping
from typing import cast

from application.gateway.calls.answer import GatewayAnswer
from application.gateway.calls.ask_client import AskClient, Conversation
from application.gateway.calls.call_command import CallGatewayToolCommand
from application.gateway.calls.guarded_logs import guarded_logs
from application.gateway.calls.pending_calls import PendingCall, PendingCalls
from application.gateway.calls.settle_call import SettleGatewayCall
from application.gateway.calls.settle_lost_calls import ABANDON_AFTER_S, SETTLE_WITHIN_S
from application.gateway.tools.agent_caller import agent_caller, begun_run
from application.gateway.tools.gateway_toolset import GatewayToolset, scope_of
from application.mcp.ports import McpProgress, McpReply, ProgressCallback
from application.system.deadline import Deadline
from application.system.ports import Clock
from application.tools import failure_text
from application.tools.call_context import IDEMPOTENCY_META, ToolCallContext
from application.tools.check_tool_call import CheckedCall
from application.tools.execute_tool import ExecuteTool, progress_data
from application.tools.ports import CapabilitiesMissing, InputAwaited
from application.tracing.ports import GatewayTracer
from domain.gateway.call import GatewayCall
from domain.ids import ToolCallId
from domain.json_value import JsonObject, JsonValue
from domain.mcp.elicitation import InputRound
from domain.tools.capabilities import ToolType
from domain.tools.result import ToolResult

logger = logging.getLogger(__name__)


class SendGatewayCall:
    """Rules:
    - A call is answered only after its outcome is durable.
    - If the client leaves, its call is cancelled and the outcome is unknown.
    - A canary token in a result, or in anything sent before it, ends the session and is not sent to
      the client.
    - A resumable client that the server may ask gets the outcome by another request
      (`PendingCalls`).
    """

    def __init__(
        self,
        *,
        execute_tool: ExecuteTool,
        asking: AskClient,
        pending: PendingCalls,
        settling: SettleGatewayCall,
        tracer: GatewayTracer,
        clock: Clock,
    ) -> None:
        self._execute_tool = execute_tool
        self._asking = asking
        self._pending = pending
        self._settling = settling
        self._tracer = tracer
        self._clock = clock

    async def execute(
        self, command: CallGatewayToolCommand, tools: GatewayToolset, call: GatewayCall, checked: CheckedCall
    ) -> GatewayAnswer:
        """Send a recorded call. Returns when it has ended or asks its client."""
        within_s = tools.timeout_s(call.name) + ABANDON_AFTER_S + SETTLE_WITHIN_S
        conversation = self._asking.about(
            command.session, call, checked.tool, command.client, guard=tools.guard, call_s=within_s
        )
        if conversation is None or not command.resumable:
            return await self._made(command, tools, call, checked, conversation)
        pending = PendingCall(
            session=command.session,
            call_id=call.id,
            name=command.name,
            arguments=command.arguments,
            within_s=within_s,
        )
        return await self._pending.begin(pending, conversation, self._made(command, tools, call, checked, conversation))

    async def _made(
        self,
        command: CallGatewayToolCommand,
        tools: GatewayToolset,
        call: GatewayCall,
        checked: CheckedCall,
        conversation: Conversation | None,
    ) -> GatewayAnswer:
        """Send a recorded call and settle it."""
        session, decision = command.session, checked.decision
        asked = () if conversation is None else conversation.asked
        policy = tools.toolset.policy_of(call.name)
        began = self._clock.monotonic()
        replies: list[McpReply] = []
        try:
            result = await self._outcome(command, tools, call, checked, replies, conversation=conversation)
        except asyncio.CancelledError:
            lasted_s = self._clock.monotonic() - began
            await self._settling.cut_short(session, tools, call, decision=decision, duration_s=lasted_s, asked=asked)
            raise
        result, leaked = tools.guard.result(result)
        leaked = leaked or tools.guard.seen(call.id) or _leaked_beside(tools, replies)
        lasted_s = self._clock.monotonic() - began
        if leaked is not None:
            raise await self._settling.halt(
                session, tools, call, result, leaked, decision=decision, duration_s=lasted_s
            )
        await self._settling.settle(session, tools, call, result, decision=decision, duration_s=lasted_s, asked=asked)
        whole = replies[-1] if replies and policy.max_result_bytes is None else None
        missing = {} if conversation is None else conversation.missing
        return GatewayAnswer(
            result=result,
            reply=whole,
            missing=missing,
            uris_of=tools.slug_of(checked.tool),
            begun=begun_run(call, replies) if call.type is ToolType.AGENT else None,
        )

    async def _outcome(
        self,
        command: CallGatewayToolCommand,
        tools: GatewayToolset,
        call: GatewayCall,
        checked: CheckedCall,
        replies: list[McpReply],
        *,
        conversation: Conversation | None,
    ) -> ToolResult:
        session, policy = command.session, tools.toolset.policy_of(call.name)
        assert checked.tool is not None
        timeout_s = tools.timeout_s(call.name)
        context = ToolCallContext(
            tool_call_id=call.id,
            scope=scope_of(session),
            timeout_s=timeout_s,
            meta={**self._context(command, call), IDEMPOTENCY_META: call.id},
            on_progress=None if command.on_progress is None else _guarded(tools, call.id, command.on_progress),
            max_results=policy.max_results,
            max_result_bytes=policy.max_result_bytes,
            holds_canary=tools.guard.watch_of(call.id),
            on_reply=replies.append,
            logs=None if command.logs is None else guarded_logs(tools.guard, call.id, command.logs),
            caller=agent_caller(session, command.meta, retry_key=command.retry_key, waits=not command.as_task)
            if call.type is ToolType.AGENT
            else None,
            relay=None if checked.tool.mcp is None or not checked.tool.mcp.asks else conversation,
            connect=None if conversation is None else conversation.connect,
            input=None if conversation is None else _given_unasked(command.responses),
        )
        deadline = Deadline(asyncio.get_running_loop().time() + timeout_s + ABANDON_AFTER_S)
        if conversation is not None:
            conversation.deadline = deadline
        try:
            with deadline:
                return await self._execute_tool.execute(checked.tool, call.params, context)
        except CapabilitiesMissing as missing:
            assert conversation is not None
            conversation.missing = missing.capabilities
            return failure_text.capabilities_missing(tuple(missing.capabilities))
        except InputAwaited as asked:
            question = asked.awaited.current
            if question is not None and question.is_for_account:
                return failure_text.account_missing(question.url or "")
            return failure_text.input_declined("" if question is None else question.message)
        except TimeoutError:
            if not deadline.expired():
                raise
            logger.warning(
                "tool did not stop in time and was abandoned", extra={"tool_call_id": call.id, "tool": call.name}
            )
            return failure_text.abandoned(timeout_s)

    def _context(self, command: CallGatewayToolCommand, call: GatewayCall) -> Mapping[str, str]:
        """Trace context for the server: the caller's, otherwise ours."""
        if "traceparent" in command.meta or not self._tracer.enabled:
            return command.meta
        return {**command.meta, **self._tracer.gateway_context(command.session, call.id)}


def _given_unasked(responses: Mapping[str, JsonValue]) -> InputRound | None:
    """Answers that came with the call itself. The server decides about them."""
    given = {key: response for key, response in responses.items() if isinstance(response, dict)}
    return InputRound(number=0, questions=(), answers=given) if given else None


def _guarded(tools: GatewayToolset, call_id: ToolCallId, tell: ProgressCallback) -> ProgressCallback:
    """Passes progress on until it holds a canary token."""

    async def guarded(progress: McpProgress) -> None:
        tools.guard.progress(call_id, progress_data(progress))
        if tools.guard.seen(call_id) is None:
            await tell(progress)

    return guarded


def _leaked_beside(tools: GatewayToolset, replies: list[McpReply]) -> str | None:
    """The id of a canary token in the reply outside text and images."""
    raw = replies[-1].raw if replies else None
    return None if raw is None else tools.guard.arguments(cast(JsonObject, raw))
