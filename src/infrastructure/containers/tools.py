"""Providers of tools: native ones, those of MCP servers and workflow runs, policies, and
execution."""

from collections.abc import Mapping

from dependency_injector import containers, providers

from application.identity.acting_people import ActingPeople
from application.identity.read_circumstances import ReadCircumstances
from application.policy.policy_checks import PolicyChecks
from application.tools.agents_as_tools import AgentsAsTools
from application.tools.ask_for_account import AskForAccount
from application.tools.check_tool_call import CheckToolCall
from application.tools.execute_mcp_tool import ExecuteMcpTool
from application.tools.explain_agent import ExplainAgent
from application.tools.explain_tool import ExplainTool
from application.tools.explained_people import ExplainedPeople
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
from infrastructure.containers.wiring import Singletons
from infrastructure.native_tools.internet_search import InternetSearchTool
from infrastructure.native_tools.lazy_code_execution import LazyCodeExecution
from infrastructure.native_tools.source_query import SourceQueryTool
from infrastructure.native_tools.website_content import WebsiteContentTool
from infrastructure.persistence.workflows.tool_store import SqlWorkflowToolStore

singleton = Singletons(Platform, Storage)


class Tools(containers.DeclarativeContainer):
    code_execution: providers.Provider[LazyCodeExecution] = singleton(
        native_tools_assembly.code_execution, Storage.sources, Threads.store_source, Platform.clock
    )
    website_content: providers.Provider[WebsiteContentTool] = singleton(
        native_tools_assembly.website_content, Platform.egress_policy, Platform.proxies, Threads.text_extractor
    )
    internet_search: providers.Provider[InternetSearchTool] = singleton(
        native_tools_assembly.internet_search, Platform.settings, Platform.proxies
    )
    native_tools: providers.Provider[Mapping[ToolType, NativeTool]] = singleton(
        native_tools_assembly.native_tools,
        code_execution,
        website_content,
        internet_search,
        singleton(SourceQueryTool, search_sources=Threads.search_sources),
    )
    # Tools of workflow runs, which replace the tools of their agents.
    expressions: providers.Provider[LazyExpressions] = singleton(workflows_assembly.expressions)
    workflow_http: providers.Provider[LazyHttpCaller] = singleton(
        workflows_assembly.http_caller, Platform.egress_policy, Platform.proxies
    )
    workflow_requests = singleton(HttpRequests, caller=workflow_http, expressions=expressions)
    workflow_tools: providers.Provider[WorkflowToolStore] = singleton(SqlWorkflowToolStore)
    wired_tools: providers.Provider[WiredTools] = singleton(
        StoredWiredTools, tools=workflow_tools, box=Platform.secret_box
    )
    component_tools: providers.Provider[ComponentTools] = singleton(
        CallComponent, requests=workflow_requests, box=Platform.secret_box
    )
    acting_people = singleton(ActingPeople, memberships=Storage.organization_groups)
    circumstances = singleton(ReadCircumstances, people=acting_people)
    toolset_builder = singleton(
        ToolsetBuilder,
        circumstances=circumstances,
        native_tools=native_tools,
        displayable_tools=singleton(native_tools_assembly.displayable_tools),
        catalogs=McpServers.catalog_reader,
        connections=McpServers.connections,
        switch=McpServers.mcp_switch,
        search_threshold=Platform.settings.provided.tool_search_threshold,
        wired_tools=wired_tools,
    )
    check_tool_call = singleton(CheckToolCall)
    execute_mcp_tool = singleton(
        ExecuteMcpTool,
        catalog_updater=McpServers.catalog_updater,
        connections=McpServers.connections,
        switch=McpServers.mcp_switch,
        accounts=singleton(AskForAccount, address=Platform.public_address, authorizer=McpServers.accounts),
        slow_ms=Platform.settings.provided.log_slow_ms,
    )
    list_tools = singleton(ListTools, catalog=toolset_builder, connections=McpServers.connections)
    agents_as_tools = singleton(AgentsAsTools)
    unrestricted_toolsets = singleton(UnrestrictedToolsets, catalog=toolset_builder, agents_as_tools=agents_as_tools)
    explained_people = singleton(ExplainedPeople)
    explain_tool = singleton(
        ExplainTool,
        catalog=toolset_builder,
        unrestricted_toolsets=unrestricted_toolsets,
        circumstances=circumstances,
        people=explained_people,
    )
    explain_agent = singleton(
        ExplainAgent,
        unrestricted_toolsets=unrestricted_toolsets,
        circumstances=circumstances,
        people=explained_people,
    )
    policy_checks = singleton(PolicyChecks)
    review_tool_policies = singleton(
        ReviewToolPolicies,
        unrestricted_toolsets=unrestricted_toolsets,
        memberships=Storage.organization_groups,
        known_users=Storage.organization_groups,
    )
