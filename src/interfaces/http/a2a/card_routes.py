"""The agent card, which clients read before they have a key."""

from litestar import get
from litestar.di import NamedDependency
from litestar.response.base import ASGIResponse

from application.identity.authenticate import Authenticate, AuthenticateCommand
from interfaces.http.a2a.cards import AgentCards, card_response
from interfaces.http.auth import bearer_token
from interfaces.http.paths import AgentPath
from interfaces.http.requests import ApiRequest


@get("/.well-known/agent-card.json")
async def agent_card(
    request: ApiRequest,
    agent: AgentPath,
    agent_cards: NamedDependency[AgentCards],
    authenticate: NamedDependency[Authenticate],
) -> ASGIResponse:
    """The public card; with a key that of the agent."""
    if "authorization" not in request.headers:
        return card_response(await agent_cards.public(agent), request.headers, is_public=True)
    token = bearer_token(request.scope["headers"])
    principal = await authenticate.execute(AuthenticateCommand(token=token))
    return card_response(await agent_cards.extended(principal, agent), request.headers, is_public=False)


@get("/.well-known/jwks.json")
async def card_keys(request: ApiRequest, agent: AgentPath, agent_cards: NamedDependency[AgentCards]) -> ASGIResponse:
    """The keys that sign cards; the same for every agent."""
    return card_response(await agent_cards.keys(), request.headers, is_public=True)
