"""Builds access to language models; heavy adapters are imported on first use."""

from application.models.ports import PriceTable
from application.system.lazy import LazyClosable
from domain.model_providers.provider import OFFICIAL_BASE_URLS, EchoReasoning, ProviderKind, ProviderWire
from infrastructure.http.egress import EgressPolicy
from infrastructure.http.proxies import Proxies
from infrastructure.llm.identities.cloud_addresses import CloudAddresses, EntraWorkload
from infrastructure.llm.lazy_prices import LazyPriceTable
from infrastructure.llm.organization_providers import OrganizationProviders
from infrastructure.llm.provider_places import OpenProviderPlaces
from infrastructure.llm.providers import ProviderConfig
from infrastructure.llm.providers_extra import is_extra_installed
from infrastructure.llm.routing import OpenProviders, RoutedModels
from infrastructure.llm.scripted import SHIPPED_SCRIPTS, ScriptedModels
from infrastructure.runtime.home import Home
from infrastructure.settings import Settings


def model_providers(settings: Settings) -> tuple[ProviderConfig, ...]:
    """Providers of the environment: `openai` and `anthropic`."""
    given = (
        (ProviderKind.OPENAI, settings.openai_base_url, settings.openai_api_key),
        (ProviderKind.ANTHROPIC, settings.anthropic_base_url, settings.anthropic_api_key),
    )
    return tuple(
        ProviderConfig(
            name=kind.value,
            kind=kind,
            base_url=base_url or OFFICIAL_BASE_URLS[kind],
            api_key=None if key is None else key.get_secret_value(),
            wire=ProviderWire(settings.openai_wire) if kind is ProviderKind.OPENAI else ProviderWire.AUTO,
            echo_reasoning=EchoReasoning(settings.openai_echo_reasoning),
        )
        for kind, base_url, key in given
    )


def entra_workload(settings: Settings) -> EntraWorkload | None:
    """The workload that a cluster on Azure says this machine is; None if it does not say all of
    it."""
    file, tenant_id, client_id = settings.azure_federated_token_file, settings.azure_tenant_id, settings.azure_client_id
    if file is None or tenant_id is None or client_id is None:
        return None
    authority = settings.azure_authority_host
    return EntraWorkload(token_file=file, tenant_id=tenant_id, client_id=client_id, authority=authority)


def prices(model_providers: tuple[ProviderConfig, ...]) -> LazyPriceTable:
    def load() -> PriceTable:
        from infrastructure.llm.pricing import GenaiPriceTable

        return GenaiPriceTable(model_providers)

    return LazyPriceTable(load)


def lazy_providers(
    egress: EgressPolicy, proxies: Proxies, entra_workload: EntraWorkload | None
) -> LazyClosable[OpenProviders]:
    def load() -> OpenProviders:
        from infrastructure.http.client import HttpClients
        from infrastructure.llm.native_models import OpenNative
        from infrastructure.llm.provider_http import provider_http
        from infrastructure.llm.provider_models import ProviderModels

        def native() -> OpenNative:
            from infrastructure.llm.library.opening import native_models

            return native_models

        clients = HttpClients(proxies)
        return ProviderModels(
            http=provider_http(clients),
            guarded_http=provider_http(clients, egress=egress),
            outbound=egress,
            native=native if is_extra_installed() else None,
            addresses=CloudAddresses(entra_workload=entra_workload),
        )

    return LazyClosable(load)


def routed_models(
    providers: OrganizationProviders, lazy_providers: LazyClosable[OpenProviders], home: Home
) -> RoutedModels:
    return RoutedModels(
        providers=providers,
        open_provider=lambda provider: lazy_providers.get().open(provider),
        scripted=ScriptedModels((home.scripts_path, SHIPPED_SCRIPTS)),
    )


def provider_places(
    providers: OrganizationProviders, lazy_providers: LazyClosable[OpenProviders]
) -> OpenProviderPlaces:
    return OpenProviderPlaces(providers=providers, open_providers=lazy_providers.get)
