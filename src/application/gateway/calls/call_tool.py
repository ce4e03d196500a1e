"""CallGatewayTool: one call of an external client, under the policy, ledger, audit and canary rules
of run calls."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from application.gateway.calls.answer import GatewayAnswer
from application.gateway.calls.call_command import CallGatewayToolCommand
from application.gateway.calls.clear_call import (
    Clearance,
    Cleared,
    ClearGatewayCall,
    Ended,
    Refused,
    Waiting,
    pending_result,
)
from application.gateway.calls.pending_calls import ContinuedCall, PendingCalls
from application.gateway.calls.request_states import RequestStates
from application.gateway.calls.send_call import SendGatewayCall
from application.gateway.calls.settle_call import SettleGatewayCall
from application.gateway.calls.settle_lost_calls import due_at
from application.gateway.ports import GatewayLedger
from application.gateway.tools.gateway_toolset import GatewayToolset, GatewayToolsets
from application.gateway.tools.param_headers import HeaderParam, header_mismatch
from application.system.ports import Clock, IdSource
from application.tools import failure_text
from application.tools.check_tool_call import CheckedCall, CheckToolCall
from application.tools.result_text import cleaned
from domain.errors import ServiceError, invalid, not_found
from domain.gateway.call import GatewayCall
from domain.ids import ApprovalId, ToolCallId
from domain.json_value import JsonObject
from domain.policy.decision import decide_call
from domain.policy.rules import Verdict
from domain.threads.message import ToolUse
from domain.tools.capabilities import ToolType
from domain.tools.meta_tools import META_NAMES
from domain.tools.names import MAX_NAME_LENGTH
from domain.tools.result import ToolResult
from domain.tools.tool import Tool


class CallGatewayTool:
    """Rules:
    - A name that the session lacks, or that an allowlist hides, is rejected as unknown and audited.
    - Invalid arguments and policy denials are answered with the text that models get.
    - A call is sent (`SendGatewayCall`) only after its intent is durable.
    - A canary token in the arguments ends the session and its run, and quarantines its thread.
    - A call that requires approval stays open for some time. It is sent after the approval,
      while its client waits or when it repeats the call.
    - Where tools are searched, `call_tool` is a call of the tool that it names, and `search_tools`
      is answered from the session's tools. Both are audited.
    - The call of an app that the client renders is a call of the same session, and its audit entry
      says so.
    """

    def __init__(
        self,
        *,
        toolsets: GatewayToolsets,
        check: CheckToolCall,
        clearing: ClearGatewayCall,
        sending: SendGatewayCall,
        settling: SettleGatewayCall,
        pending: PendingCalls,
        states: RequestStates,
        ledger: GatewayLedger,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._toolsets = toolsets
        self._check = check
        self._clearing = clearing
        self._sending = sending
        self._settling = settling
        self._pending = pending
        self._states = states
        self._ledger = ledger
        self._clock = clock
        self._ids = ids

    async def execute(self, command: CallGatewayToolCommand) -> GatewayAnswer:
        """Raises NOT_FOUND `tool_not_found`, FORBIDDEN `agent_disabled` and `agent_not_found`,
        CONFLICT `gateway_session_halted`, INVALID `request_state_invalid`, `header_mismatch`,
        `tool_ambiguous`, UNAVAILABLE `storage_unavailable`.
        """
        if command.name in META_NAMES:
            tools = await self._toolsets.of(command.session)
            if tools.is_searched(command.tool_search):
                return await self._through_search(command, tools)
        return await self._called(command)

    async def _through_search(self, command: CallGatewayToolCommand, tools: GatewayToolset) -> GatewayAnswer:
        """A search, or the call of the tool that `call_tool` names, which is a call like any
        other."""
        use = ToolUse(id=ToolCallId(self._ids.new("call")), name=command.name, params=command.arguments)
        answer = self._check.meta_answer(use, tools.toolset, tools.exposed)
        if answer is None:
            name, arguments = str(command.arguments["name"]), command.arguments.get("arguments")
            given = arguments if isinstance(arguments, dict) else {}
            # Headers repeat the arguments of tools that the client was listed.
            named = replace(command, name=name, arguments=given, param_headers=None, renders_apps=False)
            return replace(await self._called(named), called=name)
        call, found = (
            self._met(command, command.name, tools.guard.without(command.arguments)),
            tools.guard.arguments(command.arguments),
        )
        answer, shown = tools.guard.result(answer)
        if found is not None or shown is not None:
            leaked = ToolResult.blocked("run_halted", _HALTED)
            raise await self._settling.halt(
                command.session, tools, call, leaked, found or shown or "", decision=None, duration_s=0.0
            )
        await self._settling.refuse(command.session, tools, call, answer, decision=None)
        return GatewayAnswer(result=answer)

    async def _called(self, command: CallGatewayToolCommand) -> GatewayAnswer:
        approval_id = None
        if command.request_state is not None:
            state = self._states.opened(command.session, command.request_state)
            if "call" in state:
                return await self._pending.resume(_continued(command, state))
            approval_id = ApprovalId(str(state.get("approval")))
        wait_s, now = self._clearing.wait_s(resumable=command.resumable), asyncio.get_running_loop().time
        until = now() + (0.0 if command.as_task else wait_s)
        while True:
            answer = await self._attempt(command, approval_id, max(0.0, until - now()))
            if not isinstance(answer, Ended):
                return answer
            approval_id = answer.approval_id

    async def resume(self, command: CallGatewayToolCommand, approval_id: ApprovalId) -> GatewayAnswer | None:
        """Continue a call that has an approval, without another approval request. None if the call
        does not wait any more."""
        answer = await self._attempt(command, approval_id, None)
        return None if isinstance(answer, Ended) else answer

    async def _attempt(
        self, command: CallGatewayToolCommand, approval_id: ApprovalId | None, wait_s: float | None
    ) -> GatewayAnswer | Ended:
        session = command.session
        tools = await self._toolsets.of(session)
        tools = tools.with_apps if command.renders_apps else tools
        checked, tool = await self._checked(command, tools)
        if command.param_headers is not None:
            _check_headers(tools.header_params(tool), command.arguments, command.param_headers)
        call = self._call(command, tools, checked, tool)
        found = tools.guard.arguments(
            {**call.params, _ANSWERS: {**command.responses}} if command.responses else call.params
        )
        if found is not None:
            refusal, kept = ToolResult.blocked("run_halted", _HALTED), tools.guard.without(call.params)
            call = replace(call, params=kept)
            raise await self._settling.halt(
                session, tools, call, refusal, found, decision=checked.decision, duration_s=0.0
            )
        if checked.answer is not None:
            await self._settling.refuse(session, tools, call, checked.answer, decision=checked.decision)
            return GatewayAnswer(result=checked.answer)
        needs_approval = checked.decision is not None and checked.decision.verdict is Verdict.REQUIRE_APPROVAL
        if not needs_approval and approval_id is None:
            return await self._recorded(command, tools, call, checked)
        cleared = await self._clearing.execute(
            session, tools, call, checked, approval_id=approval_id, wait_s=wait_s, client=command.client
        )
        return await self._after_clearance(command, tools, checked, cleared)

    async def _checked(self, command: CallGatewayToolCommand, tools: GatewayToolset) -> tuple[CheckedCall, Tool]:
        """The checked call and its tool. Raises NOT_FOUND for a tool that is missing or hidden."""
        name = tools.model_facing(command.name)
        if name is None:
            raise await self._unknown(command, tools)
        checked = self._check.recheck(name, command.arguments, tools.toolset)
        if checked.tool is None or (checked.decision is not None and checked.decision.is_hidden):
            raise await self._unknown(command, tools)
        return checked, checked.tool

    async def _after_clearance(
        self, command: CallGatewayToolCommand, tools: GatewayToolset, checked: CheckedCall, cleared: Clearance
    ) -> GatewayAnswer | Ended:
        match cleared:
            case Cleared(call=sent, decision=decision, is_recorded=is_recorded):
                approved = replace(checked, params=sent.params, decision=decision)
                if is_recorded:
                    return await self._sending.execute(command, tools, sent, approved)
                return await self._recorded(command, tools, sent, approved)
            case Refused(call=refused, result=result, decision=decision, is_stored=is_stored):
                end = self._settling.settle if is_stored else self._settling.refuse
                await end(command.session, tools, refused, result, decision=decision)
                return GatewayAnswer(result=result)
            case Waiting(approval=approval):
                return GatewayAnswer(result=pending_result(approval), waiting=cleared)
            case Ended():
                return cleared
            case _:
                assert_never(cleared)

    async def _recorded(
        self, command: CallGatewayToolCommand, tools: GatewayToolset, call: GatewayCall, checked: CheckedCall
    ) -> GatewayAnswer:
        """Record the call, then send it."""
        policy = tools.toolset.policy_of(call.name)
        if not await self._ledger.intend(call, max_calls=policy.max_calls):
            reached = decide_call(policy, call.name, call.params, calls_so_far=policy.max_calls or 0)
            refusal = failure_text.blocked_by_policy(reached)
            await self._settling.refuse(command.session, tools, call, refusal, decision=reached)
            return GatewayAnswer(result=refusal)
        return await self._sending.execute(command, tools, call, checked)

    def _call(
        self, command: CallGatewayToolCommand, tools: GatewayToolset, checked: CheckedCall, tool: Tool
    ) -> GatewayCall:
        now = self._clock.now()
        return GatewayCall(
            id=ToolCallId(self._ids.new("call")),
            session_id=command.session.id,
            organization_id=command.session.organization_id,
            name=checked.name,
            type=tool.type,
            server_id=None if tool.mcp is None else tool.mcp.server_id,
            params=checked.params,
            recorded_at=now,
            due_at=due_at(now, tools.timeout_s(checked.name)),
            from_app=tools.is_for_apps(command.name, tool),
        )

    async def _unknown(self, command: CallGatewayToolCommand, tools: GatewayToolset) -> ServiceError:
        """Store the call of an unknown tool with its name only. Returns the refusal, or the end of
        the session if the arguments hold a canary token."""
        name = tools.guard.words(" ".join(cleaned(command.name).split())[:MAX_NAME_LENGTH])
        call = self._met(command, name, {})
        canary_id = tools.guard.arguments(command.arguments)
        if canary_id is not None:
            halted = ToolResult.blocked("run_halted", _HALTED)
            return await self._settling.halt(
                command.session, tools, call, halted, canary_id, decision=None, duration_s=0.0
            )
        refusal = failure_text.unknown_tool(name)
        await self._settling.refuse(command.session, tools, call, refusal, decision=None)
        if several := tools.named_by_apps(command.name):
            return invalid("tool_ambiguous", f"Tools of several MCP servers have this name: {', '.join(several)}.")
        return not_found("tool", command.name)

    def _met(self, command: CallGatewayToolCommand, name: str, params: JsonObject) -> GatewayCall:
        """A call that is not sent to a tool."""
        now = self._clock.now()
        return GatewayCall(
            id=ToolCallId(self._ids.new("call")),
            session_id=command.session.id,
            organization_id=command.session.organization_id,
            name=name,
            type=ToolType.MCP_TOOL,
            server_id=None,
            params=params,
            recorded_at=now,
            due_at=now,
        )


_ANSWERS = "inputResponses"
_HALTED = "The session was halted before this call was sent."


def _continued(command: CallGatewayToolCommand, state: JsonObject) -> ContinuedCall:
    return ContinuedCall(
        session=command.session,
        name=command.name,
        arguments=command.arguments,
        state=state,
        responses=command.responses,
    )


def _check_headers(params: tuple[HeaderParam, ...], arguments: JsonObject, headers: Mapping[str, str | None]) -> None:
    if params and (wrong := header_mismatch(params, arguments, headers)) is not None:
        raise invalid("header_mismatch", wrong)
