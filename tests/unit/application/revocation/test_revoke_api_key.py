"""RevokeApiKey: who may revoke which keys, that a revoked key stops working at once, and what ends
with it."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.identity.assignable_roles import AssignableRoles
from application.identity.ports import IdentityStore
from application.identity.token_cache import TokenCache
from application.revocation.revoke_api_key import RevokeApiKey, RevokeApiKeyCommand
from application.revocation.stop_work_of_key import StopWorkOfKey
from application.revocation.stopped_work import StoppedWork
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ApiKeyId
from tests.builders import KEY, START, a_key
from tests.doubles.custom_roles import InMemoryCustomRoleStore
from tests.doubles.identity import InMemoryIdentityStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger

STOPPED = StoppedWork(runs=2, workflow_runs=1, gateway_sessions=3)
PLATFORM = replace(a_principal(), platform=True)


class Ports:
    """One key in memory, and the cache of this process."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state = InMemoryState()
        self.state.keys[KEY] = a_key()
        self.identities: IdentityStore = InMemoryIdentityStore(self.state)
        self.cache: MockType = mocker.create_autospec(TokenCache, instance=True)
        self.work: MockType = mocker.create_autospec(StopWorkOfKey, instance=True)
        self.work.execute.return_value = STOPPED
        self._ids = SequentialIds()

    async def revoke(self, principal: Principal | None = None, key_id: ApiKeyId = KEY) -> StoppedWork:
        revoking = RevokeApiKey(
            identities=self.identities,
            assignable=AssignableRoles(custom_roles=InMemoryCustomRoleStore(self.state)),
            cache=self.cache,
            work=self.work,
            clock=FixedClock(),
            ids=self._ids,
        )
        return await revoking.execute(RevokeApiKeyCommand(principal=principal or a_principal(), key_id=key_id))

    def assert_unchanged(self) -> None:
        assert self.state.keys[KEY].revoked_at is None
        assert not self.state.audit
        self.cache.forget.assert_not_called()
        self.work.execute.assert_not_awaited()


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("C5", "C6")
async def test_an_admin_revokes_a_key_which_is_forgotten_and_audited(ports: Ports) -> None:
    await ports.revoke()

    assert ports.state.keys[KEY].revoked_at == START
    ports.cache.forget.assert_called_once_with(KEY)
    [entry] = ports.state.audit.values()
    assert (entry.action, entry.actor, entry.resource) == (AuditAction.KEY_REVOKED, "key_admin", KEY)


@pytest.mark.requirement("C6")
async def test_what_a_key_started_ends_once_the_key_is_revoked(ports: Ports) -> None:
    async def stopped(principal: Principal, key_id: ApiKeyId) -> StoppedWork:
        assert ports.state.keys[key_id].revoked_at == START
        assert principal == a_principal()
        return STOPPED

    ports.work.execute.side_effect = stopped

    assert await ports.revoke() == STOPPED

    ports.work.execute.assert_awaited_once_with(a_principal(), KEY)


async def test_a_key_is_revoked_once_and_what_is_left_of_its_work_ends_with_the_next_attempt(ports: Ports) -> None:
    ports.work.execute.side_effect = [storage_away(), STOPPED]
    with refused("storage_unavailable"):
        await ports.revoke()

    assert await ports.revoke() == STOPPED

    assert len(ports.state.audit) == 1
    ports.cache.forget.assert_called_once_with(KEY)


async def test_a_key_cannot_revoke_itself(ports: Ports, mocker: MockerFixture) -> None:
    identities = mocker.create_autospec(IdentityStore, instance=True)
    ports.identities = identities

    with pytest.raises(ServiceError) as caught:
        await ports.revoke(key_id=a_principal().key_id)

    assert (caught.value.code, caught.value.kind) == ("api_key_in_use", ErrorKind.CONFLICT)
    identities.revoke_key.assert_not_awaited()


@pytest.mark.requirement("C6")
async def test_a_platform_key_is_revoked_with_a_platform_key_only(ports: Ports) -> None:
    ports.state.keys[KEY] = a_key(platform=True)

    with refused("platform_key_required"):
        await ports.revoke()
    ports.assert_unchanged()

    await ports.revoke(PLATFORM)
    assert ports.state.keys[KEY].revoked_at == START


async def test_an_unknown_key_is_not_found(ports: Ports) -> None:
    with refused("api_key_not_found"):
        await ports.revoke(key_id=ApiKeyId("key_unknown"))

    ports.assert_unchanged()


@pytest.mark.requirement("C6")
async def test_a_key_of_another_organization_is_not_found_and_still_works(ports: Ports) -> None:
    with refused("api_key_not_found"):
        await ports.revoke(a_stranger())

    ports.assert_unchanged()


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", [Role.VIEWER, Role.RUNNER, Role.OPERATOR])
async def test_only_an_admin_revokes_keys(ports: Ports, role: Role) -> None:
    with refused("role_insufficient"):
        await ports.revoke(a_principal(role))

    ports.assert_unchanged()


@pytest.mark.requirement("C6")
async def test_a_key_is_forgotten_although_it_is_unknown_whether_its_revocation_was_stored(
    ports: Ports, mocker: MockerFixture
) -> None:
    identities = mocker.create_autospec(IdentityStore, instance=True)
    identities.key.return_value = a_key()
    identities.revoke_key.side_effect = storage_away()
    ports.identities = identities

    with refused("storage_unavailable"):
        await ports.revoke()

    ports.cache.forget.assert_called_once_with(KEY)


async def test_a_key_that_cannot_be_read_is_not_revoked(ports: Ports, mocker: MockerFixture) -> None:
    identities = mocker.create_autospec(IdentityStore, instance=True)
    identities.key.side_effect = storage_away()
    ports.identities = identities

    with refused("storage_unavailable"):
        await ports.revoke()

    identities.revoke_key.assert_not_awaited()
