"""ListModelProviders: an organization's own providers, without their keys."""

from dataclasses import dataclass

from application.model_providers.ports import ModelProviderStore
from application.system.pages import Page, PageRequest
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.model_providers.provider import ModelProvider


@dataclass(frozen=True, slots=True, kw_only=True)
class ListModelProvidersCommand:
    """Which page."""

    principal: Principal
    page: PageRequest = PageRequest()


class ListModelProviders:
    """Any role may read, newest first; views leave keys out. Those that the environment makes are not among them."""

    def __init__(self, *, providers: ModelProviderStore) -> None:
        self._providers = providers

    async def execute(self, command: ListModelProvidersCommand) -> Page[ModelProvider]:
        """One page."""
        command.principal.require(Role.VIEWER)
        return await self._providers.page(command.principal.organization_id, command.page)
