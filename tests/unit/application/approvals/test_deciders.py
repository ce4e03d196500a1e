"""Deciders: what is read about people to say who decides many approvals."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.approvals.deciders import Deciders
from application.identity.acting_people import ActingPeople
from application.identity.ports import IdentityStore, Memberships
from domain.identity.role import Role
from domain.ids import ApiKeyId, ApprovalId
from tests.people_builders import USER, a_person
from tests.run_builders import a_run_approval


@pytest.mark.requirement("C3", "P2")
async def test_starters_of_many_approvals_are_read_together_and_without_their_groups(mocker: MockerFixture) -> None:
    memberships = mocker.create_autospec(Memberships, instance=True)
    identities = mocker.create_autospec(IdentityStore, instance=True)
    identities.creators.return_value = {"key_1": USER}
    approvals = [
        replace(a_run_approval(requested_by=ApiKeyId(by), allow_self_approval=allowed), id=ApprovalId(f"apr_{by}"))
        for by, allowed in (("key_1", False), ("key_2", False), (USER, False), ("key_3", True))
    ]

    found = await Deciders(people=ActingPeople(memberships=memberships, identities=identities)).of(
        a_person(Role.OPERATOR), approvals
    )

    refused = {approval.id for approval in approvals if found[approval.id].refusal(approval) is not None}
    assert refused == {"apr_key_1", f"apr_{USER}"}
    identities.creators.assert_awaited_once()
    assert sorted(identities.creators.await_args.args[1]) == ["key_1", "key_2"]
    identities.key.assert_not_awaited()
    memberships.groups_of.assert_not_awaited()
