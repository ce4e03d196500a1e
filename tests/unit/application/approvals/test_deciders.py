"""Deciders: what is read about people to say who decides many approvals."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.approvals.deciders import Deciders
from application.identity.acting_people import ActingPeople
from application.identity.ports import IdentityStore, Memberships, UserAccess
from domain.approvals.approval import Approval
from domain.errors import ServiceError
from domain.identity.role import Role
from domain.identity.user import UserStatus
from domain.ids import ApiKeyId, ApprovalId
from tests.approval_builders import deciders
from tests.doubles.state import InMemoryState
from tests.people_builders import PROVIDER, USER, a_person, a_provider, a_user
from tests.run_builders import a_run_approval
from tests.unit.application.actors import a_principal


@pytest.mark.requirement("C3", "P2")
async def test_starters_of_many_approvals_are_read_together_and_without_their_groups(mocker: MockerFixture) -> None:
    memberships = mocker.create_autospec(Memberships, instance=True)
    identities = mocker.create_autospec(IdentityStore, instance=True)
    identities.creators.return_value = {"key_1": USER}
    approvals = [
        replace(a_run_approval(requested_by=ApiKeyId(by), allow_self_approval=allowed), id=ApprovalId(f"apr_{by}"))
        for by, allowed in (("key_1", False), ("key_2", False), (USER, False), ("key_3", True))
    ]

    people = ActingPeople(memberships=memberships, identities=identities)
    users = mocker.create_autospec(UserAccess, instance=True)

    found = await Deciders(people=people, user_access=users).of(a_person(Role.OPERATOR), approvals)

    refused = {approval.id for approval in approvals if found[approval.id].refusal(approval) is not None}
    assert refused == {"apr_key_1", f"apr_{USER}"}
    identities.creators.assert_awaited_once()
    assert sorted(identities.creators.await_args.args[1]) == ["key_1", "key_2"]
    identities.key.assert_not_awaited()
    memberships.groups_of.assert_not_awaited()
    users.admitted.assert_not_awaited()


@pytest.mark.requirement("C3", "P2")
@pytest.mark.parametrize("status", [UserStatus.DEACTIVATED, UserStatus.REMOVED])
async def test_the_key_of_a_person_who_is_not_admitted_is_none_of_several_people(status: UserStatus) -> None:
    state = InMemoryState()
    state.identity_providers[PROVIDER] = a_provider()
    state.users[USER] = a_user()
    approval = replace(a_run_approval(), approvals_needed=2)
    key = replace(a_principal(Role.OPERATOR), key_of=USER)

    async def refusal(needed: Approval) -> ServiceError | None:
        return (await deciders(state).of(key, [needed]))[needed.id].refusal(needed)

    assert await refusal(approval) is None
    state.users[USER] = a_user(status=status)
    refused = await refusal(approval)
    assert (refused and refused.code, await refusal(a_run_approval())) == ("person_required", None)
