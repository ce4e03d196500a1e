"""DeleteModelProvider: a provider goes at once, also while agents name it."""

import pytest
from pytest_mock import MockerFixture

from application.model_providers.delete_model_provider import DeleteModelProvider, DeleteModelProviderCommand
from application.model_providers.ports import ModelProviderStore
from domain.audit.event import AuditAction
from domain.identity.api_key import Principal
from domain.identity.role import Role
from tests.builders import AGENT, ORG, an_agent
from tests.doubles.model_providers import InMemoryModelProviderStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger
from tests.unit.application.model_providers.providers import a_provider, a_state_with


@pytest.fixture
def state() -> InMemoryState:
    return a_state_with(a_provider())


def deleting(providers: ModelProviderStore) -> DeleteModelProvider:
    return DeleteModelProvider(providers=providers, clock=FixedClock(), ids=SequentialIds())


def the_provider(principal: Principal, name: str = "acme") -> DeleteModelProviderCommand:
    return DeleteModelProviderCommand(principal=principal, name=name)


@pytest.mark.requirement("C5", "C7")
async def test_an_admin_deletes_a_provider_which_is_audited(state: InMemoryState) -> None:
    await deleting(InMemoryModelProviderStore(state)).execute(the_provider(a_principal()))

    assert not state.model_providers
    [entry] = state.audit.values()
    assert (entry.action, entry.actor, entry.resource) == (
        AuditAction.MODEL_PROVIDER_DELETED,
        "key_admin",
        "acme",
    )


@pytest.mark.requirement("C7")
async def test_a_provider_that_an_agent_names_is_deleted_too(state: InMemoryState) -> None:
    state.agents[AGENT] = [an_agent(model="acme:large")]

    await deleting(InMemoryModelProviderStore(state)).execute(the_provider(a_principal()))

    assert not state.model_providers


async def test_an_unknown_provider_is_not_found(state: InMemoryState) -> None:
    with refused("model_provider_not_found"):
        await deleting(InMemoryModelProviderStore(state)).execute(the_provider(a_principal(), "other"))

    assert not state.audit


@pytest.mark.requirement("C6", "C7")
async def test_a_provider_of_another_organization_is_not_found_and_stays(state: InMemoryState) -> None:
    with refused("model_provider_not_found"):
        await deleting(InMemoryModelProviderStore(state)).execute(the_provider(a_stranger()))

    assert (ORG, "acme") in state.model_providers


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", [Role.VIEWER, Role.RUNNER, Role.OPERATOR])
async def test_only_an_admin_deletes_providers(mocker: MockerFixture, role: Role) -> None:
    providers = mocker.create_autospec(ModelProviderStore, instance=True)

    with refused("role_insufficient"):
        await deleting(providers).execute(the_provider(a_principal(role)))

    providers.delete.assert_not_awaited()


async def test_a_storage_failure_is_not_taken_for_a_missing_provider(mocker: MockerFixture) -> None:
    providers = mocker.create_autospec(ModelProviderStore, instance=True)
    providers.delete.side_effect = storage_away()

    with refused("storage_unavailable"):
        await deleting(providers).execute(the_provider(a_principal()))
