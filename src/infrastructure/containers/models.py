"""Providers of language models: routing, providers of the environment and of organizations,
prices."""

from dependency_injector import containers, providers

from application.model_providers.check_model_provider import CheckModelProvider
from application.model_providers.create_model_provider import CreateModelProvider
from application.model_providers.delete_model_provider import DeleteModelProvider
from application.model_providers.list_models import ListModels
from application.model_providers.queries import GetModelProvider, ListModelProviders
from application.model_providers.update_model_provider import UpdateModelProvider
from application.models.ports import FallbackModels
from application.system.lazy import LazyClosable
from infrastructure.assembly import models as models_assembly
from infrastructure.containers.platform import Platform
from infrastructure.containers.storage import Storage
from infrastructure.containers.wiring import Singletons
from infrastructure.llm.identities.cloud_addresses import EntraWorkload
from infrastructure.llm.lazy_prices import LazyPriceTable
from infrastructure.llm.organization_providers import OrganizationProviders
from infrastructure.llm.provider_places import OpenProviderPlaces
from infrastructure.llm.providers import ProviderConfig
from infrastructure.llm.retrying import RetryingModels
from infrastructure.llm.routing import OpenProviders, RoutedModels

singleton = Singletons(Platform, Storage)


class Models(containers.DeclarativeContainer):
    entra_workload: providers.Provider[EntraWorkload | None] = singleton(
        models_assembly.entra_workload, Platform.settings
    )
    lazy_providers: providers.Provider[LazyClosable[OpenProviders]] = singleton(
        models_assembly.lazy_providers, Platform.egress_policy, Platform.proxies, entra_workload
    )
    model_providers: providers.Provider[tuple[ProviderConfig, ...]] = singleton(
        models_assembly.model_providers, Platform.settings
    )
    prices: providers.Provider[LazyPriceTable] = singleton(models_assembly.prices, model_providers)
    organization_providers = singleton(
        OrganizationProviders,
        environment=model_providers,
        providers=Storage.model_provider_store,
        cloud_identity=Platform.settings.provided.cloud_identity,
    )
    routed_models: providers.Provider[RoutedModels] = singleton(
        models_assembly.routed_models, organization_providers, lazy_providers, Platform.home
    )
    provider_places: providers.Provider[OpenProviderPlaces] = singleton(
        models_assembly.provider_places, organization_providers, lazy_providers
    )
    models: providers.Provider[FallbackModels] = singleton(RetryingModels, routed_models)

    create_model_provider = singleton(
        CreateModelProvider, providers=Storage.fresh_model_provider_store, outbound=Platform.egress_policy
    )
    update_model_provider = singleton(
        UpdateModelProvider, providers=Storage.fresh_model_provider_store, outbound=Platform.egress_policy
    )
    get_model_provider = singleton(GetModelProvider, providers=Storage.fresh_model_provider_store)
    list_model_providers = singleton(ListModelProviders, providers=Storage.model_provider_store)
    delete_model_provider = singleton(DeleteModelProvider, providers=Storage.fresh_model_provider_store)
    check_model_provider = singleton(CheckModelProvider, places=provider_places)
    list_models = singleton(ListModels, places=provider_places)
