"""CheckIdentityProvider: what is said of a provider that works, and of one that does not."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.identity.check_identity_provider import (
    CheckIdentityProvider,
    CheckIdentityProviderCommand,
    IdentityProviderCheck,
)
from domain.errors import ErrorKind, ServiceError
from domain.identity.role import Role
from tests.people_builders import ISSUER, PROVIDER, a_provider
from tests.refusals import refused
from tests.unit.application.actors import a_principal, a_stranger
from tests.unit.application.identity.sign_ins import Ports

COMMAND = CheckIdentityProviderCommand(principal=a_principal(), provider="company")


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    ports = Ports(mocker)
    ports.client.count_keys.return_value = 2
    return ports


async def check(ports: Ports, command: CheckIdentityProviderCommand = COMMAND) -> IdentityProviderCheck:
    return await CheckIdentityProvider(providers=ports.providers, client=ports.client).execute(command)


@pytest.mark.requirement("P1")
async def test_a_provider_that_works_says_what_it_offers(ports: Ports) -> None:
    ports.offers(end_session_endpoint=f"{ISSUER}/logout", device_authorization_endpoint=f"{ISSUER}/device")
    found = await check(ports)
    assert (found.ok, found.keys, found.signs_out, found.has_device_flow) == (True, 2, True, True)


@pytest.mark.requirement("P1")
async def test_a_provider_that_does_not_work_is_a_result(ports: Ports) -> None:
    ports.state.identity_providers[PROVIDER] = a_provider(rules=())
    assert not (await check(ports)).ok
    ports.client.count_keys.return_value = 0
    assert not (await check(ports)).ok
    ports.client.metadata.side_effect = ServiceError("identity_provider_unavailable", ErrorKind.UNAVAILABLE, "Away.")
    assert await check(ports) == IdentityProviderCheck(ok=False, detail="Away.")


async def test_others_do_not_check_it(ports: Ports) -> None:
    with refused("role_insufficient"):
        await check(ports, replace(COMMAND, principal=a_principal(Role.OPERATOR)))
    with refused("identity_provider_not_found"):
        await check(ports, replace(COMMAND, principal=a_stranger()))
