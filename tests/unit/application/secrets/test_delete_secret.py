"""DeleteSecret: who may delete a secret, and that one in use stays."""

import pytest
from pytest_mock import MockerFixture

from application.secrets.delete_secret import DeleteSecret, DeleteSecretCommand
from application.secrets.ports import SecretStore
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.mcp.server import McpServerConfig, McpServerKind
from domain.secrets.secret import Secret, SecretRef
from tests.builders import ORG, SERVER, START, a_server
from tests.doubles.secrets import InMemorySecretStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger

SECRET = Secret(organization_id=ORG, name="TOKEN", created_at=START, updated_at=START)


@pytest.fixture
def state() -> InMemoryState:
    """Tables with one secret."""
    state = InMemoryState()
    state.secrets[ORG, SECRET.name] = (SECRET, "a value")
    return state


def deleting(secrets: SecretStore) -> DeleteSecret:
    return DeleteSecret(secrets=secrets, clock=FixedClock(), ids=SequentialIds())


def the_secret(principal: Principal, name: str = SECRET.name) -> DeleteSecretCommand:
    return DeleteSecretCommand(principal=principal, name=name)


@pytest.mark.requirement("C5", "C7")
async def test_an_admin_deletes_a_secret_which_is_audited(state: InMemoryState) -> None:
    await deleting(InMemorySecretStore(state)).execute(the_secret(a_principal()))

    assert not state.secrets
    [entry] = state.audit.values()
    assert (entry.action, entry.actor, entry.resource) == (AuditAction.SECRET_DELETED, "key_admin", "TOKEN")
    assert "a value" not in repr(entry)


@pytest.mark.requirement("C7")
async def test_a_secret_in_use_stays_and_the_refusal_names_its_users(state: InMemoryState) -> None:
    using = McpServerConfig(slug="mail", kind=McpServerKind.CUSTOM, command="run", env={"KEY": SecretRef("TOKEN")})
    state.servers[SERVER] = a_server(config=using)

    with pytest.raises(ServiceError) as caught:
        await deleting(InMemorySecretStore(state)).execute(the_secret(a_principal()))

    assert (caught.value.code, caught.value.kind) == ("secret_in_use", ErrorKind.CONFLICT)
    assert caught.value.extra == {"used_by": "mail"}
    assert (ORG, "TOKEN") in state.secrets
    assert not state.audit


async def test_an_unknown_secret_is_not_found(state: InMemoryState) -> None:
    with refused("secret_not_found"):
        await deleting(InMemorySecretStore(state)).execute(the_secret(a_principal(), "OTHER"))

    assert not state.audit


@pytest.mark.requirement("C6", "C7")
async def test_a_secret_of_another_organization_is_not_found_and_stays(state: InMemoryState) -> None:
    with refused("secret_not_found"):
        await deleting(InMemorySecretStore(state)).execute(the_secret(a_stranger()))

    assert (ORG, "TOKEN") in state.secrets


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", [Role.VIEWER, Role.RUNNER, Role.OPERATOR])
async def test_only_an_admin_deletes_secrets(mocker: MockerFixture, role: Role) -> None:
    secrets = mocker.create_autospec(SecretStore, instance=True)

    with refused("role_insufficient"):
        await deleting(secrets).execute(the_secret(a_principal(role)))

    secrets.delete.assert_not_awaited()


async def test_a_storage_failure_is_not_taken_for_a_missing_secret(mocker: MockerFixture) -> None:
    secrets = mocker.create_autospec(SecretStore, instance=True)
    secrets.delete.side_effect = storage_away()

    with refused("storage_unavailable"):
        await deleting(secrets).execute(the_secret(a_principal()))
