"""Finding a model provider, and looking at its address."""

from application.model_providers.ports import ModelProviderStore
from application.system.ports import OutboundPolicy
from domain.errors import Violation, invalid, not_found
from domain.ids import OrganizationId
from domain.model_providers.provider import ModelProvider


async def existing_provider(providers: ModelProviderStore, organization_id: OrganizationId, name: str) -> ModelProvider:
    """The organization's provider of that name. Raises NOT_FOUND."""
    for provider in await providers.all(organization_id):
        if provider.name == name:
            return provider
    raise not_found("model provider", name)


def require_reachable(outbound: OutboundPolicy, base_url: str) -> None:
    """Raise INVALID `model_provider_invalid` for an address that may not be requested."""
    refusal = outbound.refusal(base_url)
    if refusal is not None:
        raise invalid(
            "model_provider_invalid",
            "The model provider is not valid.",
            Violation(path="base_url", message=refusal),
        )
