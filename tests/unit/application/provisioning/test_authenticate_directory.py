"""AuthenticateDirectory: which tokens open SCIM."""

import pytest
from pytest_mock import MockerFixture, MockType

from application.identity.key_limits import KeyLimits
from application.provisioning.authenticate_directory import AuthenticateDirectory
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import hash_token
from domain.ids import ApiKeyId
from tests.doubles.people import InMemoryIdentityProviderStore
from tests.doubles.provisioning import InMemoryProvisioningStore
from tests.doubles.state import InMemoryState
from tests.people_builders import PROVIDER, a_provider
from tests.refusals import refused

pytestmark = pytest.mark.requirement("P2")


@pytest.fixture
def limits(mocker: MockerFixture) -> MockType:
    limits: MockType = mocker.create_autospec(KeyLimits, instance=True)
    limits.take.return_value = None
    return limits


@pytest.fixture
def authenticate(limits: MockType) -> AuthenticateDirectory:
    state = InMemoryState()
    state.identity_providers[PROVIDER] = a_provider()
    state.scim_tokens[PROVIDER] = hash_token("dgs_right")
    return AuthenticateDirectory(
        scim_tokens=InMemoryProvisioningStore(state),
        identity_providers=InMemoryIdentityProviderStore(state),
        limits=limits,
    )


async def test_a_token_stands_for_its_identity_provider(authenticate: AuthenticateDirectory, limits: MockType) -> None:
    assert await authenticate.execute("dgs_right") == a_provider()
    limits.take.assert_called_once_with(ApiKeyId(PROVIDER), None)


@pytest.mark.parametrize("token", ["dgs_wrong", "dgm_right", "right", ""])
async def test_others_are_refused(authenticate: AuthenticateDirectory, token: str) -> None:
    with refused("token_invalid"):
        await authenticate.execute(token)


async def test_the_services_rate_limit_applies(authenticate: AuthenticateDirectory, limits: MockType) -> None:
    limits.take.side_effect = ServiceError("rate_limited", ErrorKind.LIMIT, "Too many.")
    with refused("rate_limited"):
        await authenticate.execute("dgs_right")
