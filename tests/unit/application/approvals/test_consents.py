"""Consents: when the approvals of several people are enough."""

from dataclasses import replace

import pytest

from application.approvals.consents import Consents
from domain.approvals.approval import Approval, ApprovalState
from domain.approvals.decision import CallDecision
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ApiKeyId
from tests.builders import after
from tests.doubles.approvals import InMemoryApprovalStore
from tests.doubles.state import InMemoryState
from tests.refusals import refused
from tests.run_builders import a_run_approval
from tests.unit.application.actors import a_principal

pytestmark = pytest.mark.requirement("P2", "C3")
APPROVAL = replace(a_run_approval(), approvals_needed=3)


def person(name: str) -> Principal:
    return replace(a_principal(Role.OPERATOR), key_id=ApiKeyId(f"usr_{name}"))


async def suffice(state: InMemoryState, by: str, approval: Approval = APPROVAL, *, approve: bool = True) -> bool:
    state.approvals.setdefault(approval.id, approval)
    decision = CallDecision(tool_call_id=approval.tool_call_id, approve=approve)
    consents = Consents(approvals=InMemoryApprovalStore(state))
    return await consents.suffice(person(by), approval, decision, at=after(1))


async def test_the_last_of_as_many_people_as_are_needed_decides_and_each_is_audited() -> None:
    state = InMemoryState()
    assert [await suffice(state, name) for name in ("ann", "bob", "ann", "cleo")] == [False, False, False, True]
    consents = state.approvals[APPROVAL.id].consents
    assert [each.person for each in consents or ()] == ["usr_ann", "usr_bob", "usr_cleo"]
    assert [entry.details["approvals"] for entry in state.audit.values()] == [1, 2, 3]


async def test_where_enough_have_approved_any_of_them_may_decide_again_after_a_crash() -> None:
    state = InMemoryState()
    for name in ("ann", "bob", "cleo"):
        await suffice(state, name)
    assert await suffice(state, "ann")
    assert len(state.audit) == 3


async def test_one_approval_and_each_denial_is_enough_and_stores_no_consent() -> None:
    state = InMemoryState()
    assert await suffice(state, "ann", approve=False)
    assert await suffice(state, "ann", a_run_approval())
    assert not state.audit


async def test_what_has_ended_gets_no_consent() -> None:
    state = InMemoryState()
    state.approvals[APPROVAL.id] = replace(APPROVAL, state=ApprovalState.DENIED)
    with refused("approval_decided"):
        await suffice(state, "ann")
