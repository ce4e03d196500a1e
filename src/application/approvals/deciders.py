"""Deciders: who decides an approval, and who started what waits for it."""

from collections.abc import Sequence

from application.identity.acting_people import ActingPeople
from application.identity.ports import UserAccess
from domain.approvals.approval import Approval
from domain.approvals.decision import Decider
from domain.identity.api_key import Principal
from domain.ids import ApprovalId
from domain.policy.acting_person import ActingPerson


class Deciders:
    """Reads about people only what the approvals ask for: most name no approvers, and let the
    starter approve."""

    def __init__(self, *, people: ActingPeople, user_access: UserAccess) -> None:
        self._people = people
        self._users = user_access

    async def of(self, principal: Principal, approvals: Sequence[Approval]) -> dict[ApprovalId, Decider]:
        """The caller as decider of each approval."""
        person = ActingPerson(id=principal.key_id, person_id=principal.acts_for)
        if any(approval.approvers for approval in approvals):
            person = await self._people.calling(principal)
        others = {
            approval.requested_by
            for approval in approvals
            if approval.requested_by is not None and not approval.allow_self_approval
        }
        starters = await self._people.starters(principal.organization_id, others) if others else {}
        is_admitted = await self._is_admitted(principal, approvals)
        return {
            approval.id: Decider(
                person=person,
                is_admitted=is_admitted,
                starter=None if approval.requested_by is None else starters.get(approval.requested_by),
            )
            for approval in approvals
        }

    async def _is_admitted(self, principal: Principal, approvals: Sequence[Approval]) -> bool:
        """A key outlives its person. Users are checked with each request."""
        if principal.key_of is None or all(approval.needed == 1 for approval in approvals):
            return True
        return await self._users.admitted(principal.organization_id, principal.key_of) is not None
