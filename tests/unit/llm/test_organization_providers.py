"""Which providers an organization has, and that no organization reaches another's."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from application.models.ports import LanguageModel, ModelError, ModelEvent, ModelReply, ModelRequest, TextDelta
from domain.ids import OrganizationId
from domain.model_providers.cloud import CloudIdentity, CloudSettings
from domain.model_providers.deployment import Deployment
from domain.model_providers.provider import OFFICIAL_BASE_URLS, ModelProvider, ProviderKind, ProviderWire
from domain.runs.finish_reason import FinishReason
from domain.runs.usage import ModelUsage
from domain.secrets.secret import Secret, SecretRef
from infrastructure.llm.organization_providers import OrganizationProviders
from infrastructure.llm.providers import DeploymentConfig, ProviderConfig
from infrastructure.llm.routing import RoutedModels
from infrastructure.llm.scripted import ScriptedModels
from tests.builders import ORG, OTHER_ORG, START, after, an_organization
from tests.doubles.model_providers import InMemoryModelProviderStore
from tests.doubles.organizations import InMemoryOrganizationStore
from tests.doubles.secrets import InMemorySecretStore
from tests.doubles.state import InMemoryState
from tests.unit.llm.model_requests import a_request, all_events, reply_of

ENVIRONMENT = ProviderConfig(
    name="openai", kind=ProviderKind.OPENAI, base_url=OFFICIAL_BASE_URLS[ProviderKind.OPENAI], api_key="sk-operator"
)


class TellingModel:
    """Says with which key it was asked."""

    def __init__(self, provider: ProviderConfig) -> None:
        self._provider = provider

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        said = f"{self._provider.api_key} at {self._provider.base_url}"
        yield TextDelta(text=said)
        yield ModelReply(model=request.model, text=said, calls=(), usage=ModelUsage(), finish_reason=FinishReason.STOP)


class World:
    """ORG, which is the default one, and OTHER_ORG, over in-memory tables."""

    def __init__(
        self, folder: Path, *, max_open: int = 10, cloud_identity: bool = False, has_extra: bool = True
    ) -> None:
        self.state = InMemoryState()
        later = replace(an_organization(OTHER_ORG), created_at=after(1))
        self.state.organizations = {ORG: an_organization(ORG, name="renamed"), OTHER_ORG: later}
        self.opened: list[str] = []
        self.configs: list[ProviderConfig] = []
        self.models = RoutedModels(
            providers=OrganizationProviders(
                environment=[ENVIRONMENT],
                providers=InMemoryModelProviderStore(self.state),
                secrets=InMemorySecretStore(self.state),
                organizations=InMemoryOrganizationStore(self.state),
                cloud_identity=cloud_identity,
                has_extra=lambda: has_extra,
            ),
            open_provider=self._open,
            scripted=ScriptedModels([folder]),
            max_open=max_open,
        )

    def have(self, organization_id: OrganizationId, name: str, key: str | SecretRef | None) -> None:
        self.state.model_providers[organization_id, name] = ModelProvider(
            organization_id=organization_id,
            name=name,
            kind=ProviderKind.OPENAI,
            base_url="https://models.example/v1",
            api_key=key,
            created_at=START,
            updated_at=START,
        )

    def have_vertex(self, organization_id: OrganizationId) -> None:
        """A provider with the identity of the machine."""
        self.state.model_providers[organization_id, "acme"] = ModelProvider(
            organization_id=organization_id,
            name="acme",
            kind=ProviderKind.VERTEX,
            base_url="https://europe-west1-aiplatform.googleapis.com",
            cloud=CloudSettings(project="p-1", identity=CloudIdentity.SERVICE),
            created_at=START,
            updated_at=START,
        )

    def have_deployments(self, organization_id: OrganizationId, name: str, *deployments: Deployment) -> None:
        key = (organization_id, name)
        self.state.model_providers[key] = replace(self.state.model_providers[key], deployments=deployments)

    def know(self, organization_id: OrganizationId, name: str, value: str) -> None:
        secret = Secret(organization_id=organization_id, name=name, created_at=START, updated_at=START)
        self.state.secrets[organization_id, name] = (secret, value)

    async def asked(self, organization_id: OrganizationId, model: str = "acme:m") -> str:
        request = replace(a_request(model), organization_id=organization_id)
        return (await reply_of(self.models.stream(request))).text.partition(" at ")[0]

    async def refused(self, organization_id: OrganizationId, model: str = "acme:m") -> str:
        """The reason, which a save and a call must give alike."""
        problem = await self.models.problem_with(organization_id, model)
        with pytest.raises(ModelError) as raised:
            await all_events(self.models.stream(replace(a_request(model), organization_id=organization_id)))
        assert (raised.value.code, raised.value.detail) == ("model_rejected", problem)
        assert not raised.value.retryable
        return raised.value.detail

    def _open(self, provider: ProviderConfig) -> LanguageModel:
        self.configs.append(provider)
        self.opened.append(f"{provider.name} {provider.api_key}")
        return TellingModel(provider)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.requirement("C6", "C7")
async def test_what_the_environment_makes_belongs_to_the_default_organization_alone(world: World) -> None:
    assert await world.asked(ORG, "openai:m") == "sk-operator"
    assert await world.models.problem_with(ORG, "openai:m") is None
    assert await world.refused(OTHER_ORG, "openai:m") == (
        "There is no model provider 'openai'; there are: scripted. `dragoman provider add openai --kind KIND` adds one."
    )


@pytest.mark.requirement("C6", "C7")
async def test_each_organization_is_answered_with_its_own_key_under_one_name(world: World) -> None:
    world.have(ORG, "acme", "sk-mine")
    world.have(OTHER_ORG, "acme", "sk-theirs")
    answered = [await world.asked(organization_id) for organization_id in (ORG, OTHER_ORG, ORG, OTHER_ORG)]
    assert answered == ["sk-mine", "sk-theirs", "sk-mine", "sk-theirs"]
    assert world.opened == ["acme sk-mine", "acme sk-theirs"]


@pytest.mark.requirement("C6")
async def test_a_provider_of_another_organization_is_not_there_and_its_name_is_not_told(world: World) -> None:
    world.have(ORG, "acme", "sk-mine")
    listed = (await world.refused(OTHER_ORG)).partition("there are: ")[2].partition(".")[0]
    assert listed == "scripted"


async def test_an_organizations_own_provider_goes_before_the_environments(world: World) -> None:
    world.have(ORG, "openai", "sk-mine")
    assert await world.asked(ORG, "openai:m") == "sk-mine"


@pytest.mark.requirement("C7")
async def test_another_key_counts_from_the_next_call_on(world: World) -> None:
    world.have(ORG, "acme", "sk-1")
    assert await world.asked(ORG) == "sk-1"
    world.have(ORG, "acme", "sk-2")
    assert await world.asked(ORG) == "sk-2"
    assert world.opened == ["acme sk-1", "acme sk-2"]


@pytest.mark.requirement("C7")
async def test_a_key_may_be_a_secret_whose_newest_value_counts(world: World) -> None:
    world.have(ORG, "acme", SecretRef("ACME"))
    for value in ("sk-1\n", "sk-2"):
        world.know(ORG, "ACME", value)
        assert await world.asked(ORG) == value.strip()


@pytest.mark.requirement("C6", "C7")
async def test_a_secret_of_another_organization_is_nobodys_key(world: World) -> None:
    world.have(ORG, "acme", SecretRef("ACME"))
    world.know(OTHER_ORG, "ACME", "sk-theirs")
    assert "'ACME', which does not exist" in await world.refused(ORG)


async def test_a_secret_that_is_no_key_is_not_sent_and_not_shown(world: World) -> None:
    world.have(ORG, "acme", SecretRef("ACME"))
    world.know(ORG, "ACME", "two words")
    reason = await world.refused(ORG)
    assert "holds no API key" in reason
    assert "two words" not in reason


async def test_a_deleted_provider_fails_the_next_call_clearly(world: World) -> None:
    world.have(ORG, "acme", "sk-1")
    await world.asked(ORG)
    del world.state.model_providers[ORG, "acme"]
    assert await world.refused(ORG) == (
        "There is no model provider 'acme'; there are: openai, scripted. `dragoman provider add acme --kind KIND` adds one."
    )


async def test_the_providers_kept_open_are_bounded(tmp_path: Path) -> None:
    world = World(tmp_path, max_open=2)
    for name in ("a", "b", "c"):
        world.have(ORG, name, f"sk-{name}")
    for model in ("a:m", "b:m", "a:m", "c:m", "a:m", "b:m"):
        await world.asked(ORG, model)
    assert [entry[0] for entry in world.opened] == ["a", "b", "c", "b"]


@pytest.mark.requirement("H6")
async def test_deployments_have_the_providers_address_and_key_unless_they_have_their_own(world: World) -> None:
    world.know(ORG, "EU", "sk-eu\n")
    world.have(ORG, "acme", "sk-own")
    world.have_deployments(
        ORG,
        "acme",
        Deployment(name="eu", base_url="https://eu.example/v1", api_key=SecretRef("EU"), weight=3),
        Deployment(name="own"),
    )
    await world.asked(ORG)
    assert world.configs[-1].deployments == (
        DeploymentConfig(name="eu", base_url="https://eu.example/v1", api_key="sk-eu", weight=3),
        DeploymentConfig(name="own", base_url="https://models.example/v1", api_key="sk-own"),
    )


@pytest.mark.requirement("H6")
async def test_a_deployment_without_its_secret_is_named(world: World) -> None:
    world.have(ORG, "acme", "sk-own")
    world.have_deployments(ORG, "acme", Deployment(name="eu", api_key=SecretRef("EU")))
    assert await world.refused(ORG) == (
        "The model provider 'acme', deployment 'eu', takes its key from the secret 'EU', which does not exist."
    )


@pytest.mark.requirement("H2")
def test_the_responses_api_is_the_default_at_openai_itself_alone() -> None:
    compatible = replace(ENVIRONMENT, base_url="https://models.example/v1")
    assert [ENVIRONMENT.speaks_responses, compatible.speaks_responses] == [True, False]
    assert replace(compatible, wire=ProviderWire.RESPONSES).speaks_responses
    assert not replace(ENVIRONMENT, wire=ProviderWire.CHAT).speaks_responses


@pytest.mark.requirement("H4", "C6")
async def test_the_identity_of_the_machine_is_for_the_default_organization_if_the_operator_permits_it(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    world.have_vertex(ORG)
    assert "DRAGOMAN_CLOUD_IDENTITY=true" in await world.refused(ORG)
    permitted = World(tmp_path, cloud_identity=True)
    permitted.have_vertex(ORG)
    permitted.have_vertex(OTHER_ORG)
    assert await permitted.asked(ORG) == "None"
    assert "only the default organization" in await permitted.refused(OTHER_ORG)


@pytest.mark.requirement("H4")
async def test_a_provider_that_needs_the_extra_names_the_command_that_installs_it(tmp_path: Path) -> None:
    world = World(tmp_path, cloud_identity=True, has_extra=False)
    world.have_vertex(ORG)
    assert "pip install 'dragoman[providers]'" in await world.refused(ORG)
    assert world.opened == []
