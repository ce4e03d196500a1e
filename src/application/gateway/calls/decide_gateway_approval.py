"""DecideGatewayApproval: a person's word on a call of a gateway session; and the end of one that nobody decided about."""

from datetime import datetime

from application.approvals.check_decisions import SCHEMA_FAULTS, decider_words
from application.approvals.ports import session_approvals_topic
from application.gateway.calls.session_approvals import ended_approval_audit
from application.gateway.ports import GatewayApprovals, GatewaySessionStore
from application.gateway.tools.toolbox import GatewayToolbox, Toolbox
from application.policy.canary_guard import CanaryGuard
from application.system.ports import Clock
from application.system.wakeups import Wakeups
from application.tools.check_tool_call import CheckToolCall
from domain.approvals.approval import Approval, ApprovalOutcome, ApprovalState, approval_digest
from domain.approvals.refusals import (
    approval_cancelled,
    approval_decided,
    approval_expired,
    approval_stale,
    self_approval_forbidden,
)
from domain.errors import ErrorKind, ServiceError, Violation, invalid
from domain.identity.api_key import Principal
from domain.json_value import JsonObject


class DecideGatewayApproval:
    """Rules: as for calls of runs. In time, and once; whoever opened the session does not approve its calls where policy wants
    somebody else; arguments are edited within the tool's schema and policy, and hold no canary token; an approval for another
    version of the agent is stale; one of a session that has ended is cancelled. Deciding sends nothing: the client does, who
    waits, or asks again."""

    def __init__(
        self,
        *,
        asking: GatewayApprovals,
        sessions: GatewaySessionStore,
        toolbox: GatewayToolbox,
        check: CheckToolCall,
        wakeups: Wakeups,
        clock: Clock,
    ) -> None:
        self._asking = asking
        self._sessions = sessions
        self._toolbox = toolbox
        self._check = check
        self._wakeups = wakeups
        self._clock = clock

    async def execute(
        self,
        principal: Principal,
        approval: Approval,
        *,
        approve: bool,
        arguments: JsonObject | None,
        reason: str | None,
    ) -> None:
        """Decide a pending approval of a session. Raises CONFLICT (`approval_decided`, `approval_expired`, `approval_stale`,
        `approval_cancelled`), FORBIDDEN (`self_approval_forbidden`, `agent_disabled`), INVALID (`arguments_invalid`,
        `arguments_denied`)."""
        now = self._clock.now()
        if now >= approval.expires_at:
            raise approval_expired(approval.id)
        if approve and not approval.allow_self_approval and approval.is_own_run_of(principal.key_id):
            raise self_approval_forbidden(approval.id)
        if arguments is not None and not approve:
            belong = Violation(path="arguments", message="belong to an approved call")
            raise invalid("arguments_invalid", "The arguments of a denied call cannot be changed.", belong)
        toolbox = await self._toolbox_of(approval, now, is_needed=approve)
        guard = CanaryGuard({}) if toolbox is None else toolbox.guard
        if toolbox is not None and _is_stale(approval, toolbox):
            await self._end(approval, ApprovalState.STALE, by="system", at=now)
            raise approval_stale(approval.id)
        edited = None
        if arguments is not None and toolbox is not None:
            edited = self._checked(toolbox, approval, arguments)
        outcome = ApprovalOutcome(
            approval_id=approval.id,
            state=ApprovalState.APPROVED if approve else ApprovalState.DENIED,
            at=now,
            by=principal.key_id,
            reason=decider_words(reason, guard),
            edited_arguments=edited,
        )
        if not await self._stored(approval, outcome):
            raise approval_decided(approval.id)

    async def expire(self, approval: Approval) -> bool:
        """Deny the call because its time is over. False if the approval had ended before."""
        return await self._end(approval, ApprovalState.EXPIRED, by="system", at=self._clock.now())

    async def _toolbox_of(self, approval: Approval, now: datetime, *, is_needed: bool) -> Toolbox | None:
        """The session's tools; None for a denial that has to do without them."""
        session_id = approval.gateway_session_id
        session = None if session_id is None else await self._sessions.get(approval.organization_id, session_id)
        if session is None or not session.is_open(now):
            await self._end(approval, ApprovalState.CANCELLED, by="system", at=now)
            raise approval_cancelled(approval.id)
        try:
            return await self._toolbox.of(session)
        except ServiceError as error:
            if is_needed or error.kind is not ErrorKind.FORBIDDEN:
                raise
            return None

    def _checked(self, toolbox: Toolbox, approval: Approval, arguments: JsonObject) -> JsonObject:
        """The arguments as they would be sent."""
        canary_id = toolbox.guard.arguments(arguments)
        if canary_id is not None:
            holds = Violation(path="arguments", message=f"holds the canary token {canary_id}")
            raise invalid("arguments_denied", "The arguments hold a canary token; nothing was decided.", holds)
        checked = self._check.recheck(approval.tool, arguments, toolbox.toolset)
        if checked.answer is None:
            return checked.params
        code = "arguments_invalid" if checked.answer.error_code in SCHEMA_FAULTS else "arguments_denied"
        refused = Violation(path="arguments", message=checked.answer.text)
        raise invalid(code, "The call may not be made with these arguments; nothing was decided.", refused)

    async def _end(self, approval: Approval, state: ApprovalState, *, by: str, at: datetime) -> bool:
        return await self._stored(approval, ApprovalOutcome(approval_id=approval.id, state=state, at=at, by=by))

    async def _stored(self, approval: Approval, outcome: ApprovalOutcome) -> bool:
        ended = await self._asking.end(approval, outcome, ended_approval_audit(approval, outcome))
        if approval.gateway_session_id is not None:
            self._wakeups.wake(session_approvals_topic(approval.gateway_session_id))
        return ended


def _is_stale(approval: Approval, toolbox: Toolbox) -> bool:
    return approval.digest != approval_digest(approval.tool, approval.arguments, toolbox.agent.version)
