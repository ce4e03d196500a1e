"""MCP servers: a tool tried out under the policy of an agent, and what the calls of a server came
to."""

from datetime import timedelta

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery

from application.agents.queries import ListAgents
from application.audit.queries import ListAuditEvents
from application.gateway.calls.try_tool import TryTool, TryToolCommand
from application.mcp.queries import GetMcpServer, GetMcpServerTools
from application.system.ports import Clock
from application.tools.explain_tool import ExplainTool, ExplainToolCommand, ToolExplanation
from domain.agents.agent import Agent
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError, not_found
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.json_value import JsonObject
from domain.mcp.apps import Audience
from domain.mcp.catalog import McpToolDefinition
from domain.mcp.pinning import DefinitionState, pinned_tools
from domain.tools.names import model_facing_name
from interfaces.console.call_statistics import MOST_ENTRIES, call_sums, newest_entries
from interfaces.console.json_text import arguments_of
from interfaces.console.pages import HEADERS, Pages
from interfaces.console.questions import content_of, fields_of
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.sign_in import Form
from interfaces.console.whole_lists import all_of
from interfaces.console_paths import PATH

DAYS = 7
MAX_AGENTS = 50
"""Most agents offered: the policy of each is evaluated."""


class ServerTrial:
    """Data of a tool's form, and of the calls of a server."""

    def __init__(
        self,
        *,
        get_mcp_server: GetMcpServer,
        get_mcp_server_tools: GetMcpServerTools,
        list_agents: ListAgents,
        explain_tool: ExplainTool,
        list_audit_events: ListAuditEvents,
        clock: Clock,
    ) -> None:
        self._server = get_mcp_server
        self._tools = get_mcp_server_tools
        self._list_agents = list_agents
        self._explain = explain_tool
        self._list_audit = list_audit_events
        self._clock = clock

    async def of(self, principal: Principal, slug: str, tool: str, agent: str) -> dict[str, object]:
        """The form of an approved tool; `agent` is the id of the one chosen. Raises NOT_FOUND."""
        definition = await self.definition(principal, slug, tool)
        name = model_facing_name(slug, tool)
        explained = [await self._explained(principal, name, each) for each in await self._users(principal, slug)]
        offered = [each for each in explained if each is not None and each.agent.config.enabled][:MAX_AGENTS]
        return {
            "slug": slug,
            "tool": definition,
            "name": name,
            "fields": fields_of(definition.input_schema),
            "only_apps": Audience.MODEL not in definition.audience,
            "offered": offered,
            "chosen": next((each for each in offered if each.agent.id == agent), offered[0] if offered else None),
            "may_run": principal.may(Permission.RUNS_START),
        }

    async def definition(self, principal: Principal, slug: str, tool: str) -> McpToolDefinition:
        """The approved tool of that name, which has the server's own name. Raises NOT_FOUND."""
        catalog = (await self._tools.execute(principal=principal, server=slug)).catalog
        for each in () if catalog is None else pinned_tools(catalog):
            if each.definition.name == tool and each.state is DefinitionState.APPROVED:
                return each.definition
        raise not_found("tool", tool)

    async def calls(self, principal: Principal, slug: str) -> dict[str, object]:
        """Sums of the calls among the newest audit entries of the last days, since when these are,
        the last failure, and the agents with the server. Raises NOT_FOUND."""
        server = await self._server.execute(principal, slug)
        since = self._clock.now() - timedelta(days=DAYS)
        entries, is_bounded = await newest_entries(self._list_audit, principal, since=since)
        calls = [each for each in entries if each.server_id == server.id]
        total, by_tool = call_sums(calls)
        return {
            "slug": slug,
            "days": DAYS,
            "total": total,
            "by_tool": by_tool,
            "is_bounded": is_bounded,
            "since": entries[-1].at if is_bounded else since,
            "newest": MOST_ENTRIES,
            "failure": next((each for each in calls if each.action is AuditAction.TOOL_FAILED), None),
            "agents": await self._users(principal, slug),
        }

    async def _users(self, principal: Principal, slug: str) -> list[Agent]:
        agents = await all_of(lambda page: self._list_agents.execute(principal=principal, page=page))
        return sorted((each for each in agents if slug in each.config.mcp_servers), key=lambda each: each.config.name)

    async def _explained(self, principal: Principal, name: str, agent: Agent) -> ToolExplanation | None:
        """None if the agent does not have the tool, as where its server offers only others."""
        try:
            return await self._explain.execute(ExplainToolCommand(principal=principal, name=name, agent=agent.id))
        except ServiceError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise
            return None


@get("/servers/{slug:str}/try")
async def show_trial(
    *,
    request: ConsoleRequest,
    slug: FromPath[str],
    pages: NamedDependency[Pages],
    server_trial: NamedDependency[ServerTrial],
    get_mcp_server: NamedDependency[GetMcpServer],
    tool: FromQuery[str] = "",
    agent: FromQuery[str] = "",
) -> Response[str]:
    """Without a tool, the page of the server, where one is chosen."""
    if not tool:
        server = await get_mcp_server.execute(request.principal, slug)
        return Response("", status_code=303, headers={**HEADERS, "Location": f"{PATH}/servers/{server.config.slug}"})
    return pages.show(request, "server_trial.html", await server_trial.of(request.principal, slug, tool, agent))


@post("/servers/{slug:str}/try", status_code=200)
async def try_tool(
    *,
    request: ConsoleRequest,
    slug: FromPath[str],
    data: Form,
    pages: NamedDependency[Pages],
    server_trial: NamedDependency[ServerTrial],
    try_tool: NamedDependency[TryTool],
) -> Response[str]:
    """Call the tool, and show its result with the messages of the server."""
    principal = request.principal
    definition = await server_trial.definition(principal, slug, data.get("tool", ""))
    arguments = _arguments(definition, data)
    tried = await try_tool.execute(
        TryToolCommand(
            principal=principal,
            agent=data.get("agent", ""),
            tool=model_facing_name(slug, definition.name),
            arguments=arguments,
        )
    )
    sent: JsonObject = {"method": "tools/call", "params": {"name": definition.name, "arguments": arguments}}
    return pages.show(request, "parts/tried.html", {"tried": tried, "sent": sent})


@get("/servers/{slug:str}/calls")
async def show_calls(
    request: ConsoleRequest,
    slug: FromPath[str],
    pages: NamedDependency[Pages],
    server_trial: NamedDependency[ServerTrial],
) -> Response[str]:
    return pages.show(request, "parts/server_calls.html", await server_trial.calls(request.principal, slug))


def _arguments(definition: McpToolDefinition, data: dict[str, str]) -> JsonObject:
    """The JSON if it was entered, else the fields. Raises INVALID."""
    text = data.get("json", "").strip()
    return arguments_of(text, field="json") if text else content_of(definition.input_schema, data)
