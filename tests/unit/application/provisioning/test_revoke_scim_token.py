"""RevokeScimToken: the directory is refused from then on."""

import pytest

from application.provisioning.revoke_scim_token import RevokeScimToken, RevokeScimTokenCommand
from domain.audit.event import AuditAction
from domain.identity.role import Role
from tests.doubles.people import InMemoryIdentityProviderStore
from tests.doubles.provisioning import InMemoryProvisioningStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.people_builders import PROVIDER, a_provider
from tests.refusals import refused
from tests.unit.application.actors import a_principal, roles_below

pytestmark = pytest.mark.requirement("P2")


async def test_an_admin_revokes_the_token_once() -> None:
    state = InMemoryState()
    state.identity_providers[PROVIDER] = a_provider()
    state.scim_tokens[PROVIDER] = "hash"
    revoking = RevokeScimToken(
        providers=InMemoryIdentityProviderStore(state),
        scim_tokens=InMemoryProvisioningStore(state),
        clock=FixedClock(),
        ids=SequentialIds(),
    )
    for role in roles_below(Role.ADMIN):
        with refused("role_insufficient"):
            await revoking.execute(RevokeScimTokenCommand(principal=a_principal(role), provider="company"))

    await revoking.execute(RevokeScimTokenCommand(principal=a_principal(), provider="company"))

    assert state.scim_tokens == {}
    assert [entry.action for entry in state.audit.values()] == [AuditAction.SCIM_TOKEN_REVOKED]
    with refused("scim_token_not_found"):
        await revoking.execute(RevokeScimTokenCommand(principal=a_principal(), provider="company"))
    state.identity_providers[PROVIDER] = a_provider(installation=True)
    with refused("platform_key_required"):
        await revoking.execute(RevokeScimTokenCommand(principal=a_principal(), provider="company"))
