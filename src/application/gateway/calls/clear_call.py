"""ClearGatewayCall: decides whether a call that requires approval may be sent now."""

import asyncio
from dataclasses import dataclass, replace
from typing import assert_never

from application.approvals.ports import TIMERS_TOPIC, ApprovalStore, session_approvals_topic
from application.gateway.calls.ask_client import AskableClient
from application.gateway.calls.notify_of_approval import NotifyOfApproval
from application.gateway.calls.request_states import RequestStates
from application.gateway.calls.session_approvals import new_approval
from application.gateway.ports import AskedCall, GatewayApprovals
from application.gateway.tools.gateway_toolset import GatewayToolset
from application.system.ports import Clock, IdSource
from application.system.wakeups import Wakeups
from application.tools import failure_text
from application.tools.check_tool_call import CheckedCall, CheckToolCall
from domain.approvals.approval import Approval, ApprovalState, approval_digest
from domain.gateway.call import GatewayCall, GatewayCallState
from domain.gateway.session import GatewaySession
from domain.ids import ApprovalId
from domain.mcp.server_pin import ServerPin
from domain.policy.decision import Decision, decide_call
from domain.policy.rules import Verdict
from domain.runs.approvals import denied_result
from domain.tools.result import ToolResult

_REREAD_S = 5.0
"""Rereads after this time in case a wake-up was lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalWaits:
    """How many seconds a request waits for a decision: of a resumable client, and of one that must
    repeat the call. `most_waiting` bounds the waiting calls of one tool in one session."""

    resumable_s: float = 15.0
    last_s: float = 25.0
    most_waiting: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """The call may be sent with these arguments. `is_recorded`: the ledger has it as about to be
    sent."""

    call: GatewayCall
    decision: Decision | None
    is_recorded: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The call is not sent; `result` is its outcome. `is_stored`: the ledger has the call
    already."""

    call: GatewayCall
    result: ToolResult
    decision: Decision | None
    is_stored: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Not decided yet. The sealed `request_state` refers the client's next request to the same
    approval."""

    approval: Approval
    request_state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The approval ended while the request waited, or another request was faster: check the call
    again."""

    approval_id: ApprovalId


@dataclass(frozen=True, slots=True, kw_only=True)
class _Versions:
    """The session's agent and the tool's MCP server, as they are now."""

    agent: int
    server: ServerPin | None

    def are_those_of(self, approval: Approval) -> bool:
        """An approval that an earlier release requested is bound to no server."""
        if approval.server is not None and (self.server is None or self.server.version != approval.server.version):
            return False
        return approval.agent_version == self.agent


Clearance = Cleared | Refused | Waiting | Ended


