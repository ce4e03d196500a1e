"""UpdateOrganization: which settings change, whose, and in which trails that is audited."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from pytest_mock import MockerFixture, MockType

from application.identity.ports import OrganizationStore
from application.identity.update_organization import UpdateOrganization, UpdateOrganizationCommand
from application.policy.policy_checks import PolicyChecks
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError, Violation
from domain.identity.organization import Organization
from domain.identity.role import Role
from domain.ids import OrganizationId
from domain.runs.limits import LimitSettings
from tests.builders import ORG, OTHER_ORG, an_organization
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

    async def update(self, **command: Any) -> Organization:
        """Change ORG as its admin, unless `command` says otherwise."""
        updating = UpdateOrganization(
            organizations=self.organizations, policies=self.policies, clock=FixedClock(), ids=self._ids
        )
        defaults: dict[str, Any] = {"principal": a_principal()}
        return await updating.execute(UpdateOrganizationCommand(**(defaults | command)))

    def assert_unchanged(self) -> None:
        assert self.state.organizations == {id: an_organization(id) for id in (ORG, OTHER_ORG)}
        assert not self.state.audit


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


async def test_an_admin_changes_settings_of_its_own_organization_and_the_others_stay(ports: Ports) -> None:
    changed = await ports.update(changes={"mcp_enabled": False, "retention_days": 30})

    assert changed == replace(an_organization(ORG), mcp_enabled=False, retention_days=30, version=2)
    assert ports.state.organizations == {ORG: changed, OTHER_ORG: an_organization(OTHER_ORG)}


@pytest.mark.requirement("A7")
async def test_limits_are_merged_one_by_one(ports: Ports) -> None:
    await ports.update(limits={"max_turns": 5, "max_cost_usd": Decimal(1)})

    changed = await ports.update(limits={"max_turns": None})

    assert changed.limits == LimitSettings(max_cost_usd=Decimal(1))


@pytest.mark.requirement("C5")
async def test_a_change_is_audited_with_what_was_set_and_the_names_of_long_values(ports: Ports) -> None:
    await ports.update(changes={"mcp_enabled": False, "name": "Mine", "models": ("openai:gpt-5-mini",)})

    [entry] = trail_of(ports.state, ORG)
    assert (entry.action, entry.actor, entry.resource) == (AuditAction.ORGANIZATION_UPDATED, "key_admin", ORG)
    assert entry.details == {"version": 2, "name": "Mine", "mcp_enabled": False, "changed": ["models"]}


async def test_a_change_of_nothing_makes_no_version_and_no_audit_entry(ports: Ports) -> None:
    same = await ports.update(changes={"mcp_enabled": True}, limits={"max_turns": None})

    assert same == an_organization(ORG)
    ports.assert_unchanged()


@pytest.mark.requirement("C5", "C6")
async def test_a_platform_key_changes_any_organization_and_is_named_in_its_own_trail_only(ports: Ports) -> None:
    changed = await ports.update(principal=PLATFORM, organization_id=OTHER_ORG, changes={"mcp_enabled": False})

    assert (changed.id, changed.mcp_enabled) == (OTHER_ORG, False)
    assert ports.state.organizations[ORG] == an_organization(ORG)
    [ours], [theirs] = trail_of(ports.state, ORG), trail_of(ports.state, OTHER_ORG)
    assert ours.action is theirs.action is AuditAction.ORGANIZATION_UPDATED
    assert ours.resource == theirs.resource == OTHER_ORG
    assert (ours.actor, theirs.actor) == (PLATFORM.key_id, "platform")


@pytest.mark.requirement("C6")
async def test_an_admin_without_a_platform_key_changes_no_other_organization(ports: Ports) -> None:
    with refused("platform_key_required"):
        await ports.update(organization_id=OTHER_ORG, changes={"mcp_enabled": False})

    ports.assert_unchanged()


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", [Role.VIEWER, Role.RUNNER, Role.OPERATOR])
async def test_only_an_admin_changes_settings(ports: Ports, role: Role) -> None:
    with refused("role_insufficient"):
        await ports.update(principal=a_principal(role), changes={"mcp_enabled": False})

    ports.assert_unchanged()


async def test_an_organization_that_is_gone_is_not_found(ports: Ports) -> None:
    with refused("organization_not_found"):
        await ports.update(principal=PLATFORM, organization_id=OrganizationId("org_gone"))


async def test_an_invalid_change_is_refused(ports: Ports) -> None:
    with refused("organization_invalid"):
        await ports.update(changes={"name": " "})

    ports.assert_unchanged()


@pytest.mark.requirement("C2")
async def test_a_policy_that_cannot_be_used_is_refused(ports: Ports) -> None:
    fault = Violation(path="tool_policies.x.arguments_schema", message="is not a schema")
    ports.policies.violations.return_value = [fault]

    with pytest.raises(ServiceError) as caught:
        await ports.update(changes={"name": "Mine"})

    assert (caught.value.code, list(caught.value.violations)) == ("organization_invalid", [fault])
    ports.assert_unchanged()


async def test_a_change_of_a_version_that_was_overtaken_is_refused(ports: Ports) -> None:
    first = await ports.update(changes={"name": "1"}, expected_version=1)

    with pytest.raises(ServiceError) as caught:
        await ports.update(changes={"name": "2"}, expected_version=1)

    assert (caught.value.code, caught.value.kind) == ("version_conflict", ErrorKind.PRECONDITION)
    assert ports.state.organizations[ORG] == first


async def test_a_change_is_stored_over_the_version_that_was_read_and_a_failure_is_raised(
    ports: Ports, mocker: MockerFixture
) -> None:
    organizations = mocker.create_autospec(OrganizationStore, instance=True)
    organizations.get.return_value = replace(an_organization(ORG), version=7)
    organizations.save.side_effect = storage_away()
    ports.organizations = organizations

    with refused("storage_unavailable"):
        await ports.update(changes={"name": "Mine"})

    assert organizations.save.await_args.kwargs["expected_version"] == 7


@pytest.mark.requirement("K1")
async def test_only_a_platform_key_changes_the_weight_of_an_organization_in_the_queue(ports: Ports) -> None:
    with refused("platform_key_required"):
        await ports.update(changes={"queue_weight": 2})
    ports.assert_unchanged()
    heavier = await ports.update(principal=PLATFORM, organization_id=OTHER_ORG, changes={"queue_weight": 2})
    assert heavier.queue_weight == 2
    with pytest.raises(ServiceError) as wrong:
        await ports.update(principal=PLATFORM, changes={"queue_weight": 0})
    assert [fault.path for fault in wrong.value.violations] == ["queue_weight"]


@pytest.mark.requirement("K2")
@pytest.mark.parametrize("bound", ["max_queued", "max_running"])
async def test_only_a_platform_key_bounds_the_runs_of_an_organization(ports: Ports, bound: str) -> None:
    with refused("platform_key_required"):
        await ports.update(changes={bound: 2})
    ports.assert_unchanged()
    await ports.update(principal=PLATFORM, organization_id=OTHER_ORG, changes={bound: 2})
    with pytest.raises(ServiceError) as wrong:
        await ports.update(principal=PLATFORM, changes={bound: 0})
    assert [fault.path for fault in wrong.value.violations] == [bound]


@pytest.mark.requirement("B1", "C6")
async def test_only_a_platform_key_changes_the_kinds_of_servers_that_an_organization_may_have(ports: Ports) -> None:
    with refused("platform_key_required"):
        await ports.update(changes={"mcp_kinds": ("custom",)})
    ports.assert_unchanged()
    granted = await ports.update(
        principal=PLATFORM, organization_id=OTHER_ORG, changes={"mcp_kinds": ("http", "custom")}
    )
    assert granted.mcp_kinds == ("http", "custom")
    with pytest.raises(ServiceError) as wrong:
        await ports.update(principal=PLATFORM, changes={"mcp_kinds": ("exe",)})
    assert [fault.path for fault in wrong.value.violations] == ["mcp_kinds.0"]
