"""Caches of encoded messages and tool lists, so that a growing thread is encoded once, not once per
turn."""

from collections.abc import Callable, Sequence
from enum import IntEnum
from operator import attrgetter

from application.system.lru import LruCache
from domain.ids import MessageId
from domain.threads.message import Message, Role
from domain.threads.provider_items import ProviderItems
from domain.tools.tool import Tool

DEFAULT_MAX_BYTES = 32 * 1024 * 1024
_MAX_TOOL_LISTS = 64


class Form(IntEnum):
    """How a message is encoded.

    - `NEUTRAL`: from its content.
    - `AS_IT_CAME`: from the provider's items. A tool message then has the provider's call ids.
    - `WITHOUT_REASONING`: from the items, without reasoning that the provider does not want back.
    - `WITH_PLACEHOLDER`: from its content, with a placeholder for reasoning that the provider
      requires.
    - `WITH_SIGNATURE`: from its content, with a placeholder for a signature that the provider
      requires.
    """

    NEUTRAL = 0
    AS_IT_CAME = 1
    WITHOUT_REASONING = 2
    WITH_PLACEHOLDER = 3
    WITH_SIGNATURE = 4


_id_of: Callable[[Message], MessageId] = attrgetter("id")
_items_of: Callable[[Message], ProviderItems | None] = attrgetter("items")
Encode = Callable[[Message, Form, ProviderItems | None], bytes]
"""Encodes a message. The items are those of a model's message, or for a tool message those of the
message with its calls; None in the neutral form."""


class MessageCache:
    """LRU cache of encoded messages by id and form. Messages are immutable, so entries stay valid.
    Not thread-safe."""

    def __init__(self, encode: Encode, *, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self._encode = encode
        self._entries: LruCache[MessageId | tuple[MessageId, int], bytes] = LruCache(max_bytes, weight=len)

    def encoded(
        self,
        messages: Sequence[Message],
        *,
        origin: str = "",
        neutral: Form = Form.NEUTRAL,
        reasoning_in_loop: bool = False,
    ) -> list[bytes]:
        """The bytes of each message, in order, without those of empty encoding.

        - Items of `origin` are sent as they came.
        - The model's other messages have the form `neutral`.
        - `reasoning_in_loop`: before the last message of the user, neither has reasoning.
        """
        if neutral is Form.NEUTRAL and not any(map(_items_of, messages)):
            return self._neutral(messages)
        entries = self._entries
        encoded: list[bytes] = []
        items: ProviderItems | None = None
        loop_start: int | None = None
        key: MessageId | tuple[MessageId, int]
        for index, message in enumerate(messages):
            if message.role is not Role.TOOL:
                items = message.items
                if items is not None and items.origin != origin:
                    items = None
            if items is None and (neutral is Form.NEUTRAL or message.role is not Role.ASSISTANT):
                form, key = Form.NEUTRAL, message.id
            else:
                form = neutral if items is None else Form.AS_IT_CAME
                if reasoning_in_loop:
                    loop_start = _loop_start(messages) if loop_start is None else loop_start
                    form = form if index >= loop_start else _BEFORE_LOOP[form]
                key = (message.id, form) if form is not Form.NEUTRAL else message.id
            data = entries.get(key)
            if data is None:
                data = self._encode(message, form, items)
                entries.put(key, data)
            if data:
                encoded.append(data)
        return encoded

    def _neutral(self, messages: Sequence[Message]) -> list[bytes]:
        """As `encoded`, for messages without items: every turn looks up all messages before it, so
        one costs little."""
        found = list(map(self._entries.get, map(_id_of, messages)))
        if None in found:
            for index in range(found.index(None), len(found)):  # in most requests the last messages
                if found[index] is None:
                    data = found[index] = self._encode(messages[index], Form.NEUTRAL, None)
                    self._entries.put(messages[index].id, data)
        return list(filter(None, found))


_BEFORE_LOOP = {
    Form.AS_IT_CAME: Form.WITHOUT_REASONING,
    Form.WITH_PLACEHOLDER: Form.NEUTRAL,
    Form.WITH_SIGNATURE: Form.WITH_SIGNATURE,
}


def _loop_start(messages: Sequence[Message]) -> int:
    """The index after the last message of the user."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role is Role.USER:
            return index + 1
    return 0


class ToolListCache:
    """Encoded tool lists, keyed by identity: a run passes the same tuple each turn."""

    def __init__(self, encode: Callable[[tuple[Tool, ...]], bytes]) -> None:
        self._encode = encode
        self._entries: LruCache[int, tuple[tuple[Tool, ...], bytes]] = LruCache(_MAX_TOOL_LISTS)

    def encoded(self, tools: tuple[Tool, ...]) -> bytes:
        entry = self._entries.get(id(tools))
        if entry is not None and entry[0] is tools:  # the entry keeps the tuple alive, so no other tuple has its id
            return entry[1]
        data = self._encode(tools)
        self._entries.put(id(tools), (tools, data))
        return data
