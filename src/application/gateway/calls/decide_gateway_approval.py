"""Decides approvals of gateway sessions: decisions, and expiries."""

from datetime import datetime

from application.approvals.consents import Consents
from application.approvals.deciders import Deciders
from application.approvals.decision_rules import checked_arguments, decided_outcome
from application.approvals.ports import session_approvals_topic
from application.gateway.ports import GatewayApprovals, GatewaySessionStore
from application.gateway.tools.gateway_toolset import GatewayToolset, GatewayToolsets, scope_of
from application.system.ports import Clock
from application.system.wakeups import Wakeups
from application.tools.check_tool_call import CheckToolCall
from domain.approvals.approval import Approval, ApprovalOutcome, ApprovalState
from domain.approvals.decision import CallDecision, decision_audit, refuse_decision
from domain.approvals.refusals import approval_cancelled, approval_decided, approval_stale
from domain.errors import ErrorKind, ServiceError
from domain.gateway.session import GatewaySession
from domain.identity.api_key import Principal

_PATH = "arguments"


class DecideGatewayApproval:
    """Rules:
    - `refuse_decision`, `checked_arguments` and `decided_outcome` have the rules of one decision.
    - An approval of a session that has ended is cancelled.
    - An approval for another version of the agent, or of the tool's MCP server, is stale.
    - Calls of a disabled agent are denied, but not approved.
    - A decision sends nothing: the client waits for it, or makes the call again.
    """

    def __init__(
        self,
        *,
        asking: GatewayApprovals,
        sessions: GatewaySessionStore,
        toolsets: GatewayToolsets,
        check: CheckToolCall,
        deciders: Deciders,
        consents: Consents,
        wakeups: Wakeups,
        clock: Clock,
    ) -> None:
        self._asking = asking
        self._sessions = sessions
        self._toolsets = toolsets
        self._check = check
        self._deciders = deciders
        self._consents = consents
        self._wakeups = wakeups
        self._clock = clock

    async def execute(self, principal: Principal, approval: Approval, decision: CallDecision) -> None:
        """Decide a pending approval of a session. Raises CONFLICT (`approval_decided`,
        `approval_expired`, `approval_stale`, `approval_cancelled`), FORBIDDEN
        (`self_approval_forbidden`, `not_an_approver`, `account_not_yours`, `agent_disabled`),
        INVALID (`arguments_invalid`, `arguments_denied`)."""
        now = self._clock.now()
        deciders = await self._deciders.of(principal, [approval])
        refuse_decision(deciders[approval.id], approval, decision, at=now, path=_PATH)
        session = await self._session_of(approval, now)
        tools = await self._tools_of(session, is_needed=decision.approve)
        if tools is not None and not approval.is_bound_to(tools.agent.version, _server_version(tools, approval)):
            await self._end(approval, ApprovalState.STALE, at=now)
            raise approval_stale(approval.id)
        guard = await self._toolsets.guard_of(session) if tools is None else tools.guard
        edited = decision.arguments
        if edited is not None and tools is not None:
            is_own = principal.person_id == scope_of(session).person_id
            edited = checked_arguments(
                edited, approval.tool, tools.toolset, guard, self._check, path=_PATH, is_own=is_own
            )
        if not await self._consents.suffice(principal, approval, decision, at=now):
            return
        outcome = decided_outcome(principal, approval, decision, guard, edited=edited, at=now)
        if not await self._stored(approval, outcome):
            raise approval_decided(approval.id)

    async def expire(self, approval: Approval) -> bool:
        """Deny the call because its time is over. False if the approval had ended before."""
        return await self._end(approval, ApprovalState.EXPIRED, at=self._clock.now())

    async def _session_of(self, approval: Approval, now: datetime) -> GatewaySession:
        session_id = approval.gateway_session_id
        session = None if session_id is None else await self._sessions.get(approval.organization_id, session_id)
        if session is None or not session.is_open(now):
            await self._end(approval, ApprovalState.CANCELLED, at=now)
            raise approval_cancelled(approval.id)
        return session

    async def _tools_of(self, session: GatewaySession, *, is_needed: bool) -> GatewayToolset | None:
        """The session's tools. None while the agent is disabled or deleted, for a denial: it needs
        none."""
        try:
            return await self._toolsets.of(session)
        except ServiceError as error:
            if is_needed or error.kind is not ErrorKind.FORBIDDEN:
                raise
            return None

    async def _end(self, approval: Approval, state: ApprovalState, *, at: datetime) -> bool:
        return await self._stored(approval, ApprovalOutcome(approval_id=approval.id, state=state, at=at, by="system"))

    async def _stored(self, approval: Approval, outcome: ApprovalOutcome) -> bool:
        audit = decision_audit(
            outcome,
            organization_id=approval.organization_id,
            gateway_session_id=approval.gateway_session_id,
            tool_call_id=approval.tool_call_id,
            tool=approval.tool,
            server_id=approval.server_id,
            arguments=approval.arguments,
        )
        ended = await self._asking.end(approval, outcome, audit)
        if approval.gateway_session_id is not None:
            self._wakeups.wake(session_approvals_topic(approval.gateway_session_id))
        return ended


def _server_version(tools: GatewayToolset, approval: Approval) -> int | None:
    tool = tools.toolset.find(approval.tool)
    pin = None if tool is None else tool.server_pin
    return None if pin is None else pin.version
