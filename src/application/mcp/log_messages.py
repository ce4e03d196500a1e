"""Log messages of servers (MCP server/utilities/logging), as whoever made a call may ask for them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from domain.json_value import JsonObject, JsonValue
from domain.mcp.log_level import LogLevel


@dataclass(frozen=True, slots=True, kw_only=True)
class McpLogMessage:
    """What a server says while it works: `data` is any JSON value, cleaned and of bounded size; `logger` its name for the
    part that says so."""

    level: LogLevel
    data: JsonValue
    logger: str | None = None

    def as_json(self) -> JsonObject:
        """As the parameters of `notifications/message`."""
        shape: JsonObject = {"level": self.level.value, "data": self.data}
        return shape if self.logger is None else {**shape, "logger": self.logger}


LogCallback = Callable[[McpLogMessage], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTap:
    """Somebody wants the messages of a call, from `level` on. Only those that are provably of this call are told: what the
    server sends with its answer, or, on a connection that nobody else uses, while it has nothing else to do."""

    level: LogLevel
    tell: LogCallback
