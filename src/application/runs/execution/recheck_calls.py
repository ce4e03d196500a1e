"""Checks calls of an earlier worker again before they are sent."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from application.runs.execution.run_session import RunSession
from application.system.ports import Clock
from application.tools import failure_text
from application.tools.check_tool_call import CheckedCall, CheckToolCall
from application.tools.toolset import Toolset
from domain.approvals.approval import approval_digest
from domain.approvals.decision import approval_cause
from domain.ids import ToolCallId
from domain.policy.decision import Decision
from domain.policy.layers import ToolPolicy
from domain.policy.rules import OnUnknownOutcome, Verdict
from domain.runs.approvals import approval_request, closed_approvals
from domain.runs.audit_trail import tool_call_audit
from domain.runs.halting import halted_end, halting_call
from domain.runs.ledger import ToolCall, ToolCallState
from domain.runs.run_events import tool_settled
from domain.runs.step import Step
from domain.tools.result import ToolResult, outcome_unknown
from domain.tools.tool import Tool

Decisions = dict[ToolCallId, Decision | None]
"""Of policy, by call; None if policy was not evaluated."""
_OUTCOME_UNKNOWN = "The service was interrupted after this call may have been sent, and its outcome is unknown. Approving sends it again."


class RecheckCalls:
    """Rules:
    - An approval is valid for its tool, arguments, and versions of agent and MCP server. After a
      change of these or of policy, the call is checked like a new one: sent, blocked, or requiring
      a new approval.
    - A call recorded before a crash may have been sent. It is sent again only if it was
      repeatable and still is. Otherwise its outcome is unknown, or, if policy says so, a person
      decides. A call of a remote agent whose task was recorded is continued.
    """

    def __init__(self, *, check: CheckToolCall, clock: Clock) -> None:
        self._check = check
        self._clock = clock

    async def execute(self, session: RunSession, toolset: Toolset) -> None:
        """One step, if anything changes. Call this before any of the session's calls is sent.
        Raises LeaseLost."""
        now = self._clock.now()
        changed: list[ToolCall] = []
        ended: list[ToolCall] = []
        decisions: Decisions = {}
        for call in session.open_calls.values():
            if not call.state.is_executable:
                continue
            checked = self._check.recheck(call.name, call.params, toolset)
            after = _decided(call, checked, toolset.policy_of(call.name), agent_version=session.agent.version)
            if isinstance(after, ToolResult):
                ended.append(call.settled(after, at=now))
                decisions[call.id] = checked.decision if after is checked.answer else None
            elif after != call:
                changed.append(after)
        if not changed and not ended:
            return
        halting = halting_call(ended, decisions)
        if halting is None:
            await session.advance(lambda: _step(session, toolset, tuple(changed), ended, decisions))
        else:
            await session.advance(lambda: _halting_step(session, toolset, ended, decisions, halting=halting, at=now))


def asks_for_approval(checked: CheckedCall) -> Decision | None:
    """The decision, if it requires an approval of the call."""
    decision = checked.decision
    if checked.answer is not None or decision is None or decision.verdict is not Verdict.REQUIRE_APPROVAL:
        return None
    return decision


def awaiting_approval(call: ToolCall, decision: Decision, tool: Tool | None, *, agent_version: int) -> ToolCall:
    """The unsent call, waiting for an approval as policy requires."""
    return _awaiting(call, decision.policy, approval_cause(decision.source), tool, agent_version=agent_version)


def _decided(call: ToolCall, checked: CheckedCall, policy: ToolPolicy, *, agent_version: int) -> ToolCall | ToolResult:
    """The call to send or to wait for; or its result."""
    is_stale = call.state is ToolCallState.UNDECIDED or not _is_bound(call, checked, agent_version)
    wanted = asks_for_approval(checked)
    if checked.answer is not None:
        return outcome_unknown() if call.was_perhaps_sent else checked.answer
    if call.was_perhaps_sent:
        repeatable = call.repeatable and checked.tool is not None and checked.tool.repeatable
        repeatable = repeatable or _continues(call, checked.tool)
        sent_again_by_approval = call.state is ToolCallState.APPROVED and not is_stale
        if not repeatable and not sent_again_by_approval:
            if policy.on_unknown_outcome is OnUnknownOutcome.INFORM:
                return outcome_unknown()
            cause = f"{_OUTCOME_UNKNOWN} {approval_cause(policy.source_of('on_unknown_outcome'))}"
            return _awaiting(call, policy, cause, checked.tool, agent_version=agent_version, outcome_unknown=True)
    call = replace(call, params=checked.params)
    if wanted is not None and is_stale:
        lost = call.was_perhaps_sent
        cause = f"{_OUTCOME_UNKNOWN} {approval_cause(wanted.source)}" if lost else approval_cause(wanted.source)
        return _awaiting(call, wanted.policy, cause, checked.tool, agent_version=agent_version, outcome_unknown=lost)
    if call.state is not ToolCallState.UNDECIDED:
        return call
    return replace(call, state=ToolCallState.AWAITING_CLIENT if call.is_displayed else ToolCallState.APPROVED)


def _continues(call: ToolCall, tool: Tool | None) -> bool:
    return call.input is not None and tool is not None and tool.mcp is not None and tool.mcp.continues


def _is_bound(call: ToolCall, checked: CheckedCall, agent_version: int) -> bool:
    """Whether the call's approval is valid for its arguments, the agent and the tool's server as
    they are now."""
    asked = call.approval
    if asked is None:
        return False
    server = None if checked.tool is None else checked.tool.server_pin
    # An approval that an earlier release requested is bound to no server.
    bound = approval_digest(call.name, checked.params, agent_version, None if asked.server is None else server)
    return asked.digest == bound


def _awaiting(
    call: ToolCall,
    policy: ToolPolicy,
    cause: str,
    tool: Tool | None,
    *,
    agent_version: int,
    outcome_unknown: bool = False,
) -> ToolCall:
    asked = approval_request(
        call,
        agent_version=agent_version,
        reason=cause,
        terms=policy.approval,
        outcome_unknown=outcome_unknown,
        server=None if tool is None else tool.server_pin,
    )
    return replace(call, state=ToolCallState.AWAITING_APPROVAL, approval=asked)


def _step(
    session: RunSession,
    toolset: Toolset,
    changed: tuple[ToolCall, ...],
    ended: Sequence[ToolCall],
    decisions: Decisions,
) -> Step:
    return Step(
        run=session.run,
        events=tuple(
            tool_settled(call, server=toolset.server_slug_of(call.name), decision=decisions.get(call.id))
            for call in ended
        ),
        changed=changed,
        settled=tuple(ended),
        audit=tuple(tool_call_audit(session.run, call, decision=decisions.get(call.id)) for call in ended),
    )


def _halting_step(
    session: RunSession,
    toolset: Toolset,
    blocked: Sequence[ToolCall],
    decisions: Decisions,
    *,
    halting: ToolCall,
    at: datetime,
) -> Step:
    """End the run: open calls besides the blocked ones are not executed."""
    ended = [*blocked, *_left_out(session, {call.id for call in blocked}, halting, at)]
    calls = {**session.open_calls, **{call.id: call for call in ended}}
    end = halted_end(session.run, tuple(calls.values()), halting, said=session.run.output, at=at)
    rest = _step(session, toolset, (), ended, decisions)
    return replace(
        end,
        events=(*rest.events, *end.events),
        settled=rest.settled,
        outcomes=closed_approvals(session.open_calls.values(), at=at, by="system"),
        audit=(*rest.audit, *end.audit),
    )


def _left_out(session: RunSession, but: set[str], halting: ToolCall, now: datetime) -> Iterator[ToolCall]:
    for call in session.open_calls.values():
        if call.state is not ToolCallState.SETTLED and call.id not in but:
            result = outcome_unknown() if call.was_perhaps_sent else failure_text.halted(halting.name)
            yield call.settled(result, at=now)
