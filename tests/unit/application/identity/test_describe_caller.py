"""Who the caller is."""

from dataclasses import replace

import pytest

from application.identity.describe_caller import DescribeCaller
from domain.identity.api_key import Principal
from domain.identity.role import Role
from tests.builders import KEY, ORG, a_key, after, an_organization
from tests.doubles.identity import InMemoryIdentityStore
from tests.doubles.organizations import InMemoryOrganizationStore
from tests.doubles.people import InMemoryUserStore
from tests.doubles.state import InMemoryState
from tests.people_builders import USER, a_user


@pytest.fixture
def describe() -> DescribeCaller:
    state = InMemoryState()
    state.organizations[ORG] = an_organization()
    state.keys[KEY] = replace(a_key(), expires_at=after(60))
    state.users[USER] = a_user()
    return DescribeCaller(
        organizations=InMemoryOrganizationStore(state),
        identities=InMemoryIdentityStore(state),
        users=InMemoryUserStore(state),
    )


async def test_a_key_learns_its_name_and_its_expiry(describe: DescribeCaller) -> None:
    principal = Principal(organization_id=ORG, key_id=KEY, role=Role.VIEWER, platform=True)
    caller = await describe.execute(principal)
    assert (caller.id, caller.name, caller.user, caller.expires_at) == (KEY, "a key", None, after(60))
    assert (caller.organization, caller.role, caller.platform) == (an_organization(), Role.VIEWER, True)


@pytest.mark.requirement("P1")
async def test_a_person_learns_the_role_of_this_request_and_until_when_it_is_valid(describe: DescribeCaller) -> None:
    principal = a_user(role=Role.ADMIN).principal(after(30))
    caller = await describe.execute(principal)
    assert (caller.id, caller.name, caller.user) == (USER, "Ann", a_user())
    assert (caller.role, caller.platform, caller.expires_at) == (Role.ADMIN, False, after(30))
