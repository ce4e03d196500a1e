"""CreateIdentityProvider: who adds identity providers, and which are valid."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.identity.assignable_roles import AssignableRoles
from application.identity.create_identity_provider import CreateIdentityProvider, CreateIdentityProviderCommand
from application.system.ports import OutboundPolicy
from domain.audit.event import AuditAction
from domain.errors import ServiceError
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import IdentityProviderId, OrganizationId
from tests.builders import OTHER_ORG, numbered
from tests.doubles.custom_roles import InMemoryCustomRoleStore
from tests.doubles.organizations import InMemoryOrganizationStore
from tests.doubles.people import InMemoryIdentityProviderStore
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.people_builders import AGENTS, ISSUER, a_provider
from tests.refusals import refused
from tests.unit.application.actors import a_principal, roles_below
from tests.unit.application.identity.organizations import a_state_with_organizations

COMMAND = CreateIdentityProviderCommand(
    principal=a_principal(), name="company", issuer=ISSUER, client_id="dragoman", client_secret="s3", rules=(AGENTS,)
)
PLATFORM = replace(a_principal(), platform=True)


class Ports:
    def __init__(self, mocker: MockerFixture) -> None:
        self.state = a_state_with_organizations()
        self.outbound: MockType = mocker.create_autospec(OutboundPolicy, instance=True)
        self.outbound.refusal.return_value = None
        self.create = CreateIdentityProvider(
            providers=InMemoryIdentityProviderStore(self.state),
            organizations=InMemoryOrganizationStore(self.state),
            assignable=AssignableRoles(custom_roles=InMemoryCustomRoleStore(self.state)),
            outbound=self.outbound,
            clock=FixedClock(),
            ids=SequentialIds(),
        )


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("P1")
async def test_an_admin_adds_an_identity_provider_and_the_secret_is_not_audited(ports: Ports) -> None:
    made = await ports.create.execute(COMMAND)
    assert made == a_provider(IdentityProviderId(numbered("idp", 1)), client_secret="s3")
    assert ports.state.identity_providers == {made.id: made}
    [entry] = ports.state.audit.values()
    assert (entry.action, entry.resource) == (AuditAction.IDENTITY_PROVIDER_CREATED, made.id)
    assert "s3" not in repr((entry, made, COMMAND))


@pytest.mark.requirement("P1")
@pytest.mark.parametrize("role", roles_below(Role.ADMIN))
async def test_others_do_not(ports: Ports, role: Role) -> None:
    with refused("role_insufficient"):
        await ports.create.execute(replace(COMMAND, principal=a_principal(role)))


@pytest.mark.requirement("P1")
@pytest.mark.parametrize(("principal", "allowed"), [(a_principal(), False), (PLATFORM, True)])
async def test_one_of_the_installation_requires_a_platform_key(
    ports: Ports, principal: Principal, allowed: bool
) -> None:
    command = replace(COMMAND, principal=principal, installation=True)
    if allowed:
        assert (await ports.create.execute(command)).installation
        return
    with refused("platform_key_required"):
        await ports.create.execute(command)


@pytest.mark.requirement("P1")
async def test_an_issuer_that_the_egress_guard_blocks_is_refused(ports: Ports) -> None:
    ports.outbound.refusal.return_value = "The address is not public."
    with pytest.raises(ServiceError) as raised:
        await ports.create.execute(COMMAND)
    assert [violation.path for violation in raised.value.violations] == ["issuer"]
    assert ports.state.identity_providers == {}


async def test_a_rule_that_names_no_organization_is_refused(ports: Ports) -> None:
    rules = tuple(replace(AGENTS, organization_id=id) for id in (OTHER_ORG, OrganizationId(numbered("org", 99))))
    with pytest.raises(ServiceError) as raised:
        await ports.create.execute(replace(COMMAND, principal=PLATFORM, installation=True, rules=rules))
    assert raised.value.code == "identity_provider_invalid"
    assert [violation.path for violation in raised.value.violations] == ["rules.1.organization_id"]
    assert ports.state.identity_providers == {}
