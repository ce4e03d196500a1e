"""Providers of tools: native ones, those of MCP servers and workflow runs, policies, and execution."""

from collections.abc import Mapping

from dependency_injector import containers, providers

from application.policy.policy_checks import PolicyChecks
from application.tools.agents_as_tools import AgentsAsTools
from application.tools.check_tool_call import CheckToolCall
from application.tools.execute_mcp_tool import ExecuteMcpTool
from application.tools.execute_tool import ExecuteTool
from application.tools.explain_agent import ExplainAgent
from application.tools.explain_tool import ExplainTool
from application.tools.list_tools import ListTools
from application.tools.ports import NativeTool
from application.tools.review_tool_policies import ReviewToolPolicies
from application.tools.toolset_builder import ToolsetBuilder
from application.tools.unrestricted_toolsets import UnrestrictedToolsets
from application.tools.wired_tools import ComponentTools, WiredTools
from application.workflows.http_request import HttpRequests
from application.workflows.ports import WorkflowToolStore
from application.workflows.stored_wired_tools import CallComponent, StoredWiredTools
from domain.tools.capabilities import ToolType
from infrastructure.assembly import native_tools as native_tools_assembly
from infrastructure.assembly import workflows as workflows_assembly
from infrastructure.assembly.workflows import LazyExpressions, LazyHttpCaller
from infrastructure.containers.mcp_servers import McpServers
from infrastructure.containers.platform import Platform
from infrastructure.containers.storage import Storage
from infrastructure.containers.threads import Threads
from infrastructure.native_tools.internet_search import InternetSearchTool
from infrastructure.native_tools.lazy_code_execution import LazyCodeExecution
from infrastructure.native_tools.source_query import SourceQueryTool
from infrastructure.native_tools.website_content import WebsiteContentTool
from infrastructure.persistence.workflows.tool_store import SqlWorkflowToolStore


class Tools(containers.DeclarativeContainer):
    code_execution: providers.Provider[LazyCodeExecution] = providers.Singleton(
        native_tools_assembly.code_execution, Storage.sources, Threads.store_source, Platform.clock
    )
    website_content: providers.Provider[WebsiteContentTool] = providers.Singleton(
        native_tools_assembly.website_content, Platform.egress_policy, Platform.proxies, Threads.text_extractor
    )
    internet_search: providers.Provider[InternetSearchTool] = providers.Singleton(
        native_tools_assembly.internet_search, Platform.settings, Platform.proxies
    )
    native_tools: providers.Provider[Mapping[ToolType, NativeTool]] = providers.Singleton(
        native_tools_assembly.native_tools,
        code_execution,
        website_content,
        internet_search,
        providers.Singleton(SourceQueryTool, search_sources=Threads.search_sources),
    )
    # Tools of workflow runs, which replace the tools of their agents.
    expressions: providers.Provider[LazyExpressions] = providers.Singleton(workflows_assembly.expressions)
    workflow_http: providers.Provider[LazyHttpCaller] = providers.Singleton(
        workflows_assembly.http_caller, Platform.egress_policy, Platform.proxies
    )
    workflow_requests: providers.Provider[HttpRequests] = providers.Singleton(
        HttpRequests, caller=workflow_http, expressions=expressions
    )
    workflow_tools: providers.Provider[WorkflowToolStore] = providers.Singleton(
        SqlWorkflowToolStore, database=Storage.database
    )
    wired_tools: providers.Provider[WiredTools] = providers.Singleton(
        StoredWiredTools, tools=workflow_tools, box=Platform.secret_box
    )
    component_tools: providers.Provider[ComponentTools] = providers.Singleton(
        CallComponent, requests=workflow_requests, box=Platform.secret_box
    )
    toolset_builder: providers.Provider[ToolsetBuilder] = providers.Singleton(
        ToolsetBuilder,
        native_tools=native_tools,
        displayable_tools=providers.Singleton(native_tools_assembly.displayable_tools),
        servers=Storage.servers,
        catalogs=McpServers.catalog_reader,
        connections=McpServers.connections,
        switch=McpServers.mcp_switch,
        organizations=Storage.organizations,
        search_threshold=Platform.settings.provided.tool_search_threshold,
        wired_tools=wired_tools,
    )
    check_tool_call: providers.Provider[CheckToolCall] = providers.Singleton(CheckToolCall, schemas=Platform.schemas)
    execute_mcp_tool: providers.Provider[ExecuteMcpTool] = providers.Singleton(
        ExecuteMcpTool,
        servers=Storage.servers,
        catalogs=Storage.catalogs,
        catalog_updater=McpServers.catalog_updater,
        connections=McpServers.connections,
        schemas=Platform.schemas,
        switch=McpServers.mcp_switch,
        slow_ms=Platform.settings.provided.log_slow_ms,
    )
    execute_tool: providers.Provider[ExecuteTool] = providers.Singleton(
        ExecuteTool, native_tools=native_tools, execute_mcp_tool=execute_mcp_tool, components=component_tools
    )
    list_tools: providers.Provider[ListTools] = providers.Singleton(
        ListTools,
        catalog=toolset_builder,
        agents=Storage.agents,
        servers=Storage.servers,
        catalogs=Storage.catalogs,
        connections=McpServers.connections,
        clock=Platform.clock,
    )
    agents_as_tools: providers.Provider[AgentsAsTools] = providers.Singleton(
        AgentsAsTools, agents=Storage.agents, organizations=Storage.organizations
    )
    unrestricted_toolsets: providers.Provider[UnrestrictedToolsets] = providers.Singleton(
        UnrestrictedToolsets, catalog=toolset_builder, servers=Storage.servers, agents_as_tools=agents_as_tools
    )
    explain_tool: providers.Provider[ExplainTool] = providers.Singleton(
        ExplainTool,
        catalog=toolset_builder,
        unrestricted_toolsets=unrestricted_toolsets,
        agents=Storage.agents,
        organizations=Storage.organizations,
    )
    explain_agent: providers.Provider[ExplainAgent] = providers.Singleton(
        ExplainAgent, unrestricted_toolsets=unrestricted_toolsets, organizations=Storage.organizations
    )
    policy_checks: providers.Provider[PolicyChecks] = providers.Singleton(PolicyChecks, schemas=Platform.schemas)
    review_tool_policies: providers.Provider[ReviewToolPolicies] = providers.Singleton(
        ReviewToolPolicies, unrestricted_toolsets=unrestricted_toolsets
    )
