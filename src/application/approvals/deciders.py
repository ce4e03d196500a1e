"""Deciders: who decides an approval, and who started what waits for it."""

from collections.abc import Sequence

from application.identity.acting_people import ActingPeople
from domain.approvals.approval import Approval
from domain.approvals.decision import Decider
from domain.identity.api_key import Principal
from domain.ids import ApprovalId
from domain.policy.acting_person import ActingPerson


class Deciders:
    """Reads about people only what the approvals ask for: most name no approvers, and let the starter approve."""

    def __init__(self, *, people: ActingPeople) -> None:
        self._people = people

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
        return {
            approval.id: Decider(
                person=person,
                starter=None if approval.requested_by is None else starters.get(approval.requested_by),
            )
            for approval in approvals
        }
