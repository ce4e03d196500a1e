"""GetOrganization: one's own for every role, any other for platform keys."""

import pytest
from pytest_mock import MockerFixture

from application.identity.ports import OrganizationStore
from application.identity.queries import GetOrganization
from domain.identity.role import Role
from domain.ids import OrganizationId
from tests.builders import ORG, OTHER_ORG, an_organization
from tests.doubles.organizations import InMemoryOrganizationStore
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal
from tests.unit.application.identity.organizations import PLATFORM, a_state_with_organizations


@pytest.fixture
def get() -> GetOrganization:
    return GetOrganization(organizations=InMemoryOrganizationStore(a_state_with_organizations()))


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", list(Role))
async def test_every_role_reads_its_own_organization(get: GetOrganization, role: Role) -> None:
    assert await get.execute(principal=a_principal(role)) == an_organization(ORG)


@pytest.mark.requirement("C6")
async def test_a_platform_key_reads_any_organization(get: GetOrganization) -> None:

    assert await get.execute(principal=PLATFORM, organization_id=OTHER_ORG) == an_organization(OTHER_ORG)


@pytest.mark.requirement("C6")
async def test_an_admin_without_a_platform_key_reads_no_other_organization(mocker: MockerFixture) -> None:
    organizations = mocker.create_autospec(OrganizationStore, instance=True)

    with refused("platform_key_required"):
        await GetOrganization(organizations=organizations).execute(principal=a_principal(), organization_id=OTHER_ORG)

    organizations.get.assert_not_awaited()


async def test_an_organization_that_is_gone_is_not_found(get: GetOrganization) -> None:
    gone = OrganizationId("org_gone")

    with refused("organization_not_found"):
        await get.execute(principal=a_principal(organization_id=gone))


async def test_a_storage_failure_is_not_taken_for_a_missing_organization(mocker: MockerFixture) -> None:
    organizations = mocker.create_autospec(OrganizationStore, instance=True)
    organizations.get.side_effect = storage_away()

    with refused("storage_unavailable"):
        await GetOrganization(organizations=organizations).execute(principal=a_principal())