class ClearGatewayCall:
    """Rules:
    - The same call of a session waits for one approval, however often the client repeats it.
      Other arguments are another call.
    - An approved call is sent once, while its client waits or when it repeats the call.
    - After a change of the agent or the tool's MCP server, the call requires a new approval.
    - A session may have at most `most_waiting` open approvals for one tool.
    - A denied or expired approval is reported once to the client, which may then request another.
    """

    def __init__(
        self,
        *,
        asking: GatewayApprovals,
        approvals: ApprovalStore,
        check: CheckToolCall,
        wakeups: Wakeups,
        states: RequestStates,
        clock: Clock,
        ids: IdSource,
        waits: ApprovalWaits,
        notifying: NotifyOfApproval,
    ) -> None:
        self._asking = asking
        self._approvals = approvals
        self._check = check
        self._wakeups = wakeups
        self._states = states
        self._clock = clock
        self._ids = ids
        self._waits = waits
        self._notifying = notifying

    def wait_s(self, *, resumable: bool) -> float:
        return self._waits.resumable_s if resumable else self._waits.last_s

    async def execute(
        self,
        session: GatewaySession,
        tools: GatewayToolset,
        call: GatewayCall,
        checked: CheckedCall,
        *,
        approval_id: ApprovalId | None,
        wait_s: float | None,
        client: AskableClient | None = None,
    ) -> Clearance:
        """Check one call of this session's tools. `approval_id` is the approval that the client
        knows. With `wait_s` None, a call that does not wait any more gets no new approval."""
        decision = checked.decision
        assert decision is not None
        waiting = await self._asking.asked(session.organization_id, session.id, call.name)
        found = _same(waiting, call, approval_id)
        if found is None and approval_id is not None and wait_s is None:
            return Ended(approval_id=approval_id)
        if decision.verdict is not Verdict.REQUIRE_APPROVAL:
            asked_for = call if found is None else replace(call, id=found.call.id, approval_id=found.approval.id)
            begun = found is not None and await self._asking.begin(found, asked_for)
            return Cleared(call=asked_for if begun else call, decision=decision, is_recorded=begun)
        now = _Versions(agent=tools.agent.version, server=None if checked.tool is None else checked.tool.server_pin)
        if found is None:
            asked = await self._ask(session, call, decision, now, waiting)
            if isinstance(asked, Refused):
                return asked
            found = asked
        elif not now.are_those_of(found.approval) or found.approval.state is ApprovalState.STALE:
            renewed = await self._renew(session, found, decision, now)
            if renewed is None:
                return Ended(approval_id=found.approval.id)
            found = renewed
        return await self._by_state(
            session, tools, found, call, checked=checked, decision=decision, wait_s=wait_s, client=client
        )

    async def _by_state(
        self,
        session: GatewaySession,
        tools: GatewayToolset,
        found: AskedCall,
        call: GatewayCall,
        *,
        checked: CheckedCall,
        decision: Decision,
        wait_s: float | None,
        client: AskableClient | None,
    ) -> Clearance:
        match found.approval.state:
            case ApprovalState.APPROVED:
                return await self._begin(tools, found, call, checked)
            case ApprovalState.PENDING | ApprovalState.STALE:
                if client is not None and self._notifying.can_notify(client):
                    has_ended = await self._notifying.execute(session, found, client, guard=tools.guard)
                    return Ended(approval_id=found.approval.id) if has_ended else self._waiting(session, found.approval)
                return await self._waited(session, found, wait_s or 0.0)
            case ApprovalState.CANCELLED:
                result = ToolResult.blocked("approval_cancelled", _SESSION_ENDED)
            case ApprovalState.DENIED | ApprovalState.EXPIRED:
                result = denied_result(found.approval.state, found.approval.reason)
            case _:
                assert_never(found.approval.state)
        return Refused(call=found.call, result=result, decision=decision, is_stored=True)

    def _is_full(self, waiting: tuple[AskedCall, ...]) -> bool:
        open_ones = sum(asked.approval.state is ApprovalState.PENDING for asked in waiting)
        return open_ones >= self._waits.most_waiting

    async def _ask(
        self,
        session: GatewaySession,
        call: GatewayCall,
        decision: Decision,
        now: "_Versions",
        waiting: tuple[AskedCall, ...],
    ) -> AskedCall | Refused:
        if self._is_full(waiting):
            result = ToolResult.blocked("approvals_waiting", _TOO_MANY)
            return Refused(call=call, result=result, decision=decision, is_stored=False)
        approval = self._new(session, call, decision, now)
        asked = AskedCall(
            call=replace(call, state=GatewayCallState.AWAITING_APPROVAL, approval_id=approval.id), approval=approval
        )
        if not await self._asking.ask(asked.call, approval, max_calls=decision.policy.max_calls):
            made = decision.policy.max_calls or 0
            reached = decide_call(decision.policy, call.name, call.params, calls_so_far=made)
            refusal = failure_text.blocked_by_policy(reached)
            return Refused(call=call, result=refusal, decision=reached, is_stored=False)
        self._wakeups.wake(TIMERS_TOPIC)
        return asked

    async def _renew(
        self, session: GatewaySession, stale: AskedCall, decision: Decision, now: "_Versions"
    ) -> AskedCall | None:
        approval = self._new(session, stale.call, decision, now)
        call = replace(stale.call, approval_id=approval.id)
        if not await self._asking.ask(call, approval, instead_of=stale.approval):
            return None
        self._wakeups.wake(TIMERS_TOPIC, session_approvals_topic(session.id))
        return AskedCall(call=call, approval=approval)

    def _new(self, session: GatewaySession, call: GatewayCall, decision: Decision, now: "_Versions") -> Approval:
        return new_approval(
            ApprovalId(self._ids.new("apr")),
            session,
            call,
            decision,
            agent_version=now.agent,
            server=now.server,
            at=self._clock.now(),
        )

    async def _begin(
        self, tools: GatewayToolset, found: AskedCall, call: GatewayCall, checked: CheckedCall
    ) -> Clearance:
        edited = found.approval.edited_arguments
        if edited is not None:
            checked = self._check.recheck(call.name, edited, tools.toolset)
            if checked.answer is not None:
                return Refused(call=found.call, result=checked.answer, decision=checked.decision, is_stored=True)
        sent = replace(call, id=found.call.id, params=checked.params, approval_id=found.approval.id)
        if not await self._asking.begin(found, sent):
            return Ended(approval_id=found.approval.id)
        return Cleared(call=sent, decision=checked.decision, is_recorded=True)

    async def _waited(self, session: GatewaySession, found: AskedCall, wait_s: float) -> Clearance:
        """Wait until the approval has ended, or for `wait_s`."""
        approval, now = found.approval, asyncio.get_running_loop().time
        until = now() + wait_s
        async with self._wakeups.subscribe(session_approvals_topic(session.id)) as ended:
            while True:
                stored = await self._approvals.get(session.organization_id, approval.id)
                if stored is None or stored.state is not ApprovalState.PENDING:
                    return Ended(approval_id=approval.id)
                left_s = until - now()
                if left_s <= 0:
                    break
                await ended.wait(min(left_s, _REREAD_S))
        return self._waiting(session, approval)

    def _waiting(self, session: GatewaySession, approval: Approval) -> Waiting:
        return Waiting(approval=approval, request_state=self._states.sealed(session, {"approval": approval.id}))


def _same(waiting: tuple[AskedCall, ...], call: GatewayCall, approval_id: ApprovalId | None) -> AskedCall | None:
    """The waiting call with the same digest: the one that the client names, otherwise the
    oldest."""
    same = [
        asked
        for asked in waiting
        if asked.approval.digest
        == approval_digest(call.name, call.params, asked.approval.agent_version, asked.approval.server)
    ]
    return next((asked for asked in same if asked.approval.id == approval_id), same[0] if same else None)


def pending_result(approval: Approval) -> ToolResult:
    """The result for clients that cannot send a state."""
    return ToolResult.blocked(
        "approval_pending",
        f"This call needs an approval, and it is not decided yet: {approval.id}, until"
        f" {approval.expires_at:%Y-%m-%dT%H:%M:%SZ}. It was not executed. Make the same call again, with the same arguments,"
        " once it is approved: then it is executed.",
    )


_TOO_MANY = (
    "This call needs an approval, and too many calls of this tool wait for approval. It was not executed, and no approval"
    " was requested. Wait until some of them are decided."
)
_SESSION_ENDED = "This call needed an approval, and its session ended before a decision. It was not executed."
