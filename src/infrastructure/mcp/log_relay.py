"""Log messages of servers off the wire, bounded, to whoever asked for those of a call."""

import json
from collections.abc import Mapping
from typing import Any

from application.mcp.log_messages import LogTap, McpLogMessage
from domain.json_value import JsonValue
from domain.mcp.log_level import LogLevel
from infrastructure.mcp.relay import Relay
from infrastructure.mcp.text import capped, clean, clean_value

MAX_DATA_BYTES = 16 * 1024
"""Of one message's data as JSON; larger ones are told of by their size."""
MAX_MESSAGES = 500
"""Of one call; the last one says that there are more."""
_MAX_LOGGER = 128
_LEVELS = frozenset(level.value for level in LogLevel)


class LogRelay:
    """The messages of one call."""

    def __init__(self, tap: LogTap) -> None:
        self._tap = tap
        self._relay = Relay(tap.tell)
        self._told = 0

    def put(self, params: Mapping[str, Any]) -> None:
        """The raw parameters of a `notifications/message`; what is none, or less severe than asked for, is passed over."""
        level = params.get("level")
        if not isinstance(level, str) or level not in _LEVELS or "data" not in params:
            return
        if not self._tap.level.covers(LogLevel(level)) or self._told > MAX_MESSAGES:
            return
        self._told += 1
        if self._told > MAX_MESSAGES:
            more = f"The server has said {MAX_MESSAGES} things about this call; what else it says is left out."
            self._relay.put(McpLogMessage(level=LogLevel.WARNING, data=more, logger="dragoman"))
            return
        name = params.get("logger")
        self._relay.put(
            McpLogMessage(
                level=LogLevel(level),
                data=_bounded(params["data"]),
                logger=capped(clean(name), _MAX_LOGGER) if isinstance(name, str) else None,
            )
        )

    async def finish(self, grace_s: float) -> None:
        """Waits until all of it is delivered, as long as allowed."""
        await self._relay.finish(grace_s)

    def stop(self) -> None:
        """The call is over: the rest is dropped."""
        self._relay.stop()


def _bounded(data: Any) -> JsonValue:
    value = clean_value(data)
    size = len(json.dumps(value))
    return value if size <= MAX_DATA_BYTES else f"(a message of {size} bytes, which is more than {MAX_DATA_BYTES})"
