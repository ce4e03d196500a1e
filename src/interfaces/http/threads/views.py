"""Threads and messages as JSON."""

from collections.abc import Mapping
from typing import Annotated, Literal, TypedDict, cast

from application.threads.ports import Conversation
from domain.threads.message import Message
from domain.threads.message_json import message_to_json, timestamp
from domain.threads.thread import Quarantine, Thread
from interfaces.http.threads.content_views import ContentView
from interfaces.http.view_fields import CreatedAt, Items, NextCursor, Timestamp


class QuarantineView(TypedDict):
    """Why a thread rejects messages and runs until it is released."""

    run_id: Annotated[str, "The run that the canary token halted."]
    canary_id: Annotated[str, "Id of the canary token."]
    at: Annotated[Timestamp, "Time of the quarantine."]


class ForkView(TypedDict):
    """Where a thread was forked from another one, which may have been deleted since."""

    thread_id: Annotated[str, "The thread from which messages were copied."]
    before_message_id: Annotated[
        str | None, "The message of that thread which the fork replaces; null if all messages were copied."
    ]


class ThreadView(TypedDict):
    """A thread, without its messages."""

    id: Annotated[str, "Id of the thread."]
    metadata: Annotated[Mapping[str, object], "Data of the client; Dragoman does not use it."]
    created_at: CreatedAt
    quarantine: Annotated[
        QuarantineView | None, "Why it rejects messages and runs until it is released; null if it does not."
    ]
    forked_from: Annotated[ForkView | None, "The thread that it was forked from; null if it is no fork."]
    team: Annotated[
        str | None,
        "Name of the group that it belongs to, with its runs: others do not see them. Null: it belongs to the organization, until an "
        "agent of a group runs on it.",
    ]


class ListedThreadView(ThreadView):
    """A thread in a list."""

    opening: Annotated[str | None, "Beginning of its first message; null without a text."]


class MessageView(TypedDict):
    """A message; `content` holds parts of type text, image, file, tool_use and tool_result."""

    id: Annotated[str, "Id of the message."]
    role: Annotated[
        Literal["system", "user", "assistant", "tool"],
        "Author of the message. `tool` carries the tool results of one turn.",
    ]
    content: Annotated[list[ContentView], "Parts of the message."]
    created_at: CreatedAt
    run_id: Annotated[str | None, "The run that wrote it; null if none did."]


class MessagePage(TypedDict):
    """A page of messages; `next_cursor` is null on the last one."""

    data: Items[MessageView]
    next_cursor: NextCursor


class ThreadPage(TypedDict):
    """A page of threads; `next_cursor` is null on the last one."""

    data: Items[ListedThreadView]
    next_cursor: NextCursor


def thread_view(thread: Thread) -> ThreadView:
    return {
        "id": thread.id,
        "metadata": thread.metadata,
        "created_at": timestamp(thread.created_at),
        "quarantine": None if thread.quarantine is None else _quarantine_view(thread.quarantine),
        "forked_from": None
        if thread.forked_from is None
        else {"thread_id": thread.forked_from.thread_id, "before_message_id": thread.forked_from.before},
        "team": thread.team,
    }


def listed_thread_view(conversation: Conversation) -> ListedThreadView:
    """A thread with its first words as JSON."""
    return {**thread_view(conversation.thread), "opening": conversation.opening}


def _quarantine_view(quarantine: Quarantine) -> QuarantineView:
    return {"run_id": quarantine.run_id, "canary_id": quarantine.canary_id, "at": timestamp(quarantine.at)}


def message_view(message: Message) -> MessageView:
    """A message as JSON, in the format of storage."""
    return cast(MessageView, message_to_json(message))
