"""ListOrganizations: all tenants, for platform keys only."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.identity.ports import OrganizationStore
from application.identity.queries import ListOrganizations
from application.system.pages import PageRequest
from domain.identity.api_key import Principal
from domain.identity.role import Role
from tests.builders import ORG, OTHER_ORG, an_organization
from tests.doubles.organizations import InMemoryOrganizationStore
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal
from tests.unit.application.identity.organizations import PLATFORM, a_state_with_organizations


@pytest.mark.requirement("C6")
async def test_a_platform_key_sees_all_organizations_newest_first_page_by_page() -> None:
    list_organizations = ListOrganizations(organizations=InMemoryOrganizationStore(a_state_with_organizations()))
    first = await list_organizations.execute(principal=PLATFORM, page=PageRequest(limit=1))
    rest = PageRequest(limit=1, cursor=first.next_cursor)

    last = await list_organizations.execute(principal=PLATFORM, page=rest)

    assert (first.items, last.items) == ((an_organization(OTHER_ORG),), (an_organization(ORG),))
    assert last.next_cursor is None


@pytest.mark.requirement("C6")
@pytest.mark.parametrize(
    ("principal", "code"),
    [
        (a_principal(), "platform_key_required"),
        (replace(a_principal(Role.OPERATOR), platform=True), "role_insufficient"),
    ],
    ids=["admin of one organization", "operator"],
)
async def test_no_other_key_lists_organizations(mocker: MockerFixture, principal: Principal, code: str) -> None:
    organizations = mocker.create_autospec(OrganizationStore, instance=True)

    with refused(code):
        await ListOrganizations(organizations=organizations).execute(principal=principal)

    organizations.page.assert_not_awaited()


async def test_a_storage_failure_is_not_an_empty_list(mocker: MockerFixture) -> None:
    organizations = mocker.create_autospec(OrganizationStore, instance=True)
    organizations.page.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ListOrganizations(organizations=organizations).execute(principal=PLATFORM)
