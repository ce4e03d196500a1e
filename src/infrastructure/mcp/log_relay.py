"""Parses log messages of servers, with limits, for the callers that request them."""

import json
from collections.abc import Mapping
from typing import Any

from application.mcp.log_messages import LogTap, McpLogMessage
from domain.json_value import JsonValue
from domain.mcp.log_level import LogLevel
from infrastructure.mcp.relay import Relay
from infrastructure.mcp.text import capped, clean, clean_value

MAX_DATA_BYTES = 16 * 1024
"""Limit of one message's data as JSON; larger ones are replaced by their size."""
MAX_MESSAGES = 500
"""Limit of one call; the last message says that more were left out."""
_MAX_LOGGER = 128
_LEVELS = frozenset(level.value for level in LogLevel)


class LogRelay:
    def __init__(self, tap: LogTap) -> None:
        self._tap = tap
        self._relay = Relay(tap.tell)
        self._told = 0

    def put(self, params: Mapping[str, Any]) -> None:
        """Pass on the parameters of a `notifications/message`; invalid and less severe messages are
        ignored."""
        level = params.get("level")
        if not isinstance(level, str) or level not in _LEVELS or "data" not in params:
            return
        if not self._tap.level.covers(LogLevel(level)) or self._told > MAX_MESSAGES:
            return
        self._told += 1
        if self._told > MAX_MESSAGES:
            more = f"The server has logged {MAX_MESSAGES} messages about this call; further ones are left out."
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
        """Wait for the delivery, at most `grace_s`."""
        await self._relay.finish(grace_s)

    def stop(self) -> None:
        """Drop the rest."""
        self._relay.stop()


def _bounded(data: Any) -> JsonValue:
    value = clean_value(data)
    size = len(json.dumps(value))
    return value if size <= MAX_DATA_BYTES else f"(a message of {size} bytes, which is more than {MAX_DATA_BYTES})"
