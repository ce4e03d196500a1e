"""A model provider of ORG, and what an outbound policy says, for tests of the slice."""

from domain.ids import OrganizationId
from domain.model_providers.provider import ModelProvider, ProviderKind
from domain.secrets.secret import SecretValue
from tests.builders import ORG, START, after
from tests.doubles.model_providers import InMemoryModelProviderStore
from tests.doubles.state import InMemoryState

BASE_URL = "https://models.example.com/v1"
REFUSAL = "The address is not public."
"""Why an outbound policy does not let an address be requested."""


def a_provider(
    name: str = "acme",
    *,
    organization_id: OrganizationId = ORG,
    base_url: str = BASE_URL,
    api_key: SecretValue | None = "s3cret-key",
    created_at_s: float = 0,
) -> ModelProvider:
    """One that speaks OpenAI's wire."""
    return ModelProvider(
        organization_id=organization_id,
        name=name,
        kind=ProviderKind.OPENAI,
        base_url=base_url,
        api_key=api_key,
        created_at=after(created_at_s),
        updated_at=START,
    )


def a_state_with(*providers: ModelProvider) -> InMemoryState:
    """In-memory tables that hold these providers."""
    state = InMemoryState()
    state.model_providers = {(provider.organization_id, provider.name): provider for provider in providers}
    return state


def stored(*providers: ModelProvider) -> InMemoryModelProviderStore:
    """A store of these providers."""
    return InMemoryModelProviderStore(a_state_with(*providers))
