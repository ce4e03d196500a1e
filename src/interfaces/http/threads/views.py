"""Threads and messages as JSON."""

from collections.abc import Mapping
from typing import TypedDict, cast

from domain.threads.message import Message
from domain.threads.message_json import message_to_json, timestamp
from domain.threads.thread import Quarantine, Thread


class QuarantineView(TypedDict):
    """Why a thread rejects messages and runs until it is released."""

    run_id: str
    canary_id: str
    at: str


class ThreadView(TypedDict):
    """A thread, without its messages."""

    id: str
    metadata: Mapping[str, object]
    created_at: str
    quarantine: QuarantineView | None


class MessageView(TypedDict):
    """A message; `content` holds parts of type text, image, tool_use and tool_result."""

    id: str
    role: str
    content: list[Mapping[str, object]]
    created_at: str
    run_id: str | None


class MessagePage(TypedDict):
    """A page of messages; `next_cursor` is null on the last one."""

    data: list[MessageView]
    next_cursor: str | None


class ThreadPage(TypedDict):
    """A page of threads; `next_cursor` is null on the last one."""

    data: list[ThreadView]
    next_cursor: str | None


def thread_view(thread: Thread) -> ThreadView:
    return {
        "id": thread.id,
        "metadata": thread.metadata,
        "created_at": timestamp(thread.created_at),
        "quarantine": None if thread.quarantine is None else _quarantine_view(thread.quarantine),
    }


def _quarantine_view(quarantine: Quarantine) -> QuarantineView:
    return {"run_id": quarantine.run_id, "canary_id": quarantine.canary_id, "at": timestamp(quarantine.at)}


def message_view(message: Message) -> MessageView:
    """A message as JSON, in the format of storage."""
    return cast(MessageView, message_to_json(message))
