"""RotateSecretKey: bounded steps, and the old key stays until nothing needs it."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.audit.ports import AuditLog, SealKeys
from application.secrets.ports import KeyRing, Reencryption, SecretVault
from application.secrets.rotate_secret_key import RotateSecretKey, RotationProgress
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.role import Role
from tests.doubles.secrets import InMemorySecretVault
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal

PLATFORM = replace(a_principal(), platform=True)
UNDECRYPTABLE = ServiceError("secret_undecryptable", ErrorKind.INTERNAL, "No key fits.")
UNUSABLE = ServiceError("secret_key_unusable", ErrorKind.INTERNAL, "The key cannot be written.")


class Ports:
    """Mocks; the vault has one value left to encrypt, unless a test gives another vault."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.vault: SecretVault = InMemorySecretVault(stale=1)
        self.key_ring: MockType = mocker.create_autospec(KeyRing, instance=True)
        self.seal_keys: MockType = mocker.create_autospec(SealKeys, instance=True)
        self.audit_log: MockType = mocker.create_autospec(AuditLog, instance=True)

    async def rotate(self, principal: Principal = PLATFORM) -> RotationProgress:
        rotating = RotateSecretKey(
            vault=self.vault,
            key_ring=self.key_ring,
            seal_keys=self.seal_keys,
            audit_log=self.audit_log,
            clock=FixedClock(),
            ids=SequentialIds(),
            step=3,
        )
        return await rotating.execute(principal)

    def assert_not_complete(self) -> None:
        self.key_ring.finish_rotation.assert_not_called()
        self.audit_log.record.assert_not_awaited()


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("B12")
async def test_each_execution_encrypts_a_bounded_number_of_values_and_says_how_many_remain(ports: Ports) -> None:
    ports.vault = InMemorySecretVault(stale=7)

    steps = [await ports.rotate() for _ in range(2)]

    assert [(step.reencrypted, step.remaining) for step in steps] == [(3, 4), (3, 1)]
    ports.assert_not_complete()


@pytest.mark.requirement("B12", "C5")
async def test_the_last_step_drops_the_old_key_and_is_audited(ports: Ports) -> None:
    assert await ports.rotate() == RotationProgress(reencrypted=1, remaining=0)

    ports.key_ring.finish_rotation.assert_called_once_with()
    [entry] = ports.audit_log.record.await_args.args
    assert (entry.action, entry.actor) == (AuditAction.SECRET_KEY_ROTATED, PLATFORM.key_id)


@pytest.mark.requirement("B12")
async def test_the_new_key_is_there_before_anything_is_encrypted(ports: Ports, mocker: MockerFixture) -> None:
    vault = mocker.create_autospec(SecretVault, instance=True)
    ports.key_ring.begin_rotation.side_effect = UNUSABLE
    ports.vault = vault

    with refused("secret_key_unusable"):
        await ports.rotate()

    vault.reencrypt.assert_not_awaited()
    ports.assert_not_complete()


@pytest.mark.requirement("B12", "C5")
async def test_the_sealing_keys_of_older_secret_keys_are_stored_while_those_are_still_there(
    ports: Ports, mocker: MockerFixture
) -> None:
    order = mocker.Mock()
    order.attach_mock(ports.key_ring.begin_rotation, "begin")
    order.attach_mock(ports.seal_keys.all, "store")
    order.attach_mock(ports.key_ring.finish_rotation, "finish")

    await ports.rotate()

    assert [name for name, *_ in order.mock_calls] == ["begin", "store", "finish"]


@pytest.mark.requirement("B12", "C5")
async def test_the_old_key_stays_when_its_sealing_key_cannot_be_stored(ports: Ports) -> None:
    ports.seal_keys.all.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.rotate()

    ports.assert_not_complete()


@pytest.mark.requirement("B12")
@pytest.mark.parametrize("failure", [UNDECRYPTABLE, storage_away()], ids=lambda failure: failure.code)
async def test_the_old_key_stays_when_a_step_fails(ports: Ports, mocker: MockerFixture, failure: ServiceError) -> None:
    vault = mocker.create_autospec(SecretVault, instance=True)
    vault.reencrypt.side_effect = failure
    ports.vault = vault

    with refused(failure.code):
        await ports.rotate()

    ports.assert_not_complete()


@pytest.mark.requirement("B12")
async def test_a_rotation_that_was_interrupted_continues_with_the_next_execution(
    ports: Ports, mocker: MockerFixture
) -> None:
    vault = mocker.create_autospec(SecretVault, instance=True)
    vault.reencrypt.side_effect = [storage_away(), Reencryption(reencrypted=2, remaining=0)]
    ports.vault = vault
    with refused("storage_unavailable"):
        await ports.rotate()

    assert (await ports.rotate()).remaining == 0

    assert ports.key_ring.begin_rotation.call_count == 2
    ports.key_ring.finish_rotation.assert_called_once_with()


async def test_a_rotation_whose_old_key_cannot_be_dropped_is_not_audited_as_complete(ports: Ports) -> None:
    ports.key_ring.finish_rotation.side_effect = UNUSABLE

    with refused("secret_key_unusable"):
        await ports.rotate()

    ports.audit_log.record.assert_not_awaited()


@pytest.mark.requirement("C6")
@pytest.mark.parametrize(
    ("principal", "code"),
    [
        (a_principal(), "platform_key_required"),
        (replace(a_principal(Role.OPERATOR), platform=True), "role_insufficient"),
    ],
    ids=["admin of one organization", "operator"],
)
async def test_a_rotation_concerns_all_organizations_and_needs_a_platform_admin(
    ports: Ports, mocker: MockerFixture, principal: Principal, code: str
) -> None:
    vault = mocker.create_autospec(SecretVault, instance=True)
    ports.vault = vault

    with refused(code):
        await ports.rotate(principal)

    ports.key_ring.begin_rotation.assert_not_called()
    vault.reencrypt.assert_not_awaited()
