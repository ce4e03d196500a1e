"""Builders of tool calls that wait for approvals."""

from dataclasses import replace
from unittest.mock import create_autospec

from application.approvals.deciders import Deciders
from application.gateway.calls.decide_gateway_approval import DecideGatewayApproval
from application.identity.acting_people import ActingPeople
from domain.policy.approvers import Approvers
from domain.policy.layers import ApprovalTerms
from domain.runs.approvals import approval_request
from domain.runs.ledger import ToolCall, ToolCallState
from tests.builders import a_tool_call
from tests.doubles.identity import InMemoryIdentityStore
from tests.doubles.organization_groups import InMemoryOrganizationGroupStore
from tests.doubles.people import InMemoryUserStore
from tests.doubles.state import InMemoryState


def awaiting_approval_call(
    call: ToolCall | None = None,
    *,
    agent_version: int = 1,
    ttl_s: float = 3600.0,
    allow_self_approval: bool = True,
    outcome_unknown: bool = False,
    approvers: tuple[Approvers, ...] = (),
    needed: int = 1,
) -> ToolCall:
    """The call as it waits for a person's approval."""
    call = call or a_tool_call()
    asked = approval_request(
        call,
        agent_version=agent_version,
        reason="The policy of the agent requires an approval.",
        terms=ApprovalTerms(ttl_s=ttl_s, allow_self=allow_self_approval, approvers=approvers, needed=needed),
        outcome_unknown=outcome_unknown,
    )
    return replace(call, state=ToolCallState.AWAITING_APPROVAL, approval=asked)


def no_gateway_approvals() -> DecideGatewayApproval:
    """For harnesses without gateway sessions."""
    spec: DecideGatewayApproval = create_autospec(DecideGatewayApproval, instance=True)
    return spec


def deciders(state: InMemoryState | None = None) -> Deciders:
    """Deciders over in-memory tables."""
    tables = state or InMemoryState()
    people = ActingPeople(memberships=InMemoryOrganizationGroupStore(tables), identities=InMemoryIdentityStore(tables))
    return Deciders(people=people, user_access=InMemoryUserStore(tables))
