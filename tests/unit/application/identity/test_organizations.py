"""Organizations: created, listed and changed by platform keys, and by nobody else."""

from dataclasses import replace

import pytest

from application.identity.create_organization import CreateOrganization, CreateOrganizationCommand
from application.identity.create_organization_key import CreateOrganizationKey, CreateOrganizationKeyCommand
from application.identity.get_organization import GetOrganization, GetOrganizationCommand
from application.identity.list_organizations import ListOrganizations, ListOrganizationsCommand
from application.identity.update_organization import UpdateOrganization, UpdateOrganizationCommand
from application.policy.policy_checks import PolicyChecks
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal, hash_token
from domain.identity.role import Role
from domain.ids import OrganizationId
from infrastructure.schemas import JsonSchemaValidator
from tests.builders import ORG, OTHER_ORG, an_organization
from tests.doubles.organizations import InMemoryOrganizationStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import SequentialIds, StepClock
from tests.unit.application.actors import a_principal

PLATFORM = replace(a_principal(), platform=True)


class House:
    """The organizations' use cases over in-memory tables with ORG and OTHER_ORG."""

    def __init__(self) -> None:
        self.state = InMemoryState()
        self.state.organizations = {id: an_organization(id) for id in (ORG, OTHER_ORG)}
        store, clock, ids = InMemoryOrganizationStore(self.state), StepClock(), SequentialIds()
        for _ in range(9):
            ids.new("past_the_ids_of_the_builders")
        self.create = CreateOrganization(
            organizations=store, policies=PolicyChecks(schemas=JsonSchemaValidator()), clock=clock, ids=ids
        )
        self.create_key = CreateOrganizationKey(organizations=store, clock=clock, ids=ids)
        self.list = ListOrganizations(organizations=store)
        self.get = GetOrganization(organizations=store)
        self.update = UpdateOrganization(
            organizations=store, policies=PolicyChecks(schemas=JsonSchemaValidator()), clock=clock, ids=ids
        )

    def trail_of(self, organization_id: str) -> list[tuple[str, str]]:
        """Actions and actors."""
        entries = self.state.audit.values()
        return [(entry.action.value, entry.actor) for entry in entries if entry.organization_id == organization_id]


@pytest.fixture
def house() -> House:
    return House()


@pytest.mark.requirement("C6")
async def test_a_new_organization_comes_with_an_admin_key_of_its_own_that_is_no_platform_key(house: House) -> None:
    command = CreateOrganizationCommand(principal=PLATFORM, name="Acme", settings={"mcp_enabled": False})
    created = await house.create.execute(command)
    key = house.state.keys[created.admin_key.key.id]
    assert (created.organization.name, created.organization.mcp_enabled) == ("Acme", False)
    assert house.state.organizations[created.organization.id] == created.organization
    assert (key.organization_id, key.role, key.platform) == (created.organization.id, Role.ADMIN, False)
    assert key.token_hash == hash_token(created.admin_key.token)
    assert created.admin_key.token not in repr(created)


async def test_who_created_an_organization_is_in_the_creators_trail_and_not_told_to_the_organization(
    house: House,
) -> None:
    created = await house.create.execute(CreateOrganizationCommand(principal=PLATFORM, name="Acme"))
    actions = [AuditAction.ORGANIZATION_CREATED.value, AuditAction.KEY_CREATED.value]
    assert house.trail_of(ORG) == [(action, PLATFORM.key_id) for action in actions]
    assert house.trail_of(created.organization.id) == [(action, "platform") for action in actions]


@pytest.mark.requirement("C6")
async def test_a_platform_key_makes_an_admin_key_where_none_is_left_and_both_trails_say_so(house: House) -> None:
    command = CreateOrganizationKeyCommand(principal=PLATFORM, organization_id=OTHER_ORG, name="second admin")
    created = await house.create_key.execute(command)
    key = house.state.keys[created.key.id]
    assert (key.organization_id, key.role, key.platform, key.name) == (OTHER_ORG, Role.ADMIN, False, "second admin")
    assert key.token_hash == hash_token(created.token)
    assert house.trail_of(ORG) == [(AuditAction.KEY_CREATED.value, PLATFORM.key_id)]
    assert house.trail_of(OTHER_ORG) == [(AuditAction.KEY_CREATED.value, "platform")]


@pytest.mark.requirement("C6")
@pytest.mark.parametrize(
    ("principal", "organization_id", "name", "code"),
    [
        (a_principal(), OTHER_ORG, "a", "platform_key_required"),
        (a_principal(), ORG, "a", "platform_key_required"),
        (PLATFORM, OrganizationId("org_nowhere"), "a", "organization_not_found"),
        (PLATFORM, OTHER_ORG, " ", "api_key_invalid"),
    ],
)
async def test_an_admin_key_that_cannot_be_is_refused(
    house: House, principal: Principal, organization_id: OrganizationId, name: str, code: str
) -> None:
    command = CreateOrganizationKeyCommand(principal=principal, organization_id=organization_id, name=name)
    with pytest.raises(ServiceError) as refused:
        await house.create_key.execute(command)
    assert refused.value.code == code
    assert not house.state.keys


async def test_two_organizations_may_have_one_name(house: House) -> None:
    for _ in range(2):
        await house.create.execute(CreateOrganizationCommand(principal=PLATFORM, name="Acme"))
    listed = await house.list.execute(ListOrganizationsCommand(principal=PLATFORM))
    assert [organization.name for organization in listed.items].count("Acme") == 2


async def test_a_nameless_organization_is_not_created(house: House) -> None:
    with pytest.raises(ServiceError) as refused:
        await house.create.execute(CreateOrganizationCommand(principal=PLATFORM, name=" "))
    assert refused.value.code == "organization_invalid"
    assert set(house.state.organizations) == {ORG, OTHER_ORG}


async def test_a_platform_key_changes_any_organization_and_both_trails_say_so(house: House) -> None:
    command = UpdateOrganizationCommand(
        principal=PLATFORM, organization_id=OTHER_ORG, changes={"mcp_enabled": False}, expected_version=1
    )
    assert not (await house.update.execute(command)).mcp_enabled
    read = await house.get.execute(GetOrganizationCommand(principal=PLATFORM, organization_id=OTHER_ORG))
    assert (read.id, read.version) == (OTHER_ORG, 2)
    assert house.state.organizations[ORG] == an_organization(ORG)
    assert house.trail_of(ORG) == [("organization.updated", PLATFORM.key_id)]
    assert house.trail_of(OTHER_ORG) == [("organization.updated", "platform")]


async def test_an_admins_change_of_its_own_organization_is_one_entry(house: House) -> None:
    await house.update.execute(UpdateOrganizationCommand(principal=a_principal(), changes={"name": "Mine"}))
    assert house.trail_of(ORG) == [("organization.updated", a_principal().key_id)]


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("organization_id", [ORG, OTHER_ORG])
async def test_an_admin_without_a_platform_key_manages_no_organizations(house: House, organization_id: str) -> None:
    admin, named = a_principal(), OTHER_ORG if organization_id == OTHER_ORG else ORG
    for attempt in (
        house.create.execute(CreateOrganizationCommand(principal=admin, name="Acme")),
        house.list.execute(ListOrganizationsCommand(principal=admin)),
        house.get.execute(GetOrganizationCommand(principal=admin, organization_id=named)),
        house.update.execute(UpdateOrganizationCommand(principal=admin, organization_id=named)),
    ):
        with pytest.raises(ServiceError) as refused:
            await attempt
        assert (refused.value.kind, refused.value.code) == (ErrorKind.FORBIDDEN, "platform_key_required")
    assert house.state.audit == {}
