"""Builds the native tools."""

from collections.abc import Mapping
from importlib.metadata import version

from application.policy.ports import SchemaValidator
from application.sources.ports import SourceStore
from application.sources.store_source import StoreSource
from application.system.ports import Clock
from application.tools.ports import NativeTool
from domain.tools.capabilities import ToolType
from domain.tools.tool import Tool
from infrastructure.extraction.process_extractor import ProcessTextExtractor
from infrastructure.http.egress import EgressPolicy
from infrastructure.http.proxies import Proxies
from infrastructure.native_tools.displayable import DISPLAYABLE_TOOLS
from infrastructure.native_tools.internet_search import InternetSearchTool
from infrastructure.native_tools.lazy_code_execution import Interpreter, LazyCodeExecution
from infrastructure.native_tools.search.provider import SearchProvider
from infrastructure.native_tools.website_content import Fetcher, WebsiteContentTool
from infrastructure.schemas.lazy_schemas import LazySchemaValidator
from infrastructure.settings import Settings


def schemas() -> SchemaValidator:
    def load() -> SchemaValidator:
        from infrastructure.schemas.json_schemas import JsonSchemaValidator

        return JsonSchemaValidator()

    return LazySchemaValidator(load)


def native_tools(*native: NativeTool) -> Mapping[ToolType, NativeTool]:
    return {each.tool.type: each for each in native}


def code_execution(sources: SourceStore, store_source: StoreSource, clock: Clock) -> LazyCodeExecution:
    def load() -> Interpreter:
        from infrastructure.native_tools.code_execution import CodeExecutionTool

        return CodeExecutionTool(sources=sources, store_source=store_source, clock=clock)

    return LazyCodeExecution(load)


def website_content(egress: EgressPolicy, proxies: Proxies, extractor: ProcessTextExtractor) -> WebsiteContentTool:
    def load() -> Fetcher:
        from infrastructure.http.client import HttpClients
        from infrastructure.native_tools.page_fetcher import PageFetcher

        user_agent = f"dragoman/{version('dragoman')}"
        return PageFetcher(egress=egress, user_agent=user_agent, http=HttpClients(proxies))

    return WebsiteContentTool(open_fetcher=load, extractor=extractor)


def internet_search(settings: Settings, proxies: Proxies) -> InternetSearchTool:
    def load() -> SearchProvider:
        from infrastructure.native_tools.search.providers import open_provider

        return open_provider(settings, proxies)

    return InternetSearchTool(open_provider=load)


def displayable_tools() -> Mapping[ToolType, Tool]:
    return {tool.type: tool for tool in DISPLAYABLE_TOOLS}
