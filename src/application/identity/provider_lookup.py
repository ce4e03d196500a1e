"""Finds an identity provider by its id or its name."""

from application.identity.ports import IdentityProviderStore
from domain.errors import existing
from domain.identity.identity_provider import IdentityProvider
from domain.ids import OrganizationId


async def existing_identity_provider(
    providers: IdentityProviderStore, organization_id: OrganizationId, wanted: str
) -> IdentityProvider:
    """Raises NOT_FOUND `identity_provider_not_found`."""
    found = (each for each in await providers.all(organization_id) if wanted in (each.id, each.name))
    return existing(next(found, None), "identity provider", wanted)
