"""A call of an MCP server's tool as a step, within the organization's policy."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

from application.mcp.ports import ConnectionScope, McpReply
from application.system.ports import Clock
from application.tools import failure_text
from application.tools.call_context import IDEMPOTENCY_META, ToolCallContext
from application.tools.check_tool_call import CheckedCall, CheckToolCall
from application.tools.execute_mcp_tool import ExecuteMcpTool
from application.tools.ports import InputAwaited
from application.tools.toolset import Toolset
from application.tools.toolset_builder import ToolsetBuilder
from application.workflows.node_execution import AwaitsAnswer, NodeContext, NodeFailed, Succeeded
from application.workflows.ports import Expressions
from application.workflows.workflow_audit import StepCall, step_call_entry
from domain.agents.agent import AgentConfig
from domain.identity.api_key import person_of
from domain.ids import McpServerId, ToolCallId, derived_id
from domain.json_value import JsonObject, JsonValue
from domain.mcp.elicitation import MAX_ROUNDS
from domain.policy.rules import Verdict
from domain.tools.result import ToolResult, outcome_unknown
from domain.tools.tool import Tool
from domain.workflows.account_wait import AccountWait, account_wait_of
from domain.workflows.execution import NodeRun
from domain.workflows.graph import McpServerNodeConfig
from domain.workflows.plan import PlannedNode

DEFAULT_TIMEOUT_S = 30.0


class McpStep:
    """Rules:
    - The organization's allowlist and policies decide; arguments must fit the tool's schema. The
      server belongs to the team of the workflow run or to the organization.
    - `max_calls` counts the calls of the tool by all steps of the workflow run.
    - A call that requires approval fails.
    - A call that lacks the account of the person who started the run waits until that person
      connects it, for at most the node's `timeout_s` again. Nothing was sent, so the same attempt
      is made then. It asks at most `MAX_ROUNDS` times, all within that time.
    - The call has its own connection, unless the server's connection is shared.
    - A failed call is retried only if that is harmless.
    - Audited like calls of runs, with the output.
    """

    def __init__(
        self,
        *,
        catalog: ToolsetBuilder,
        check: CheckToolCall,
        execute: ExecuteMcpTool,
        expressions: Expressions,
        clock: Clock,
    ) -> None:
        self._catalog = catalog
        self._check = check
        self._execute = execute
        self._expressions = expressions
        self._clock = clock

    async def execute(self, node: PlannedNode, run: NodeRun, context: NodeContext) -> Succeeded | AwaitsAnswer:
        """`{text, structured}`. Raises NodeFailed."""
        config = node.config
        if not isinstance(config, McpServerNodeConfig) or config.call is None:
            raise ValueError(f"{node.kind} calls no tool")
        arguments = await context.filled(node, config.arguments, self._expressions)
        params: JsonObject = arguments if isinstance(arguments, dict) else {}
        scope = ConnectionScope(organization_id=context.organization_id, person_id=person_of(context.requested_by))
        whose = AgentConfig(name="workflow", model="none:none", mcp_servers=(config.server,), team=context.team)
        toolset = await self._catalog.toolset(whose, scope, actor=context.requested_by)
        tool = _meant(config.server, config.call, toolset)
        checked = self._check.recheck(tool.name, params, toolset, calls_so_far=context.calls_before(node, run))
        call = StepCall(
            id=ToolCallId(derived_id("call", context.workflow_run_id, node.id, run.attempt)),
            node_id=node.id,
            tool=tool,
            params=checked.params,
            decision=checked.decision,
            began=self._clock.monotonic(),
        )
        policy, replies = toolset.policy_of(tool.name), list[McpReply]()
        limits = (node.settings.timeout_s, policy.timeout_s)
        call_context = ToolCallContext(
            tool_call_id=call.id,
            scope=scope,
            timeout_s=min((limit for limit in limits if limit is not None), default=DEFAULT_TIMEOUT_S),
            meta={IDEMPOTENCY_META: call.id},
            max_results=policy.max_results,
            on_reply=replies.append,
        )
        try:
            result = await self._outcome(
                checked, call, call_context, node.settings.timeout_s, account_wait_of(run.asked)
            )
        except asyncio.CancelledError:
            # The node was abandoned or timed out; the interrupted call is still audited.
            self._note(context, call, outcome_unknown())
            raise
        if isinstance(result, AwaitsAnswer):
            return result
        self._note(context, call, result)
        if result.is_error:
            repeatable = config.idempotent or tool.repeatable
            raise NodeFailed(result.error_code or "mcp_tool_error", result.text, retryable=repeatable)
        structured: JsonValue = replies[-1].structured if replies else None
        return Succeeded(output={"text": result.text, "structured": structured})

    async def _outcome(
        self,
        checked: CheckedCall,
        call: StepCall,
        context: ToolCallContext,
        waits_s: float | None,
        former: AccountWait | None,
    ) -> ToolResult | AwaitsAnswer:
        if checked.answer is not None:
            return checked.answer
        if checked.decision is not None and checked.decision.verdict is Verdict.REQUIRE_APPROVAL:
            text = f"Calls of {call.tool.name} require approval; a workflow step does not wait for one."
            return ToolResult.blocked("approval_required", text)
        since = self._clock.now()
        try:
            return await self._execute.execute(call.tool, call.params, context)
        except InputAwaited as asked:
            question, mcp = asked.awaited.current, call.tool.mcp
            if question is not None and question.is_for_account and mcp is not None:
                wait = self._wait(mcp.server_id, since, waits_s, former)
                if wait.number > MAX_ROUNDS:
                    return failure_text.asked_too_often(MAX_ROUNDS)
                return AwaitsAnswer(asked=wait.question(question.message, question.url or ""), due_at=wait.due_at)
            text = "The server requested input during the call; a workflow step cannot give any."
            return ToolResult.failed("mcp_input_declined", text)

    def _wait(
        self, server_id: McpServerId, since: datetime, waits_s: float | None, former: AccountWait | None
    ) -> AccountWait:
        now = self._clock.now()
        if former is not None:
            # The account was renewed by the call itself, and refused: only a later one is worth
            # another call.
            return replace(former, server_id=server_id, since=now, number=former.number + 1)
        due_at = None if waits_s is None else now + timedelta(seconds=waits_s)
        return AccountWait(server_id=server_id, since=since, due_at=due_at)

    def _note(self, context: NodeContext, call: StepCall, result: ToolResult) -> None:
        now, took_s = self._clock.now(), self._clock.monotonic() - call.began
        context.note_audit(step_call_entry(context, call, result, at=now, duration_ms=round(took_s * 1000)))


def _meant(server: str, name: str, toolset: Toolset) -> Tool:
    """The tool, allowed or denied. Raises NodeFailed."""
    for overview in toolset.servers:
        if overview.unavailable is not None:
            detail = f"The MCP server {server!r}: {overview.unavailable}."
            raise NodeFailed("mcp_server_unavailable", detail, retryable=True)
    for tool in (*toolset.tools, *toolset.denied):
        if tool.mcp is not None and tool.mcp.tool_name == name:
            return tool
    raise NodeFailed("mcp_tool_not_found", f"The MCP server {server!r} has no tool {name!r} that may be called.")
