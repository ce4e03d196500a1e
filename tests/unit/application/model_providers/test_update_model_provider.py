"""UpdateModelProvider: what may be changed of a provider, by whom, and what is audited."""

from dataclasses import replace
from typing import Any

import pytest
from pytest_mock import MockerFixture, MockType

from application.model_providers.ports import ModelProviderStore
from application.model_providers.update_model_provider import (
    UpdateModelProvider,
    UpdateModelProviderCommand,
)
from application.system.changes import Changes
from application.system.ports import OutboundPolicy
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError
from domain.identity.role import Role
from domain.model_providers.cloud import CloudSettings
from domain.model_providers.provider import ModelProvider, ProviderKind
from tests.builders import ORG, after
from tests.doubles.model_providers import InMemoryModelProviderStore
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger
from tests.unit.application.model_providers.providers import REFUSAL, a_provider, a_state_with

OTHER_URL = "https://other.example.com/v1"
PROVIDER = a_provider()


class Ports:
    """The provider `acme` in memory, and an outbound policy that lets every address be
    requested."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state = a_state_with(PROVIDER)
        self.providers: ModelProviderStore = InMemoryModelProviderStore(self.state)
        self.outbound: MockType = mocker.create_autospec(OutboundPolicy, instance=True)
        self.outbound.refusal.return_value = None

    async def update(self, changes: Changes, **command: Any) -> ModelProvider:
        """Change `acme` ten seconds after it was created."""
        updating = UpdateModelProvider(
            providers=self.providers, outbound=self.outbound, clock=FixedClock(after(10)), ids=SequentialIds()
        )
        defaults: dict[str, Any] = {"principal": a_principal(), "name": "acme", "changes": changes}
        return await updating.execute(UpdateModelProviderCommand(**(defaults | command)))

    def assert_unchanged(self) -> None:
        assert self.state.model_providers == {(ORG, "acme"): PROVIDER}
        assert not self.state.audit


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("C7")
async def test_fields_that_are_named_change_and_the_others_stay(ports: Ports) -> None:
    changed = await ports.update({"base_url": OTHER_URL})

    assert (changed.base_url, changed.api_key, changed.kind) == (OTHER_URL, "s3cret-key", PROVIDER.kind)
    assert (changed.version, changed.updated_at, changed.created_at) == (2, after(10), PROVIDER.created_at)
    assert ports.state.model_providers[ORG, "acme"] == changed


@pytest.mark.requirement("C7")
async def test_the_key_can_be_taken_away(ports: Ports) -> None:
    assert (await ports.update({"api_key": None})).api_key is None


@pytest.mark.requirement("C5", "C7")
async def test_a_change_is_audited_with_the_names_of_its_fields_and_without_the_key(ports: Ports) -> None:
    await ports.update({"kind": ProviderKind.ANTHROPIC, "base_url": OTHER_URL, "api_key": "another-s3cret"})

    [entry] = ports.state.audit.values()
    assert (entry.action, entry.actor, entry.resource) == (
        AuditAction.MODEL_PROVIDER_UPDATED,
        "key_admin",
        "acme",
    )
    assert entry.details == {"version": 2, "changed": ["kind", "base_url", "api_key"], "base_url": OTHER_URL}
    assert "s3cret" not in repr(entry)


async def test_a_change_of_nothing_makes_no_version_and_no_audit_entry(ports: Ports) -> None:
    assert await ports.update({"api_key": "s3cret-key", "kind": PROVIDER.kind}) == PROVIDER

    ports.assert_unchanged()


async def test_a_change_of_a_version_that_was_overtaken_is_refused(ports: Ports) -> None:
    await ports.update({"base_url": OTHER_URL}, expected_version=1)

    with pytest.raises(ServiceError) as caught:
        await ports.update({"api_key": None}, expected_version=1)

    assert (caught.value.code, caught.value.kind) == ("version_conflict", ErrorKind.PRECONDITION)
    assert ports.state.model_providers[ORG, "acme"].api_key == "s3cret-key"


@pytest.mark.requirement("B16")
async def test_an_address_that_may_not_be_requested_is_refused(ports: Ports) -> None:
    ports.outbound.refusal.return_value = REFUSAL

    with refused("model_provider_invalid"):
        await ports.update({"base_url": OTHER_URL})

    ports.outbound.refusal.assert_called_once_with(OTHER_URL)
    ports.assert_unchanged()


async def test_an_invalid_change_is_refused(ports: Ports) -> None:
    with refused("model_provider_invalid"):
        await ports.update({"api_key": "two words"})

    ports.assert_unchanged()


async def test_an_unknown_provider_is_not_found(ports: Ports) -> None:
    with refused("model_provider_not_found"):
        await ports.update({"base_url": OTHER_URL}, name="other")


@pytest.mark.requirement("C6", "C7")
async def test_a_provider_of_another_organization_is_not_found(ports: Ports) -> None:
    with refused("model_provider_not_found"):
        await ports.update({"base_url": OTHER_URL}, principal=a_stranger())

    ports.assert_unchanged()


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", [Role.VIEWER, Role.RUNNER, Role.OPERATOR])
async def test_only_an_admin_changes_providers(ports: Ports, mocker: MockerFixture, role: Role) -> None:
    providers = mocker.create_autospec(ModelProviderStore, instance=True)
    ports.providers = providers

    with refused("role_insufficient"):
        await ports.update({"base_url": OTHER_URL}, principal=a_principal(role))

    providers.all.assert_not_awaited()
    providers.save.assert_not_awaited()


async def test_a_change_that_another_one_overtakes_while_it_is_stored_is_refused(
    ports: Ports, mocker: MockerFixture
) -> None:
    providers = mocker.create_autospec(ModelProviderStore, instance=True)
    providers.all.return_value = (PROVIDER,)
    providers.save.side_effect = ServiceError("version_conflict", ErrorKind.PRECONDITION, "It is at version 2.")
    ports.providers = providers

    with refused("version_conflict"):
        await ports.update({"base_url": OTHER_URL})

    assert providers.save.await_args.kwargs["expected_version"] == PROVIDER.version


async def test_a_storage_failure_is_not_taken_for_a_missing_provider(ports: Ports, mocker: MockerFixture) -> None:
    providers = mocker.create_autospec(ModelProviderStore, instance=True)
    providers.all.side_effect = storage_away()
    ports.providers = providers

    with refused("storage_unavailable"):
        await ports.update({"base_url": OTHER_URL})

    providers.save.assert_not_awaited()


ON_AWS = replace(
    PROVIDER,
    kind=ProviderKind.BEDROCK,
    base_url="https://bedrock-runtime.eu-central-1.amazonaws.com",
    cloud=CloudSettings(region="eu-central-1"),
)


@pytest.mark.requirement("H4")
async def test_the_address_of_the_vendor_follows_the_region(ports: Ports) -> None:
    ports.state = a_state_with(ON_AWS)
    ports.providers = InMemoryModelProviderStore(ports.state)

    changed = await ports.update({"cloud": CloudSettings(region="us-east-1")})
    stays = await ports.update({"cloud": CloudSettings()})

    assert changed.base_url == "https://bedrock-runtime.us-east-1.amazonaws.com"
    assert stays.base_url == changed.base_url
    assert (await ports.update({"cloud": ON_AWS.cloud})).base_url == ON_AWS.base_url


@pytest.mark.requirement("H4")
async def test_another_address_stays_in_a_new_region_unless_it_says_another_one(ports: Ports) -> None:
    ports.state = a_state_with(replace(ON_AWS, base_url="https://models.example.com"))
    ports.providers = InMemoryModelProviderStore(ports.state)
    region = CloudSettings(region="us-east-1")

    assert (await ports.update({"cloud": region})).base_url == "https://models.example.com"
    with refused("model_provider_invalid"):
        await ports.update({"base_url": ON_AWS.base_url})
    with refused("model_provider_invalid"):
        await ports.update({"base_url": ON_AWS.base_url, "cloud": region})
