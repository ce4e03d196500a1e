"""Routes of responses."""

from typing import Annotated, Literal

from litestar import delete, get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody, PathParameter, QueryParameter
from litestar.response.base import ASGIResponse

from interfaces.http.openai.chat import json_response
from interfaces.http.openai.errors import not_implemented
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


@get("/responses")
async def open_socket(request: ApiRequest) -> ASGIResponse:
    """Where clients of Open Responses open a WebSocket, which its servers may have."""
    raise not_implemented(
        "There are no WebSockets here, and responses are not listed. Send each response with `POST /responses`, with "
        "`stream` for its events."
    )


@post("/responses/compact", status_code=200)
async def compact_response(request: ApiRequest) -> ASGIResponse:
    """The part of Open Responses that shortens an input."""
    raise not_implemented(
        "Input is not compacted. Continue with `previous_response_id` or `conversation` and new input only: the oldest turns "
        "are left out where the model's context is full."
    )


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
