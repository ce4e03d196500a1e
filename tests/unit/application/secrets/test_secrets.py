"""Named secrets: who may, what is refused, what follows."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.secrets.delete_secret import DeleteSecret, DeleteSecretCommand
from application.secrets.list_secrets import ListSecrets, ListSecretsCommand
from application.secrets.ports import KeyRing, Reencryption, SecretVault
from application.secrets.rotate_secret_key import RotateSecretKey, RotateSecretKeyCommand
from application.secrets.set_secret import SetSecret, SetSecretCommand
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError
from domain.identity.role import Role
from domain.ids import McpServerId, OrganizationId
from domain.mcp.server import McpServerConfig, McpServerKind
from domain.secrets.secret import MAX_VALUE_BYTES, SecretRef
from tests.builders import ORG, SERVER, a_server
from tests.doubles.audit import InMemoryAuditLog
from tests.doubles.secrets import InMemorySecretStore, InMemorySecretVault
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import SequentialIds, StepClock
from tests.unit.application.actors import a_principal


class Secrets:
    """The slice over in-memory tables."""

    def __init__(self) -> None:
        self.state = InMemoryState()
        self.store = InMemorySecretStore(self.state)
        self.forgotten: list[McpServerId] = []
        clock, ids = StepClock(), SequentialIds()
        self.set = SetSecret(secrets=self.store, forget_server=self.forget, clock=clock, ids=ids)
        self.list = ListSecrets(secrets=self.store)
        self.delete = DeleteSecret(secrets=self.store, clock=clock, ids=ids)

    async def forget(self, organization_id: OrganizationId, server_id: McpServerId) -> None:
        assert organization_id == ORG
        self.forgotten.append(server_id)

    async def given(self, name: str = "TOKEN", value: str = "s3cret-value") -> bool:
        command = SetSecretCommand(principal=a_principal(), name=name, value=value)
        return (await self.set.execute(command)).created


def rotation(vault: SecretVault, key_ring: KeyRing, state: InMemoryState) -> RotateSecretKey:
    return RotateSecretKey(
        vault=vault,
        key_ring=key_ring,
        audit_log=InMemoryAuditLog(state),
        clock=StepClock(),
        ids=SequentialIds(),
        step=3,
    )


@pytest.mark.requirement("C7")
async def test_a_secret_is_listed_by_name_and_dates() -> None:
    secrets = Secrets()
    assert await secrets.given()
    assert not await secrets.given(value="another-value")

    page = await secrets.list.execute(ListSecretsCommand(principal=a_principal()))

    assert [secret.name for secret in page.items] == ["TOKEN"]
    assert page.items[0].created_at < page.items[0].updated_at
    audit = list(secrets.state.audit.values())
    assert [entry.action for entry in audit] == [AuditAction.SECRET_SET, AuditAction.SECRET_SET]
    assert "value" not in repr(audit)


@pytest.mark.requirement("C7")
async def test_a_new_value_ends_the_connections_of_the_servers_that_use_it_and_of_no_other() -> None:
    secrets = Secrets()
    using = McpServerConfig(slug="mail", kind=McpServerKind.CUSTOM, command="run", env={"KEY": SecretRef("TOKEN")})
    other = McpServerId("mcp_other")
    secrets.state.servers = {
        SERVER: a_server(config=using),
        other: a_server(other, config=replace(using, slug="files", env={"KEY": "TOKEN"})),
    }
    await secrets.given()
    assert secrets.forgotten == [SERVER]


@pytest.mark.requirement("C7")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("", "value"),
        ("a b", "value"),
        ("x" * 129, "value"),
        ("-x", "value"),
        ("TOKEN", ""),
        ("TOKEN", "a\0b"),
        ("TOKEN", "\ud83d"),
        ("TOKEN", "x" * (MAX_VALUE_BYTES + 1)),
    ],
)
async def test_what_cannot_be_a_secret_is_refused_without_repeating_it(name: str, value: str) -> None:
    with pytest.raises(ServiceError) as refused:
        await Secrets().given(name, value)
    assert (refused.value.code, refused.value.kind) == ("secret_invalid", ErrorKind.INVALID)
    assert [fault.path for fault in refused.value.violations] == ["value" if name == "TOKEN" else "name"]
    assert all(value not in fault.message for fault in refused.value.violations if value)


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", [Role.VIEWER, Role.RUNNER, Role.OPERATOR])
async def test_only_admins_see_set_and_delete_secrets(role: Role) -> None:
    secrets, principal = Secrets(), a_principal(role)
    for attempt in (
        secrets.set.execute(SetSecretCommand(principal=principal, name="TOKEN", value="value")),
        secrets.delete.execute(DeleteSecretCommand(principal=principal, name="TOKEN")),
        secrets.list.execute(ListSecretsCommand(principal=principal)),
    ):
        with pytest.raises(ServiceError) as refused:
            await attempt
        assert refused.value.kind is ErrorKind.FORBIDDEN
    assert not secrets.state.audit


async def test_a_secret_that_is_not_there_is_not_found() -> None:
    with pytest.raises(ServiceError) as refused:
        await Secrets().delete.execute(DeleteSecretCommand(principal=a_principal(), name="TOKEN"))
    assert (refused.value.code, refused.value.kind) == ("secret_not_found", ErrorKind.NOT_FOUND)


@pytest.mark.requirement("B12")
async def test_a_rotation_goes_step_by_step_and_lets_the_old_key_go_after_the_last(mocker: MockerFixture) -> None:
    state = InMemoryState()
    key_ring = mocker.create_autospec(KeyRing, instance=True)
    rotate = rotation(InMemorySecretVault(stale=7), key_ring, state)
    command = RotateSecretKeyCommand(principal=replace(a_principal(), platform=True))

    done = [await rotate.execute(command) for _ in range(2)]

    assert [(step.reencrypted, step.remaining) for step in done] == [(3, 4), (3, 1)]
    key_ring.finish_rotation.assert_not_called()
    assert not state.audit
    last = await rotate.execute(command)
    assert (last.reencrypted, last.remaining) == (1, 0)
    key_ring.finish_rotation.assert_called_once_with()
    assert [entry.action for entry in state.audit.values()] == [AuditAction.SECRET_KEY_ROTATED]


@pytest.mark.requirement("B12")
async def test_the_old_key_is_kept_when_a_value_cannot_be_decrypted(mocker: MockerFixture) -> None:
    vault = mocker.create_autospec(SecretVault, instance=True)
    vault.reencrypt.side_effect = ServiceError("secret_undecryptable", ErrorKind.INTERNAL, "No key fits.")
    key_ring = mocker.create_autospec(KeyRing, instance=True)
    with pytest.raises(ServiceError):
        await rotation(vault, key_ring, InMemoryState()).execute(
            RotateSecretKeyCommand(principal=replace(a_principal(), platform=True))
        )
    key_ring.finish_rotation.assert_not_called()


@pytest.mark.requirement("C6")
async def test_a_rotation_concerns_all_organizations_and_needs_a_platform_key(mocker: MockerFixture) -> None:
    vault = mocker.create_autospec(SecretVault, instance=True)
    vault.reencrypt.return_value = Reencryption(reencrypted=0, remaining=0)
    key_ring = mocker.create_autospec(KeyRing, instance=True)
    with pytest.raises(ServiceError) as refused:
        await rotation(vault, key_ring, InMemoryState()).execute(RotateSecretKeyCommand(principal=a_principal()))
    assert (refused.value.code, refused.value.kind) == ("platform_key_required", ErrorKind.FORBIDDEN)
    key_ring.begin_rotation.assert_not_called()
