"""CreateOrganization: a tenant with its first key, created by platform keys, audited in two
trails."""

from typing import Any

import pytest
from pytest_mock import MockerFixture, MockType

from application.identity.create_organization import (
    CreatedOrganization,
    CreateOrganization,
    CreateOrganizationCommand,
)
from application.identity.ports import OrganizationStore
from application.policy.policy_checks import PolicyChecks
from domain.audit.event import AuditAction
from domain.errors import ServiceError, Violation
from domain.identity.api_key import hash_token
from domain.identity.role import Role
from domain.runs.limits import LimitSettings
from tests.builders import ORG, OTHER_ORG, START
from tests.doubles.organizations import InMemoryOrganizationStore
from tests.doubles.surroundings import FixedClock
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal
from tests.unit.application.identity.organizations import (
    PLATFORM,
    a_state_with_organizations,
    fresh_ids,
    trail_of,
)


class Ports:
    """ORG and OTHER_ORG in memory, and checks that let every policy pass."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state = a_state_with_organizations()
        self.organizations: OrganizationStore = InMemoryOrganizationStore(self.state)
        self.policies: MockType = mocker.create_autospec(PolicyChecks, instance=True)
        self.policies.violations.return_value = []
        self._ids = fresh_ids()

    async def create(self, **command: Any) -> CreatedOrganization:
        """Create `Acme` with the platform's key, unless `command` says otherwise."""
        creating = CreateOrganization(
            organizations=self.organizations, policies=self.policies, clock=FixedClock(), ids=self._ids
        )
        defaults: dict[str, Any] = {"principal": PLATFORM, "name": "Acme"}
        return await creating.execute(CreateOrganizationCommand(**(defaults | command)))

    def assert_nothing_created(self) -> None:
        assert set(self.state.organizations) == {ORG, OTHER_ORG}
        assert not self.state.keys
        assert not self.state.audit


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("C6")
async def test_an_organization_is_created_with_the_given_settings_and_defaults_for_the_others(ports: Ports) -> None:
    limits = LimitSettings(max_turns=3)

    created = (await ports.create(settings={"mcp_enabled": False}, limits=limits)).organization

    assert (created.name, created.mcp_enabled, created.limits) == ("Acme", False, limits)
    assert (created.version, created.created_at, created.retention_days) == (1, START, None)
    assert ports.state.organizations[created.id] == created


@pytest.mark.requirement("C6")
async def test_its_first_key_has_the_role_admin_and_no_platform_rights(ports: Ports) -> None:
    created = await ports.create()

    key = ports.state.keys[created.admin_key.key.id]
    assert (key.organization_id, key.role, key.platform) == (created.organization.id, Role.ADMIN, False)


@pytest.mark.requirement("C6")
async def test_only_a_hash_of_the_first_token_is_stored_and_no_repr_shows_the_token(ports: Ports) -> None:
    created = await ports.create()

    assert created.admin_key.key.token_hash == hash_token(created.admin_key.token)
    assert created.admin_key.token not in repr(created)
    assert created.admin_key.token not in repr(ports.state.keys)


@pytest.mark.requirement("C5", "C6")
async def test_the_creator_is_named_in_its_own_trail_and_not_in_that_of_the_new_organization(ports: Ports) -> None:
    created = await ports.create()

    ours, theirs = trail_of(ports.state, ORG), trail_of(ports.state, created.organization.id)
    actions = [AuditAction.ORGANIZATION_CREATED, AuditAction.KEY_CREATED]
    assert [entry.action for entry in ours] == [entry.action for entry in theirs] == actions
    assert {entry.actor for entry in ours} == {PLATFORM.key_id}
    assert {entry.actor for entry in theirs} == {"platform"}


async def test_two_organizations_may_have_one_name(ports: Ports) -> None:
    first, second = await ports.create(), await ports.create()

    assert first.organization.id != second.organization.id


@pytest.mark.parametrize("wrong", [{"name": " "}, {"settings": {"retention_days": 0}}], ids=["no name", "no days"])
async def test_an_invalid_organization_is_not_created(ports: Ports, wrong: dict[str, Any]) -> None:
    with refused("organization_invalid"):
        await ports.create(**wrong)

    ports.assert_nothing_created()


@pytest.mark.requirement("C2")
async def test_a_policy_that_cannot_be_used_is_refused(ports: Ports) -> None:
    fault = Violation(path="tool_policies.x.arguments_schema", message="is not a schema")
    ports.policies.violations.return_value = [fault]

    with pytest.raises(ServiceError) as caught:
        await ports.create()

    assert (caught.value.code, list(caught.value.violations)) == ("organization_invalid", [fault])
    ports.assert_nothing_created()


@pytest.mark.requirement("C6")
async def test_an_admin_without_a_platform_key_creates_no_organization(ports: Ports) -> None:
    with refused("platform_key_required"):
        await ports.create(principal=a_principal())

    ports.assert_nothing_created()


async def test_no_token_is_given_for_an_organization_that_cannot_be_stored(ports: Ports, mocker: MockerFixture) -> None:
    ports.organizations = mocker.create_autospec(OrganizationStore, instance=True)
    ports.organizations.add.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.create()


@pytest.mark.requirement("B1", "C6")
async def test_a_new_organization_may_have_remote_servers_and_packages_unless_more_is_granted(ports: Ports) -> None:
    assert (await ports.create()).organization.mcp_kinds == ("http", "sse", "a2a", "npm", "python")
    assert (await ports.create(settings={"mcp_kinds": None})).organization.mcp_kinds is None
    assert (await ports.create(settings={"mcp_kinds": ("http",)})).organization.mcp_kinds == ("http",)
