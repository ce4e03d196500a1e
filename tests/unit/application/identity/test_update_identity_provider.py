"""UpdateIdentityProvider: who changes identity providers, and when a change holds."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.identity.assignable_roles import AssignableRoles
from application.identity.token_cache import TokenCache
from application.identity.update_identity_provider import UpdateIdentityProvider, UpdateIdentityProviderCommand
from application.system.ports import OutboundPolicy
from domain.audit.event import AuditAction
from domain.identity.role import Role
from domain.ids import OrganizationId
from tests.builders import numbered
from tests.doubles.custom_roles import InMemoryCustomRoleStore
from tests.doubles.organizations import InMemoryOrganizationStore
from tests.doubles.people import InMemoryIdentityProviderStore
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.people_builders import AGENTS, PROVIDER, a_provider
from tests.refusals import refused
from tests.unit.application.actors import a_principal, a_stranger
from tests.unit.application.identity.organizations import a_state_with_organizations

COMMAND = UpdateIdentityProviderCommand(principal=a_principal(), provider="company", changes={"rules": ()})


class Ports:
    def __init__(self, mocker: MockerFixture) -> None:
        self.state = a_state_with_organizations()
        self.state.identity_providers[PROVIDER] = a_provider()
        self.cache: MockType = mocker.create_autospec(TokenCache, instance=True)
        self.outbound: MockType = mocker.create_autospec(OutboundPolicy, instance=True)
        self.outbound.refusal.return_value = None
        self.update = UpdateIdentityProvider(
            providers=InMemoryIdentityProviderStore(self.state),
            organizations=InMemoryOrganizationStore(self.state),
            assignable=AssignableRoles(custom_roles=InMemoryCustomRoleStore(self.state)),
            outbound=self.outbound,
            cache=self.cache,
            clock=FixedClock(),
            ids=SequentialIds(),
        )


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("P1")
@pytest.mark.parametrize("name", ["company", PROVIDER])
async def test_changed_rules_decide_with_the_next_token(ports: Ports, name: str) -> None:
    changed = await ports.update.execute(replace(COMMAND, provider=name))
    assert changed == replace(a_provider(rules=()), version=2)
    assert ports.state.identity_providers == {PROVIDER: changed}
    ports.cache.forget_all.assert_called_once_with()
    [entry] = ports.state.audit.values()
    assert (entry.action, entry.details["changed"]) == (AuditAction.IDENTITY_PROVIDER_UPDATED, ["rules"])


async def test_a_change_of_nothing_writes_nothing(ports: Ports) -> None:
    assert await ports.update.execute(replace(COMMAND, changes={"name": "company"})) == a_provider()
    assert not ports.state.audit


@pytest.mark.requirement("P1")
async def test_others_do_not_change_it(ports: Ports) -> None:
    with refused("role_insufficient"):
        await ports.update.execute(replace(COMMAND, principal=a_principal(Role.OPERATOR)))
    with refused("identity_provider_not_found"):
        await ports.update.execute(replace(COMMAND, principal=a_stranger()))
    with refused("version_conflict"):
        await ports.update.execute(replace(COMMAND, expected_version=2))


@pytest.mark.requirement("P1")
async def test_one_of_the_installation_requires_a_platform_key(ports: Ports) -> None:
    with refused("platform_key_required"):
        await ports.update.execute(replace(COMMAND, changes={"installation": True}))
    ports.state.identity_providers[PROVIDER] = a_provider(installation=True)
    with refused("platform_key_required"):
        await ports.update.execute(replace(COMMAND, changes={"installation": False}))
    platform = replace(a_principal(), platform=True)
    assert (await ports.update.execute(replace(COMMAND, principal=platform))).version == 2


async def test_the_issuer_stays_so_that_no_other_server_is_sent_the_client_secret(ports: Ports) -> None:
    with refused("identity_provider_invalid"):
        await ports.update.execute(replace(COMMAND, changes={"issuer": "https://evil.example"}))
    assert ports.state.identity_providers == {PROVIDER: a_provider()}


async def test_a_rule_that_names_no_organization_is_refused(ports: Ports) -> None:
    ports.state.identity_providers[PROVIDER] = a_provider(installation=True)
    rules = (replace(AGENTS, organization_id=OrganizationId(numbered("org", 99))),)
    command = replace(COMMAND, principal=replace(a_principal(), platform=True), changes={"rules": rules})
    with refused("identity_provider_invalid"):
        await ports.update.execute(command)
