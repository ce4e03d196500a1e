"""Decides anew about calls that were approved, or whose approval became stale, before any of them is made."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from application.approvals.run_approvals import approval_request, closed_approvals
from application.runs.halting import halted_end
from application.runs.ports import Step
from application.runs.run_events import tool_settled
from application.runs.run_session import RunSession, settled_call
from application.system.ports import Clock
from application.tools import failure_text
from application.tools.check_tool_call import CheckedCall, CheckToolCall
from application.tools.toolset import Toolset
from domain.approvals.approval import approval_digest
from domain.policy.decision import Decision
from domain.policy.rules import Verdict
from domain.runs.audit_trail import tool_call_audit
from domain.runs.ledger import Settlement, ToolCall, ToolCallState
from domain.tools.result import ToolResult

_RETURNED = (ToolCallState.APPROVED, ToolCallState.UNDECIDED)


class DecideAnew:
    """Rules: an approval is good for the tool, the arguments and the version of the agent it was given for; if any of that has
    changed, or policy has tightened, the call is decided about like a new one: made, blocked, or asked for anew."""

    def __init__(self, *, check: CheckToolCall, clock: Clock) -> None:
        self._check = check
        self._clock = clock

    async def execute(self, session: RunSession, toolset: Toolset) -> None:
        """One step, if anything changes. Raises LeaseLost."""
        now = self._clock.now()
        changed: list[ToolCall] = []
        blocked: list[tuple[ToolCall, Settlement, Decision | None]] = []
        for call in session.open_calls.values():
            if call.state not in _RETURNED:
                continue
            checked = self._check.recheck(call.name, call.params, toolset)
            if checked.answer is not None:
                blocked.append((call, _settlement(call, checked.answer, now), checked.decision))
            else:
                after = _decided(session, call, checked)
                if after != call:
                    changed.append(after)
        if not changed and not blocked:
            return
        halting = next((call for call, _, decision in blocked if decision is not None and decision.halts), None)
        if halting is None:
            await session.advance(lambda: _step(session, toolset, tuple(changed), blocked))
        else:
            await session.advance(lambda: _halting_step(session, toolset, blocked, halting, now))


def asks_for_approval(checked: CheckedCall) -> Decision | None:
    """The decision that wants a person's word on the call, if it is that."""
    decision = checked.decision
    if checked.answer is not None or decision is None or decision.verdict is not Verdict.REQUIRE_APPROVAL:
        return None
    return decision


def awaiting_approval(call: ToolCall, decision: Decision, *, agent_version: int) -> ToolCall:
    """The call as it waits for an approval on the terms of policy."""
    asked = approval_request(
        call,
        agent_version=agent_version,
        reason=_cause(decision),
        ttl_s=decision.policy.approval.ttl_s,
        allow_self_approval=decision.policy.approval.allow_self,
    )
    return replace(call, state=ToolCallState.AWAITING_APPROVAL, approval=asked)


def _cause(decision: Decision) -> str:
    """Who wants the approval, in a sentence for people."""
    rule = "" if decision.source.pattern is None else f" for {decision.source.pattern}"
    return f"The policy of the {decision.source.layer.value}{rule} requires an approval."


def _decided(session: RunSession, call: ToolCall, checked: CheckedCall) -> ToolCall:
    version = session.agent.version
    bound = approval_digest(call.name, checked.params, version)
    good = call.state is ToolCallState.APPROVED and call.approval is not None and call.approval.digest == bound
    call = replace(call, params=checked.params)
    wanted = asks_for_approval(checked)
    if wanted is not None and not good:
        return awaiting_approval(call, wanted, agent_version=version)
    return replace(call, state=ToolCallState.AWAITING_CLIENT if call.is_displayed else ToolCallState.APPROVED)


def _settlement(call: ToolCall, result: ToolResult, now: datetime) -> Settlement:
    return Settlement(tool_call_id=call.id, result=result, duration_ms=0, at=now)


def _server(toolset: Toolset, call: ToolCall) -> str | None:
    tool = toolset.find(call.name)
    return None if tool is None or tool.mcp is None else tool.mcp.server_slug


def _step(
    session: RunSession,
    toolset: Toolset,
    changed: tuple[ToolCall, ...],
    blocked: list[tuple[ToolCall, Settlement, Decision | None]],
) -> Step:
    return Step(
        run=session.run,
        events=tuple(tool_settled(call, settlement, server=_server(toolset, call)) for call, settlement, _ in blocked),
        changed=changed,
        settled=tuple(settlement for _, settlement, _ in blocked),
        audit=tuple(
            tool_call_audit(session.run, call, settlement, decision=decision) for call, settlement, decision in blocked
        ),
    )


def _halting_step(
    session: RunSession,
    toolset: Toolset,
    blocked: list[tuple[ToolCall, Settlement, Decision | None]],
    halting: ToolCall,
    now: datetime,
) -> Step:
    """The run ends: what is open beside the blocked calls is not executed."""
    ends = [*blocked, *_left_out(session, {call.id for call, _, _ in blocked}, halting, now)]
    settlements = {settlement.tool_call_id: settlement for _, settlement, _ in ends}
    calls = tuple(
        settled_call(call, settlements[call.id]) if call.id in settlements else call
        for call in session.open_calls.values()
    )
    end = halted_end(session.run, calls, halting, said=session.run.output, at=now)
    rest = _step(session, toolset, (), ends)
    return replace(
        end,
        events=(*rest.events, *end.events),
        settled=rest.settled,
        outcomes=closed_approvals(session.open_calls.values(), at=now, by="system"),
        audit=(*rest.audit, *end.audit),
    )


def _left_out(
    session: RunSession, but: set[str], halting: ToolCall, now: datetime
) -> Iterator[tuple[ToolCall, Settlement, Decision | None]]:
    for call in session.open_calls.values():
        if call.state is not ToolCallState.SETTLED and call.id not in but:
            yield call, _settlement(call, failure_text.halted(halting.name), now), None
