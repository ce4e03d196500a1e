"""WhyNotApprovable: which pending approvals a caller may not approve, and why."""

from dataclasses import replace

import pytest

from application.approvals.queries import WhyNotApprovable
from domain.approvals.approval import ApprovalState
from domain.identity.role import Role
from domain.policy.approvers import Approvers
from tests.approval_builders import deciders
from tests.builders import a_tool_call
from tests.run_builders import a_run_approval
from tests.unit.application.actors import a_principal, roles_below

pytestmark = pytest.mark.requirement("P2")
FREE, NAMED, OWN, ENDED = (a_run_approval(a_tool_call(index)) for index in range(4))
APPROVALS = (
    FREE,
    replace(NAMED, approvers=(Approvers(people=("key_admin",)),)),
    replace(OWN, requested_by=a_principal(Role.OPERATOR).key_id, allow_self_approval=False),
    replace(ENDED, state=ApprovalState.APPROVED),
)


async def test_approvers_and_four_eyes_say_why_not_and_what_has_ended_is_left_out() -> None:
    found = await WhyNotApprovable(deciders=deciders()).execute(a_principal(Role.OPERATOR), APPROVALS)
    assert {approval_id: refusal.code for approval_id, refusal in found.items()} == {
        NAMED.id: "not_an_approver",
        OWN.id: "self_approval_forbidden",
    }
    assert await WhyNotApprovable(deciders=deciders()).execute(a_principal(Role.ADMIN), APPROVALS) == {}


async def test_below_operator_no_approval_is_approvable() -> None:
    for role in roles_below(Role.OPERATOR):
        found = await WhyNotApprovable(deciders=deciders()).execute(a_principal(role), APPROVALS)
        assert {refusal.code for refusal in found.values()} == {"role_insufficient"}
        assert set(found) == {FREE.id, NAMED.id, OWN.id}
