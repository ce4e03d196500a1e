"""Conversations are threads."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, cast

from pydantic import Field

from application.threads.append_message import AppendMessage, AppendMessageCommand
from application.threads.create_thread import CreateThread, CreateThreadCommand
from application.threads.delete_thread import DeleteThread, DeleteThreadCommand
from application.threads.queries import GetThread, ListMessages
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.ids import ThreadId
from domain.json_value import JsonObject
from domain.threads.message import Message, Role, TextContent, UserContent
from domain.threads.thread import Thread
from interfaces.http.openai.bodies import Metadata, OpenAiBody
from interfaces.http.openai.chat_schemas import ChatMessage
from interfaces.http.openai.content_parts import content_of, text_of
from interfaces.http.openai.conversation_items import conversation_items, items_of
from interfaces.http.openai.errors import unsupported
from interfaces.http.openai.lists import list_page
from interfaces.http.openai.response_ids import conversation_id, named, thread_of
from interfaces.http.openai.response_input import read_input
from interfaces.http.threads.stored_messages import stored_messages

Items = Annotated[list[dict[str, object]], Field(max_length=20)]


class ConversationBody(OpenAiBody):
    items: Items | None = None
    metadata: Metadata = Field(default=None, max_length=16)


class ItemsBody(OpenAiBody):
    items: Items


class Conversations:
    """Rules:
    - A conversation is a thread, also one created by other APIs; its items are the thread's
      messages and calls.
    - Texts of users and of the assistant are added, images and files of users. Only runs add calls.
    """

    def __init__(
        self,
        *,
        create_thread: CreateThread,
        get_thread: GetThread,
        delete_thread: DeleteThread,
        list_messages: ListMessages,
        append_message: AppendMessage,
    ) -> None:
        self._create_thread = create_thread
        self._get_thread = get_thread
        self._delete_thread = delete_thread
        self._list_messages = list_messages
        self._append_message = append_message

    async def create(self, principal: Principal, body: ConversationBody) -> JsonObject:
        """Raises FORBIDDEN, INVALID."""
        said = _said(body.items or [])
        metadata = cast(JsonObject, dict(body.metadata or {}))
        thread = await self._create_thread.execute(CreateThreadCommand(principal=principal, metadata=metadata))
        await self._append(principal, thread.id, said)
        return _view(thread)

    async def get(self, principal: Principal, conversation: str) -> JsonObject:
        """Raises NOT_FOUND."""
        with named("conversation", conversation):
            return _view(await self._get_thread.execute(principal, thread_of(conversation)))

    async def delete(self, principal: Principal, conversation: str) -> JsonObject:
        """Raises NOT_FOUND, FORBIDDEN, CONFLICT `thread_busy`."""
        with named("conversation", conversation):
            await self._delete_thread.execute(
                DeleteThreadCommand(principal=principal, thread_id=thread_of(conversation))
            )
        return {"id": conversation, "object": "conversation.deleted", "deleted": True}

    async def add(self, principal: Principal, conversation: str, body: ItemsBody) -> list[JsonObject]:
        """The new items. Raises NOT_FOUND, FORBIDDEN, INVALID, CONFLICT `thread_busy`."""
        with named("conversation", conversation):
            return conversation_items(await self._append(principal, thread_of(conversation), _said(body.items)))

    async def items(
        self, principal: Principal, conversation: str, *, limit: int, order: str, after: str | None
    ) -> JsonObject:
        """A page. Raises NOT_FOUND `conversation_not_found`, `item_not_found`."""
        with named("conversation", conversation):
            return await list_page(self._stored(principal, conversation), limit=limit, order=order, after=after)

    async def item(self, principal: Principal, conversation: str, item_id: str) -> JsonObject:
        """Raises NOT_FOUND `item_not_found`."""
        with named("conversation", conversation):
            async with aclosing(self._stored(principal, conversation)) as items:
                async for item in items:
                    if item["id"] == item_id:
                        return item
        raise not_found("item", item_id)

    def _stored(self, principal: Principal, conversation: str) -> AsyncGenerator[JsonObject, None]:
        """All items, oldest first."""
        return items_of(stored_messages(self._list_messages, principal, thread_of(conversation)))

    async def _append(
        self, principal: Principal, thread_id: ThreadId, said: list[tuple[Role, tuple[UserContent, ...]]]
    ) -> list[Message]:
        return [
            await self._append_message.execute(
                AppendMessageCommand(principal=principal, thread_id=thread_id, role=role, content=content)
            )
            for role, content in said
        ]


def _said(items: Items) -> list[tuple[Role, tuple[UserContent, ...]]]:
    if not items:
        return []
    read = read_input(items, name="items")
    if read.approvals or any(map(_is_no_text, read.messages)):
        raise unsupported("items", "Messages of the user and of the assistant are added; only runs add calls.")
    with read.located():
        return [_content(index, message) for index, message in enumerate(read.messages)]


def _is_no_text(message: ChatMessage) -> bool:
    return message.role not in ("user", "assistant") or bool(message.tool_calls)


def _content(index: int, message: ChatMessage) -> tuple[Role, tuple[UserContent, ...]]:
    path = f"messages.{index}.content"
    if message.role == "user":
        return Role.USER, content_of(message.content, path)
    return Role.ASSISTANT, (TextContent(text=text_of(message.content, path)),)


def _view(thread: Thread) -> JsonObject:
    return {
        "id": conversation_id(thread.id),
        "object": "conversation",
        "created_at": int(thread.created_at.timestamp()),
        "metadata": thread.metadata,
    }
