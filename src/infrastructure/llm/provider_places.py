"""The places of a provider, opened for tests and lists. Above: use cases of model providers. Below:
adapters and lists."""

from collections.abc import Callable

from application.model_providers.ports import ProviderPlace
from application.models.ports import ModelError
from domain.ids import OrganizationId
from infrastructure.llm.organization_providers import ProviderUnusableError
from infrastructure.llm.routing import OpenProviders, Providers


class OpenProviderPlaces:
    """The ProviderPlaces port over the providers of organizations and of the environment."""

    def __init__(self, *, providers: Providers, open_providers: Callable[[], OpenProviders]) -> None:
        self._providers = providers
        self._open_providers = open_providers

    async def places(self, organization_id: OrganizationId, name: str) -> tuple[ProviderPlace, ...]:
        try:
            provider = await self._providers.find(organization_id, name)
        except ProviderUnusableError as unusable:
            raise ModelError("model_rejected", unusable.reason, retryable=False) from unusable
        if provider is None:
            return ()
        if (problem := provider.key_problem) is not None:
            raise ModelError("model_auth", problem, retryable=False)
        opened = self._open_providers()
        return tuple(
            ProviderPlace(
                deployment=deployment, identity=place, models=opened.open(place), model_list=opened.model_list(place)
            )
            for deployment, place in provider.places
        )

    async def names(self, organization_id: OrganizationId) -> tuple[str, ...]:
        return await self._providers.names(organization_id)
