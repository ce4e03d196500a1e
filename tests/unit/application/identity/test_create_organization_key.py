"""CreateOrganizationKey: platform keys create admin keys for organizations that have none left."""

import pytest
from pytest_mock import MockerFixture

from application.identity.create_api_key import CreatedApiKey
from application.identity.create_organization_key import CreateOrganizationKey, CreateOrganizationKeyCommand
from application.identity.ports import OrganizationStore
from domain.audit.event import AuditAction
from domain.identity.api_key import Principal, hash_token
from domain.identity.role import Role
from domain.ids import OrganizationId
from tests.builders import ORG, OTHER_ORG
from tests.doubles.organizations import InMemoryOrganizationStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal
from tests.unit.application.identity.organizations import (
    PLATFORM,
    a_state_with_organizations,
    fresh_ids,
    trail_of,
)


@pytest.fixture
def state() -> InMemoryState:
    return a_state_with_organizations()


async def create(
    organizations: OrganizationStore,
    *,
    principal: Principal = PLATFORM,
    organization_id: OrganizationId = OTHER_ORG,
    name: str = "second admin",
) -> CreatedApiKey:
    creating = CreateOrganizationKey(organizations=organizations, clock=FixedClock(), ids=fresh_ids())
    command = CreateOrganizationKeyCommand(principal=principal, organization_id=organization_id, name=name)
    return await creating.execute(command)


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("organization_id", [ORG, OTHER_ORG], ids=["its own", "another"])
async def test_a_platform_key_creates_an_admin_key_for_any_organization(
    state: InMemoryState, organization_id: OrganizationId
) -> None:
    created = await create(InMemoryOrganizationStore(state), organization_id=organization_id)

    key = state.keys[created.key.id]
    assert (key.organization_id, key.name) == (organization_id, "second admin")
    assert (key.role, key.platform) == (Role.ADMIN, False)


@pytest.mark.requirement("C6")
async def test_only_a_hash_of_the_token_is_stored_and_no_repr_shows_the_token(state: InMemoryState) -> None:
    created = await create(InMemoryOrganizationStore(state))

    assert created.key.token_hash == hash_token(created.token)
    assert created.token not in repr(created)
    assert created.token not in repr(state.keys)


@pytest.mark.requirement("C5", "C6")
async def test_the_creator_is_named_in_its_own_trail_and_not_in_that_of_the_organization(
    state: InMemoryState,
) -> None:
    created = await create(InMemoryOrganizationStore(state))

    [ours], [theirs] = trail_of(state, ORG), trail_of(state, OTHER_ORG)
    assert ours.action is theirs.action is AuditAction.KEY_CREATED
    assert ours.resource == theirs.resource == created.key.id
    assert (ours.actor, theirs.actor) == (PLATFORM.key_id, "platform")


@pytest.mark.parametrize(
    ("organization_id", "name", "code"),
    [
        (OrganizationId("org_nowhere"), "a", "organization_not_found"),
        (OTHER_ORG, " ", "api_key_invalid"),
    ],
    ids=["no organization", "no name"],
)
async def test_a_key_for_no_organization_or_without_a_name_is_not_created(
    state: InMemoryState, organization_id: OrganizationId, name: str, code: str
) -> None:
    with refused(code):
        await create(InMemoryOrganizationStore(state), organization_id=organization_id, name=name)

    assert not state.keys
    assert not state.audit


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("organization_id", [ORG, OTHER_ORG], ids=["its own", "another"])
async def test_an_admin_without_a_platform_key_creates_none(
    mocker: MockerFixture, organization_id: OrganizationId
) -> None:
    organizations = mocker.create_autospec(OrganizationStore, instance=True)

    with refused("platform_key_required"):
        await create(organizations, principal=a_principal(), organization_id=organization_id)

    organizations.get.assert_not_awaited()
    organizations.add_key.assert_not_awaited()


async def test_no_token_is_given_for_a_key_that_cannot_be_stored(mocker: MockerFixture) -> None:
    organizations = mocker.create_autospec(OrganizationStore, instance=True)
    organizations.add_key.side_effect = storage_away()

    with refused("storage_unavailable"):
        await create(organizations)
