"""Routes of responses."""

from typing import Annotated, Literal

from litestar import delete, get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody, PathParameter, QueryParameter
from litestar.response.base import ASGIResponse

from interfaces.http.openai.chat import json_response
from interfaces.http.openai.lists import list_view
from interfaces.http.openai.response_schemas import ResponseBody
from interfaces.http.openai.responses import Responses
from interfaces.http.openai.routes import is_repeated_request
from interfaces.http.requests import ApiRequest
from interfaces.request_notes import notes_of

ResponsePath = Annotated[str, PathParameter(description="The id of a response.")]


@post("/responses", status_code=200)
async def create_response(
    request: ApiRequest, data: JSONBody[ResponseBody], responses: NamedDependency[Responses]
) -> ASGIResponse:
    """Requires the role runner."""
    notes_of(request.scope).lasts_on_purpose = True
    return await responses.create(request.principal, data, request.receive, is_repeated=is_repeated_request(request))


@get("/responses/{response_id:str}")
async def get_response(
    *,
    request: ApiRequest,
    response_id: ResponsePath,
    responses: NamedDependency[Responses],
    stream: Annotated[bool, QueryParameter(description="Send its events.")] = False,
    starting_after: Annotated[int, QueryParameter(ge=-1, le=2**53, description="The number to start after.")] = -1,
) -> ASGIResponse:
    """As it is now, or its events."""
    if stream:
        return await responses.stream(request.principal, response_id, starting_after=starting_after)
    return json_response(await responses.get(request.principal, response_id))


@post("/responses/{response_id:str}/cancel", status_code=200)
async def cancel_response(
    request: ApiRequest, response_id: ResponsePath, responses: NamedDependency[Responses]
) -> ASGIResponse:
    """A runner cancels its own, an operator any."""
    return json_response(await responses.cancel(request.principal, response_id))


@delete("/responses/{response_id:str}", status_code=200)
async def delete_response(
    request: ApiRequest, response_id: ResponsePath, responses: NamedDependency[Responses]
) -> ASGIResponse:
    """With its thread, if that has nothing else."""
    return json_response(await responses.delete(request.principal, response_id))


@get("/responses/{response_id:str}/input_items")
async def list_input_items(
    *,
    request: ApiRequest,
    response_id: ResponsePath,
    responses: NamedDependency[Responses],
    limit: Annotated[int, QueryParameter(ge=1, le=100)] = 20,
    order: Annotated[Literal["asc", "desc"], QueryParameter()] = "desc",
    after: Annotated[str | None, QueryParameter()] = None,
) -> ASGIResponse:
    """What the response began with."""
    items = await responses.inputs(request.principal, response_id)
    return json_response(list_view(items, limit=limit, order=order, after=after))
