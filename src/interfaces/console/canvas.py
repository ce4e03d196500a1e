"""The canvas of workflows as data for its script: nodes, edges, places, and what may be chosen in
forms."""

import json

from application.agents.queries import ListAgents
from application.identity.queries import ListTeams
from application.mcp.queries import ListMcpServers
from application.system.pages import MAX_PAGE_SIZE, PageRequest
from domain.identity.api_key import Principal
from domain.json_value import JsonObject
from domain.workflows.definition_json import edge_to_json, node_to_json
from domain.workflows.execution import NodeRun
from domain.workflows.graph import WorkflowDefinition
from domain.workflows.run import WorkflowRun
from interfaces.console.layout import COLUMN_GAP, MARGIN, NODE_HEIGHT, NODE_WIDTH, ROW_GAP, layout
from interfaces.console.node_forms import FORMS
from interfaces.console.teams import team_choices

_NAMED = PageRequest(limit=MAX_PAGE_SIZE)


class CanvasChoices:
    """Names that the forms of nodes offer: the newest agents and MCP servers. And the groups that
    may have the workflow."""

    def __init__(self, *, list_agents: ListAgents, list_mcp_servers: ListMcpServers, list_teams: ListTeams) -> None:
        self._agents = list_agents
        self._servers = list_mcp_servers
        self._teams = list_teams

    async def of(self, principal: Principal) -> JsonObject:
        agents = await self._agents.execute(principal=principal, page=_NAMED)
        servers = await self._servers.execute(principal=principal, page=_NAMED)
        return {
            "agents": [*sorted(each.config.name for each in agents.items)],
            "servers": [*sorted(each.config.slug for each in servers.items)],
        }

    async def teams(self, principal: Principal, chosen: str | None) -> list[tuple[str, str]]:
        return team_choices(await self._teams.execute(principal), chosen)


def forms_text() -> str:
    """The forms of all kinds of nodes, as JSON."""
    return json.dumps([form.shown() for form in FORMS])


def node_titles() -> dict[tuple[str, str], str]:
    """The title of each kind of node in each mode."""
    return {(form.kind.value, form.mode.value): form.title for form in FORMS}


def graph_text(definition: WorkflowDefinition) -> str:
    """Nodes with titles, edges and places, as JSON."""
    titles = node_titles()
    nodes = [
        {**node_to_json(node), "title": titles.get((node.kind, node.mode), node.kind)} for node in definition.nodes
    ]
    edges = [edge_to_json(edge) for edge in definition.edges]
    return json.dumps({"nodes": nodes, "edges": edges, "places": places(definition)})


def marks_text(definition: WorkflowDefinition, run: WorkflowRun) -> str:
    """The state of each node in a run, and the way out that it took, as JSON."""
    states = {node.id: run.nodes.get(node.id, NodeRun(node_id=node.id)) for node in definition.nodes}
    return json.dumps(
        {node_id: {"status": state.status.value, "handle": state.handle} for node_id, state in states.items()}
    )


def places(definition: WorkflowDefinition) -> JsonObject:
    """Column and row of each node with a unique id, as the layout has them."""
    return {
        definition.nodes[at].id: [
            (x - MARGIN) / (NODE_WIDTH + COLUMN_GAP),
            round((y - MARGIN) / (NODE_HEIGHT + ROW_GAP), 3),
        ]
        for at, (x, y) in layout(definition).corners.items()
    }
