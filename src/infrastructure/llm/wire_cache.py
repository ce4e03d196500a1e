"""What has been encoded for a wire, kept so that a growing thread is encoded once and not once per turn."""

from collections.abc import Callable, Iterable

from application.system.lru import LruCache
from domain.ids import MessageId
from domain.threads.message import Message
from domain.tools.tool import Tool

DEFAULT_MAX_BYTES = 32 * 1024 * 1024
_MAX_TOOL_LISTS = 64


class MessageCache:
    """The wire bytes of messages by id, least recently used first out. Messages never change, so nothing goes stale.

    Not for several threads.
    """

    def __init__(self, encode: Callable[[Message], bytes], *, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self._encode = encode
        self._entries: LruCache[MessageId, bytes] = LruCache(max_bytes, weight=len)

    def encoded(self, messages: Iterable[Message]) -> list[bytes]:
        """Each message's bytes, in order; those that have none on this wire are left out."""
        entries = self._entries
        encoded: list[bytes] = []
        for message in messages:
            data = entries.get(message.id)
            if data is None:
                data = self._encode(message)
                entries.put(message.id, data)
            if data:
                encoded.append(data)
        return encoded


class ToolListCache:
    """The wire bytes of tool lists. A run hands over the same tuple turn after turn, so identity is the key."""

    def __init__(self, encode: Callable[[tuple[Tool, ...]], bytes]) -> None:
        self._encode = encode
        self._entries: LruCache[int, tuple[tuple[Tool, ...], bytes]] = LruCache(_MAX_TOOL_LISTS)

    def encoded(self, tools: tuple[Tool, ...]) -> bytes:
        """The list's bytes."""
        entry = self._entries.get(id(tools))
        if entry is not None and entry[0] is tools:  # the entry holds the tuple, so no other tuple gets its id
            return entry[1]
        data = self._encode(tools)
        self._entries.put(id(tools), (tools, data))
        return data
