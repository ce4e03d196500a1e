"""SetSecret: who may set a secret, which servers reconnect because of it, and what is stored and
audited."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.secrets.ports import SecretStore, SecretUser
from application.secrets.set_secret import SetSecret, SetSecretCommand, SetSecretResult
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import McpServerId, WorkflowId
from domain.mcp.server import McpServerConfig, McpServerKind
from domain.secrets.secret import MAX_VALUE_BYTES, SecretRef
from tests.builders import ORG, SERVER, START, a_server, after
from tests.doubles.secrets import InMemorySecretStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import SequentialIds, StepClock
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger

VALUE = " s3cret\r\n"


class Ports:
    """Secrets in memory, and a stub that notes which servers lose their connections."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state = InMemoryState()
        self.stored = InMemorySecretStore(self.state)
        self.secrets: SecretStore = self.stored
        self.forget_server: MockType = mocker.async_stub("forget_server")
        self._clock, self._ids = StepClock(), SequentialIds()

    async def set(
        self, name: str = "TOKEN", value: str = VALUE, *, principal: Principal | None = None
    ) -> SetSecretResult:
        setting = SetSecret(secrets=self.secrets, forget_server=self.forget_server, clock=self._clock, ids=self._ids)
        return await setting.execute(SetSecretCommand(principal=principal or a_principal(), name=name, value=value))


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("C7")
async def test_a_new_secret_is_stored_with_its_value_as_it_was_given(ports: Ports) -> None:
    result = await ports.set()

    assert result.created
    assert (result.secret.name, result.secret.created_at, result.secret.updated_at) == ("TOKEN", START, START)
    assert await ports.stored.value(ORG, "TOKEN") == VALUE


@pytest.mark.requirement("C7")
async def test_a_new_value_replaces_the_old_one_and_leaves_the_date_of_creation(ports: Ports) -> None:
    await ports.set()

    result = await ports.set(value="another value")

    assert not result.created
    assert (result.secret.created_at, result.secret.updated_at) == (START, after(1))
    assert await ports.stored.value(ORG, "TOKEN") == "another value"


@pytest.mark.requirement("C6", "C7")
async def test_a_secret_of_one_organization_is_not_overwritten_by_another_organization(ports: Ports) -> None:
    await ports.set()

    assert (await ports.set(value="theirs", principal=a_stranger())).created
    assert await ports.stored.value(ORG, "TOKEN") == VALUE


@pytest.mark.requirement("C5", "C7")
async def test_setting_a_secret_is_audited_without_its_value(ports: Ports) -> None:
    await ports.set()

    [entry] = ports.state.audit.values()
    assert (entry.action, entry.actor, entry.resource) == (AuditAction.SECRET_SET, "key_admin", "TOKEN")
    assert "s3cret" not in repr(entry)


@pytest.mark.requirement("C7")
async def test_no_repr_shows_the_value() -> None:
    assert "s3cret" not in repr(SetSecretCommand(principal=a_principal(), name="TOKEN", value=VALUE))


@pytest.mark.requirement("C7")
async def test_connections_end_of_the_servers_that_use_the_secret_and_of_no_other(ports: Ports) -> None:
    using = McpServerConfig(slug="mail", kind=McpServerKind.CUSTOM, command="run", env={"KEY": SecretRef("TOKEN")})
    other = McpServerId("mcp_other")
    ports.state.servers = {
        SERVER: a_server(config=using),
        other: a_server(other, config=replace(using, slug="files", env={"KEY": "TOKEN"})),
    }

    await ports.set()

    ports.forget_server.assert_awaited_once_with(ORG, SERVER)


async def test_workflows_and_model_providers_that_use_the_secret_have_no_connections_to_end(
    ports: Ports, mocker: MockerFixture
) -> None:
    store = mocker.create_autospec(SecretStore, instance=True)
    store.put.return_value = True
    store.users.return_value = (SecretUser(name="acme"), SecretUser(name="daily", workflow_id=WorkflowId("wfl_1")))
    ports.secrets = store

    await ports.set()

    ports.forget_server.assert_not_awaited()


@pytest.mark.requirement("C7")
@pytest.mark.parametrize(
    ("name", "value", "path"),
    [
        ("", "a-value", "name"),
        ("a b", "a-value", "name"),
        ("x" * 129, "a-value", "name"),
        ("-x", "a-value", "name"),
        ("TOKEN", "", "value"),
        ("TOKEN", "a\0b", "value"),
        ("TOKEN", "\ud83d", "value"),
        ("TOKEN", "x" * (MAX_VALUE_BYTES + 1), "value"),
    ],
    ids=["no name", "a blank", "a long name", "a dash", "no value", "a null", "half a character", "a long value"],
)
async def test_an_invalid_secret_is_refused_and_its_value_is_not_repeated(
    ports: Ports, name: str, value: str, path: str
) -> None:
    with pytest.raises(ServiceError) as caught:
        await ports.set(name, value)

    assert (caught.value.code, caught.value.kind) == ("secret_invalid", ErrorKind.INVALID)
    assert [fault.path for fault in caught.value.violations] == [path]
    assert all(value not in fault.message for fault in caught.value.violations if value)
    assert not ports.state.secrets


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", [Role.VIEWER, Role.RUNNER, Role.OPERATOR])
async def test_only_an_admin_sets_secrets(ports: Ports, role: Role) -> None:
    with refused("role_insufficient"):
        await ports.set(principal=a_principal(role))

    assert not ports.state.secrets
    assert not ports.state.audit
    ports.forget_server.assert_not_awaited()


async def test_connections_stay_open_when_the_value_cannot_be_stored(ports: Ports, mocker: MockerFixture) -> None:
    store = mocker.create_autospec(SecretStore, instance=True)
    store.put.side_effect = storage_away()
    ports.secrets = store

    with refused("storage_unavailable"):
        await ports.set()

    store.users.assert_not_awaited()
    ports.forget_server.assert_not_awaited()


async def test_a_secret_that_is_deleted_while_it_is_set_is_not_found(ports: Ports, mocker: MockerFixture) -> None:
    store = mocker.create_autospec(SecretStore, instance=True)
    store.put.return_value, store.users.return_value, store.get.return_value = False, (), None
    ports.secrets = store

    with refused("secret_not_found"):
        await ports.set()
