"""Caches of encoded messages and tool lists, so that a growing thread is encoded once, not once per
turn."""

from collections.abc import Callable, Iterable

from application.system.lru import LruCache
from domain.ids import MessageId
from domain.threads.message import Message
from domain.tools.tool import Tool

DEFAULT_MAX_BYTES = 32 * 1024 * 1024
_MAX_TOOL_LISTS = 64


class MessageCache:
    """LRU cache of encoded messages by id. Messages are immutable, so entries stay valid. Not
    thread-safe."""

    def __init__(self, encode: Callable[[Message], bytes], *, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self._encode = encode
        self._entries: LruCache[MessageId, bytes] = LruCache(max_bytes, weight=len)

    def encoded(self, messages: Iterable[Message]) -> list[bytes]:
        """The bytes of each message, in order, without those of empty encoding."""
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
