"""Agents as the models of OpenAI's protocols."""

from typing import TypedDict

from application.agents.queries import ListAgents
from application.system.pages import MAX_PAGE_SIZE, PageRequest
from domain.agents.agent import Agent
from domain.identity.api_key import Principal


class ModelView(TypedDict):
    id: str
    object: str
    created: int
    owned_by: str
    shutdown_date: None


class ModelListView(TypedDict):
    object: str
    data: list[ModelView]


def model_view(agent: Agent) -> ModelView:
    return {
        "id": agent.config.name,
        "object": "model",
        "created": int(agent.created_at.timestamp()),
        "owned_by": "dragoman",
        "shutdown_date": None,
    }


async def model_list(list_agents: ListAgents, principal: Principal) -> ModelListView:
    """All enabled agents: the protocol has no pages."""
    found: list[ModelView] = []
    cursor = None
    while True:
        page = await list_agents.execute(principal, PageRequest(limit=MAX_PAGE_SIZE, cursor=cursor))
        found += [model_view(agent) for agent in page.items if agent.config.enabled]
        cursor = page.next_cursor
        if cursor is None:
            return {"object": "list", "data": found}
