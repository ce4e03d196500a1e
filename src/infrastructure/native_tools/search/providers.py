"""Creates the configured search provider. It imports HTTP clients, so it is loaded at the first
search."""

from typing import assert_never
from urllib.parse import urlsplit

from infrastructure.http.client import HttpClients
from infrastructure.http.proxies import Proxies
from infrastructure.native_tools.search.brave import BraveSearch
from infrastructure.native_tools.search.duckduckgo import DuckDuckGoSearch
from infrastructure.native_tools.search.provider import SearchProvider
from infrastructure.native_tools.search.tavily import TavilySearch
from infrastructure.settings import Settings


def open_provider(settings: Settings, proxies: Proxies) -> SearchProvider:
    """The provider of this service. Raises ValueError without its key, which `load_settings` has
    checked."""
    match settings.search_provider:
        case "duckduckgo":
            address = urlsplit(settings.duckduckgo_base_url)
            proxy = proxies.of(address.scheme, address.hostname or "", address.port)
            return DuckDuckGoSearch(base_url=settings.duckduckgo_base_url, proxy=proxy)
        case "brave":
            if settings.brave_api_key is None:
                raise ValueError("Brave Search needs a key")
            return BraveSearch(
                client=HttpClients(proxies).create(),
                base_url=settings.brave_base_url,
                api_key=settings.brave_api_key.get_secret_value(),
            )
        case "tavily":
            if settings.tavily_api_key is None:
                raise ValueError("Tavily needs a key")
            return TavilySearch(
                client=HttpClients(proxies).create(),
                base_url=settings.tavily_base_url,
                api_key=settings.tavily_api_key.get_secret_value(),
            )
        case other:
            assert_never(other)
