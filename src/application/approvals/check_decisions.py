"""Checks decisions about calls of a suspended run before anything is stored."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from application.agents.calling_agent import caller_rules
from application.agents.ports import AgentStore
from application.approvals.consents import Consents
from application.approvals.deciders import Deciders
from application.approvals.decision_rules import checked_arguments, decided_outcome
from application.approvals.ports import ApprovalStore
from application.mcp.ports import McpServerStore
from application.policy.canary_guard import CanaryGuard
from application.tools.call_context import scope_of_run
from application.tools.check_tool_call import CheckToolCall
from application.tools.client_tools import with_client_tools
from application.tools.toolset_builder import ToolsetBuilder
from domain.agents.agent import Agent
from domain.approvals.approval import Approval, ApprovalOutcome, ApprovalState
from domain.approvals.decision import CallDecision, refuse_decision
from domain.errors import Violation, conflict, invalid
from domain.identity.api_key import Principal
from domain.ids import ApprovalId, ToolCallId
from domain.json_value import JsonObject
from domain.runs.called_by import CalledBy
from domain.runs.run import Run, RunStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedDecisions:
    """The outcomes to store. With a `stale` approval no decision is taken: the outcomes mark all
    stale approvals. Approvals of `several` people become outcomes with the last consent
    (`CheckDecisions.taken`)."""

    outcomes: tuple[ApprovalOutcome, ...] = ()
    stale: ApprovalId | None = None
    several: tuple[tuple[CallDecision, Approval], ...] = ()


class CheckDecisions:
    """Rules:
    - `refuse_decision`, `checked_arguments` and `decided_outcome` have the rules of one decision.
    - All decisions are taken, or none. An approval where others have to approve, too, is stored and
      decides nothing yet (`Consents`). It stays if the run changes before the rest of its request
      is stored.
    - A call that may have been sent is sent again with the same arguments, or not at all.
    - An approval for another version of the agent, or of the tool's MCP server, is stale.
    """

    def __init__(
        self,
        *,
        approvals: ApprovalStore,
        agents: AgentStore,
        servers: McpServerStore,
        catalog: ToolsetBuilder,
        check: CheckToolCall,
        deciders: Deciders,
        consents: Consents,
    ) -> None:
        self._deciders = deciders
        self._consents = consents
        self._servers = servers
        self._approvals = approvals
        self._agents = agents
        self._catalog = catalog
        self._check = check

    async def execute(
        self, principal: Principal, run: Run, decisions: tuple[CallDecision, ...], *, at: datetime
    ) -> CheckedDecisions:
        """Raises CONFLICT (`approval_decided`, `approval_expired`, `approval_stale`,
        `approval_cancelled`, `run_not_waiting`), FORBIDDEN (`self_approval_forbidden`,
        `not_an_approver`, `account_not_yours`), INVALID (`tool_call_not_pending`,
        `arguments_invalid`, `arguments_denied`)."""
        if not decisions:
            return CheckedDecisions()
        stored = await self._approvals.of_run(run.organization_id, run.id)
        by_call = {approval.tool_call_id: approval for approval in stored}
        by_call |= {approval.tool_call_id: approval for approval in stored if approval.state is ApprovalState.PENDING}
        chosen = [(decision, _approval_of(run, by_call, decision, index)) for index, decision in enumerate(decisions)]
        deciders = await self._deciders.of(principal, [approval for _, approval in chosen])
        for index, (decision, approval) in enumerate(chosen):
            refuse_decision(deciders[approval.id], approval, decision, at=at, path=_path(index))
        agent = await self._agents.get(run.organization_id, run.agent_id)
        stale = [approval for approval in stored if agent is not None and await self._is_stale(approval, agent)]
        if any(approval in stale for _, approval in chosen):
            return CheckedDecisions(
                outcomes=tuple(
                    ApprovalOutcome(approval_id=approval.id, state=ApprovalState.STALE, at=at, by="system")
                    for approval in stale
                ),
                stale=next(approval.id for _, approval in chosen if approval in stale),
            )
        guard = CanaryGuard({}) if agent is None else await CanaryGuard.prepared(agent, run.id)
        edited = await self._edited(principal, run, agent, chosen, guard)
        return CheckedDecisions(
            outcomes=tuple(
                decided_outcome(principal, approval, decision, guard, edited=edited.get(decision.tool_call_id), at=at)
                for decision, approval in chosen
            ),
            several=tuple(each for each in chosen if each[1].needed > 1),
        )

    async def taken(
        self, principal: Principal, checked: CheckedDecisions, *, at: datetime
    ) -> tuple[ApprovalOutcome, ...]:
        """Store the caller's consents, once the rest of the request is checked; the outcomes that
        are decided with them. Raises as `Consents`."""
        waiting = {
            approval.id
            for decision, approval in checked.several
            if not await self._consents.suffice(principal, approval, decision, at=at)
        }
        return tuple(outcome for outcome in checked.outcomes if outcome.approval_id not in waiting)

    async def _is_stale(self, approval: Approval, agent: Agent) -> bool:
        """Approvals of a deleted agent are bound to its last version."""
        if approval.state is not ApprovalState.PENDING:
            return False
        server = None
        if approval.server is not None and approval.server_id is not None:
            server = await self._servers.get(approval.organization_id, approval.server_id)
        return not approval.is_bound_to(agent.version, None if server is None else server.version)

    async def _edited(
        self,
        principal: Principal,
        run: Run,
        agent: Agent | None,
        chosen: Sequence[tuple[CallDecision, Approval]],
        guard: CanaryGuard,
    ) -> dict[ToolCallId, JsonObject]:
        edited = [
            (index, decision.arguments, approval)
            for index, (decision, approval) in enumerate(chosen)
            if decision.arguments is not None
        ]
        if not edited:
            return {}
        sent_before = {use.id for use in run.pending if use.approval is not None and use.approval.outcome_unknown}
        for index, _, approval in edited:
            if approval.tool_call_id in sent_before:
                raise invalid(
                    "arguments_invalid",
                    "The arguments of a call that may have been sent already cannot be changed.",
                    Violation(path=_path(index), message="belong to a call that was not sent yet"),
                )
        if agent is None:
            raise conflict("agent_deleted", "The run's agent was deleted; arguments cannot be changed any more.")
        scope = scope_of_run(run)
        toolset = await self._catalog.toolset(
            agent.config,
            scope,
            run_allowlist=run.tool_allowlist,
            wired=run.wired,
            caller=await caller_rules(self._agents, run.organization_id, CalledBy.of(run.metadata), agent.config),
            actor=run.requested_by,
        )
        toolset = with_client_tools(toolset, run.tools_of_client)
        return {
            approval.tool_call_id: checked_arguments(
                arguments,
                approval.tool,
                toolset,
                guard,
                self._check,
                path=_path(index),
                is_own=principal.person_id == scope.person_id,
            )
            for index, arguments, approval in edited
        }


def _approval_of(run: Run, by_call: dict[ToolCallId, Approval], decision: CallDecision, index: int) -> Approval:
    approval = by_call.get(decision.tool_call_id)
    if approval is not None:
        return approval
    if run.status is not RunStatus.REQUIRES_ACTION:
        raise conflict("run_not_waiting", f"Run {run.id} is {run.status}, not requires_action.", run_id=run.id)
    raise invalid(
        "tool_call_not_pending",
        f"Run {run.id} does not wait for an approval of all of these calls.",
        Violation(path=f"approvals.{index}.tool_call_id", message="does not wait for an approval"),
    )


def _path(index: int) -> str:
    return f"approvals.{index}.arguments"
