"""CreateModelProvider: who may add a provider, which addresses and keys are refused, and what is
audited."""

from typing import Any

import pytest
from pytest_mock import MockerFixture, MockType

from application.model_providers.create_model_provider import CreateModelProvider, CreateModelProviderCommand
from application.model_providers.ports import ModelProviderStore
from application.system.ports import OutboundPolicy
from domain.audit.event import AuditAction
from domain.errors import ServiceError
from domain.identity.role import Role
from domain.model_providers.cloud import CloudSettings
from domain.model_providers.provider import MAX_PROVIDERS, ModelProvider, ProviderKind
from domain.secrets.secret import SecretRef
from tests.builders import ORG, OTHER_ORG, START
from tests.doubles.model_providers import InMemoryModelProviderStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger
from tests.unit.application.model_providers.providers import BASE_URL, REFUSAL, a_provider


class Ports:
    """Providers in memory, and an outbound policy that lets every address be requested."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state = InMemoryState()
        self.providers: ModelProviderStore = InMemoryModelProviderStore(self.state)
        self.outbound: MockType = mocker.create_autospec(OutboundPolicy, instance=True)
        self.outbound.refusal.return_value = None

    async def create(self, **command: Any) -> ModelProvider:
        """Create `acme`, unless `command` says otherwise."""
        creating = CreateModelProvider(
            providers=self.providers, outbound=self.outbound, clock=FixedClock(), ids=SequentialIds()
        )
        defaults: dict[str, Any] = {
            "principal": a_principal(),
            "name": "acme",
            "kind": ProviderKind.OPENAI,
            "base_url": BASE_URL,
            "api_key": "s3cret-key",
        }
        return await creating.execute(CreateModelProviderCommand(**(defaults | command)))


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("C7")
async def test_an_admin_adds_a_provider_to_the_organization(ports: Ports) -> None:
    provider = await ports.create()

    assert (provider.organization_id, provider.name, provider.version) == (ORG, "acme", 1)
    assert (provider.kind, provider.base_url, provider.api_key) == (ProviderKind.OPENAI, BASE_URL, "s3cret-key")
    assert provider.created_at == provider.updated_at == START
    assert ports.state.model_providers == {(ORG, "acme"): provider}


@pytest.mark.parametrize(
    ("kind", "base_url"),
    [(ProviderKind.OPENAI, "https://api.openai.com/v1"), (ProviderKind.ANTHROPIC, "https://api.anthropic.com")],
)
async def test_without_an_address_a_provider_is_at_its_vendors(ports: Ports, kind: ProviderKind, base_url: str) -> None:
    assert (await ports.create(kind=kind, base_url=None)).base_url == base_url


async def test_the_key_may_be_taken_from_a_named_secret_or_be_absent(ports: Ports) -> None:
    assert (await ports.create(api_key=SecretRef("TOKEN"))).secret_name == "TOKEN"
    assert (await ports.create(name="local", api_key=None)).api_key is None


@pytest.mark.requirement("C5", "C7")
async def test_a_new_provider_is_audited_without_its_key(ports: Ports) -> None:
    await ports.create()

    [entry] = ports.state.audit.values()
    assert (entry.action, entry.actor, entry.resource) == (
        AuditAction.MODEL_PROVIDER_CREATED,
        "key_admin",
        "acme",
    )
    assert entry.details == {"kind": "openai", "base_url": BASE_URL, "wire": "auto"}
    assert "s3cret" not in repr(entry)


@pytest.mark.requirement("C7")
async def test_no_repr_shows_the_key(ports: Ports) -> None:
    command = CreateModelProviderCommand(
        principal=a_principal(), name="acme", kind=ProviderKind.OPENAI, api_key="s3cret-key"
    )

    assert "s3cret" not in repr(command)
    assert "s3cret" not in repr(await ports.create())


@pytest.mark.requirement("B16")
async def test_an_address_that_may_not_be_requested_is_refused(ports: Ports) -> None:
    ports.outbound.refusal.return_value = REFUSAL

    with pytest.raises(ServiceError) as caught:
        await ports.create()

    assert caught.value.code == "model_provider_invalid"
    assert [(fault.path, fault.message) for fault in caught.value.violations] == [("base_url", REFUSAL)]
    ports.outbound.refusal.assert_called_once_with(BASE_URL)
    assert not ports.state.model_providers


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"name": "Acme"}, "name"),
        ({"name": "scripted"}, "name"),
        ({"base_url": "ftp://models.example.com"}, "base_url"),
        ({"base_url": "https://user:word@models.example.com"}, "base_url"),
        ({"api_key": "two words"}, "api_key"),
    ],
    ids=["capitals", "a reserved name", "another scheme", "credentials", "a key that fits no header"],
)
async def test_an_invalid_provider_is_refused(ports: Ports, wrong: dict[str, Any], path: str) -> None:
    with pytest.raises(ServiceError) as caught:
        await ports.create(**wrong)

    assert caught.value.code == "model_provider_invalid"
    assert [fault.path for fault in caught.value.violations] == [path]
    assert not ports.state.audit


async def test_a_name_is_used_once_in_an_organization(ports: Ports) -> None:
    first = await ports.create()

    with refused("model_provider_exists"):
        await ports.create(base_url="https://other.example.com")

    assert ports.state.model_providers[ORG, "acme"] == first
    assert len(ports.state.audit) == 1


@pytest.mark.requirement("C6", "C7")
async def test_another_organization_may_use_the_same_name(ports: Ports) -> None:
    await ports.create()

    assert (await ports.create(principal=a_stranger())).organization_id == OTHER_ORG


async def test_an_organization_has_a_bounded_number_of_providers(ports: Ports) -> None:
    ports.state.model_providers = {(ORG, f"p{n}"): a_provider(f"p{n}") for n in range(MAX_PROVIDERS)}

    with refused("too_many_model_providers"):
        await ports.create()


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", [Role.VIEWER, Role.RUNNER, Role.OPERATOR])
async def test_only_an_admin_adds_providers(ports: Ports, role: Role) -> None:
    with refused("role_insufficient"):
        await ports.create(principal=a_principal(role))

    ports.outbound.refusal.assert_not_called()
    assert not ports.state.model_providers


async def test_a_provider_that_cannot_be_stored_is_not_returned(ports: Ports, mocker: MockerFixture) -> None:
    ports.providers = mocker.create_autospec(ModelProviderStore, instance=True)
    ports.providers.add.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.create()


@pytest.mark.requirement("H4")
@pytest.mark.parametrize(
    ("kind", "base_url", "region"),
    [
        (ProviderKind.BEDROCK, "https://bedrock-runtime.eu-central-1.amazonaws.com", "us-east-1"),
        (ProviderKind.BEDROCK, "https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1", "eu-central-1"),
        (ProviderKind.VERTEX, "https://aiplatform.googleapis.com", "europe-west1"),
    ],
)
async def test_an_address_in_another_region_than_the_one_given_is_refused(
    ports: Ports, kind: ProviderKind, base_url: str, region: str
) -> None:
    project = "project-1" if kind is ProviderKind.VERTEX else None
    with pytest.raises(ServiceError) as raised:
        await ports.create(
            kind=kind, base_url=base_url, api_key=None, cloud=CloudSettings(region=region, project=project)
        )

    assert [violation.path for violation in raised.value.violations] == ["base_url"]
    assert not ports.state.model_providers
