"""What has been encoded for a wire, kept so that a growing thread is encoded once and not once per turn."""

from collections import OrderedDict
from collections.abc import Callable, Iterable

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
        self._max_bytes = max_bytes
        self._entries: OrderedDict[MessageId, bytes] = OrderedDict()
        self._bytes = 0

    def encoded(self, messages: Iterable[Message]) -> list[bytes]:
        """Each message's bytes, in order; those that have none on this wire are left out."""
        entries = self._entries
        encoded: list[bytes] = []
        for message in messages:
            data = entries.get(message.id)
            if data is None:
                data = self._add(message)
            else:
                entries.move_to_end(message.id)
            if data:
                encoded.append(data)
        return encoded

    def _add(self, message: Message) -> bytes:
        data = self._encode(message)
        if len(data) <= self._max_bytes:
            self._entries[message.id] = data
            self._bytes += len(data)
            while self._bytes > self._max_bytes:
                _, dropped = self._entries.popitem(last=False)
                self._bytes -= len(dropped)
        return data


class ToolListCache:
    """The wire bytes of tool lists. A run hands over the same tuple turn after turn, so identity is the key."""

    def __init__(self, encode: Callable[[tuple[Tool, ...]], bytes]) -> None:
        self._encode = encode
        self._entries: OrderedDict[int, tuple[tuple[Tool, ...], bytes]] = OrderedDict()

    def encoded(self, tools: tuple[Tool, ...]) -> bytes:
        """The list's bytes."""
        entry = self._entries.get(id(tools))
        if entry is not None and entry[0] is tools:  # the entry holds the tuple, so its id is not given anew
            self._entries.move_to_end(id(tools))
            return entry[1]
        data = self._encode(tools)
        self._entries[id(tools)] = (tools, data)
        if len(self._entries) > _MAX_TOOL_LISTS:
            self._entries.popitem(last=False)
        return data
