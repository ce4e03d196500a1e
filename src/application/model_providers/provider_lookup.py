"""Finding a model provider, and checking its addresses."""

from application.model_providers.ports import ModelProviderStore
from application.system.ports import OutboundPolicy
from domain.errors import Violation, invalid, not_found
from domain.ids import OrganizationId
from domain.model_providers.cloud import NO_CLOUD
from domain.model_providers.provider import ModelProvider, region_violations


async def existing_provider(providers: ModelProviderStore, organization_id: OrganizationId, name: str) -> ModelProvider:
    """The organization's provider of that name. Raises NOT_FOUND."""
    for provider in await providers.all(organization_id):
        if provider.name == name:
            return provider
    raise not_found("model provider", name)


def require_addresses(outbound: OutboundPolicy, provider: ModelProvider) -> None:
    """Raise INVALID `model_provider_invalid` unless all addresses of the provider may be requested,
    and its own is in its region. Deployments may be in other regions."""
    addresses = [("base_url", provider.base_url)] + [
        (f"deployments.{index}.base_url", deployment.base_url)
        for index, deployment in enumerate(provider.deployments)
        if deployment.base_url is not None
    ]
    wrong = region_violations(provider.kind, provider.base_url, provider.cloud or NO_CLOUD)
    wrong += [
        Violation(path=path, message=refusal)
        for path, address in addresses
        if (refusal := outbound.refusal(address)) is not None
    ]
    if wrong:
        raise invalid("model_provider_invalid", "The model provider is not valid.", *wrong)
