"""Reading model providers."""

from application.model_providers.ports import ModelProviderStore
from application.model_providers.provider_lookup import existing_provider
from application.system.pages import FIRST_PAGE, Page, PageRequest
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.model_providers.provider import ModelProvider


class GetModelProvider:
    """Any role may read; views leave the key out."""

    def __init__(self, *, providers: ModelProviderStore) -> None:
        self._providers = providers

    async def execute(self, principal: Principal, name: str) -> ModelProvider:
        """The provider. Raises NOT_FOUND."""
        principal.require(Role.VIEWER)
        return await existing_provider(self._providers, principal.organization_id, name)


class ListModelProviders:
    """Any role may read, newest first; views leave keys out. Those that the environment makes are
    not among them."""

    def __init__(self, *, providers: ModelProviderStore) -> None:
        self._providers = providers

    async def execute(self, principal: Principal, page: PageRequest = FIRST_PAGE) -> Page[ModelProvider]:
        """One page."""
        principal.require(Role.VIEWER)
        return await self._providers.page(principal.organization_id, page)
