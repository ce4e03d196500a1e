"""Routes of `/openai/v1`. They are not in the OpenAPI document: their shapes are OpenAI's."""

from litestar import get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody
from litestar.response.base import ASGIResponse

from application.agents.queries import GetAgent, ListAgents
from interfaces.http.openai.chat import ChatCompletions
from interfaces.http.openai.chat_schemas import ChatBody
from interfaces.http.openai.models import ModelListView, ModelView, model_list, model_view
from interfaces.http.paths import AgentPath
from interfaces.http.requests import ApiRequest
from interfaces.request_notes import notes_of


@get("/models")
async def list_models(request: ApiRequest, list_agents: NamedDependency[ListAgents]) -> ModelListView:
    """The enabled agents."""
    return await model_list(list_agents, request.principal)


@get("/models/{agent:str}")
async def get_model(request: ApiRequest, agent: AgentPath, get_agent: NamedDependency[GetAgent]) -> ModelView:
    """An agent by id or name."""
    return model_view(await get_agent.execute(request.principal, agent))


@post("/chat/completions", status_code=200)
async def create_chat_completion(
    request: ApiRequest, data: JSONBody[ChatBody], chat_completions: NamedDependency[ChatCompletions]
) -> ASGIResponse:
    """Requires the role runner."""
    is_repeated = is_repeated_request(request)
    if data.stream:
        return await chat_completions.stream(request.principal, data, is_repeated=is_repeated)
    notes_of(request.scope).lasts_on_purpose = True
    return await chat_completions.whole(request.principal, data, request.receive, is_repeated=is_repeated)


def is_repeated_request(request: ApiRequest) -> bool:
    """Whether the client's library sends the request again by itself, as OpenAI's libraries say."""
    return request.headers.get("x-stainless-retry-count", "0") not in ("", "0")
