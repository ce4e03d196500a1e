"""Routes of conversations."""

from typing import Annotated, Literal

from litestar import delete, get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody, PathParameter, QueryParameter
from litestar.response.base import ASGIResponse

from interfaces.http.openai.chat import json_response
from interfaces.http.openai.conversations import ConversationBody, Conversations, ItemsBody
from interfaces.http.openai.lists import list_view
from interfaces.http.requests import ApiRequest

ConversationPath = Annotated[str, PathParameter(description="The id of a conversation.")]
ItemPath = Annotated[str, PathParameter(description="The id of an item.")]
_MOST_ITEMS = 100


@post("/conversations", status_code=200)
async def create_conversation(
    request: ApiRequest, conversations: NamedDependency[Conversations], data: JSONBody[ConversationBody | None] = None
) -> ASGIResponse:
    """Requires the role runner."""
    return json_response(await conversations.create(request.principal, data or ConversationBody()))


@get("/conversations/{conversation:str}")
async def get_conversation(
    request: ApiRequest, conversation: ConversationPath, conversations: NamedDependency[Conversations]
) -> ASGIResponse:
    """Without its items."""
    return json_response(await conversations.get(request.principal, conversation))


@delete("/conversations/{conversation:str}", status_code=200)
async def delete_conversation(
    request: ApiRequest, conversation: ConversationPath, conversations: NamedDependency[Conversations]
) -> ASGIResponse:
    """With its runs."""
    return json_response(await conversations.delete(request.principal, conversation))


@get("/conversations/{conversation:str}/items")
async def list_conversation_items(
    *,
    request: ApiRequest,
    conversation: ConversationPath,
    conversations: NamedDependency[Conversations],
    limit: Annotated[int, QueryParameter(ge=1, le=_MOST_ITEMS)] = 20,
    order: Annotated[Literal["asc", "desc"], QueryParameter()] = "desc",
    after: Annotated[str | None, QueryParameter()] = None,
) -> ASGIResponse:
    """Messages and calls."""
    page = await conversations.items(request.principal, conversation, limit=limit, order=order, after=after)
    return json_response(page)


@post("/conversations/{conversation:str}/items", status_code=200)
async def add_conversation_items(
    request: ApiRequest,
    conversation: ConversationPath,
    data: JSONBody[ItemsBody],
    conversations: NamedDependency[Conversations],
) -> ASGIResponse:
    """Requires the role runner."""
    items = await conversations.add(request.principal, conversation, data)
    return json_response(list_view(items, limit=_MOST_ITEMS, order="asc", after=None))


@get("/conversations/{conversation:str}/items/{item:str}")
async def get_conversation_item(
    request: ApiRequest, conversation: ConversationPath, item: ItemPath, conversations: NamedDependency[Conversations]
) -> ASGIResponse:
    """One of its items."""
    return json_response(await conversations.item(request.principal, conversation, item))
