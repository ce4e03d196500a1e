"""The route of the JSON-RPC binding of A2A: an agent's address itself."""

from litestar import post
from litestar.di import NamedDependency
from litestar.response.base import ASGIResponse

from interfaces.http.a2a.calls import A2aCalls
from interfaces.http.paths import AgentPath
from interfaces.http.requests import ApiRequest


@post("/", status_code=200)
async def call_agent(request: ApiRequest, agent: AgentPath, a2a_calls: NamedDependency[A2aCalls]) -> ASGIResponse:
    """A request of JSON-RPC."""
    return await a2a_calls.rpc(request, agent)
