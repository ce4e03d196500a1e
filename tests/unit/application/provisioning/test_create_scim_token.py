"""CreateScimToken: who lets a directory in."""

import pytest

from application.provisioning.create_scim_token import CreateScimToken, CreateScimTokenCommand
from domain.audit.event import AuditAction
from domain.identity.api_key import hash_token
from domain.identity.role import Role
from tests.doubles.people import InMemoryIdentityProviderStore
from tests.doubles.provisioning import InMemoryProvisioningStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.people_builders import PROVIDER, a_provider
from tests.refusals import refused
from tests.unit.application.actors import a_principal, a_stranger, roles_below

pytestmark = pytest.mark.requirement("P2")


@pytest.fixture
def state() -> InMemoryState:
    state = InMemoryState()
    state.identity_providers[PROVIDER] = a_provider()
    return state


def creating(state: InMemoryState) -> CreateScimToken:
    return CreateScimToken(
        providers=InMemoryIdentityProviderStore(state),
        scim_tokens=InMemoryProvisioningStore(state),
        clock=FixedClock(),
        ids=SequentialIds(),
    )


async def test_a_token_is_stored_as_a_hash_and_replaces_the_one_before(state: InMemoryState) -> None:
    command = CreateScimTokenCommand(principal=a_principal(), provider="company")
    first, second = await creating(state).execute(command), await creating(state).execute(command)
    assert first != second
    assert second.startswith("dgs_")
    assert state.scim_tokens == {PROVIDER: hash_token(second)}
    assert {entry.action for entry in state.audit.values()} == {AuditAction.SCIM_TOKEN_CREATED}
    assert second not in str(state.audit)


async def test_others_create_none(state: InMemoryState) -> None:
    for role in roles_below(Role.ADMIN):
        with refused("role_insufficient"):
            await creating(state).execute(CreateScimTokenCommand(principal=a_principal(role), provider=PROVIDER))
    with refused("identity_provider_not_found"):
        await creating(state).execute(CreateScimTokenCommand(principal=a_stranger(), provider=PROVIDER))


async def test_one_of_the_installation_requires_a_platform_key(state: InMemoryState) -> None:
    state.identity_providers[PROVIDER] = a_provider(installation=True)
    with refused("platform_key_required"):
        await creating(state).execute(CreateScimTokenCommand(principal=a_principal(), provider=PROVIDER))
