"""Log messages of servers (MCP server/utilities/logging) for callers that request them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from domain.json_value import JsonObject, JsonValue
from domain.mcp.log_level import LogLevel


@dataclass(frozen=True, slots=True, kw_only=True)
class McpLogMessage:
    """A log message of a server. `data` is a JSON value, cleaned and of bounded size; `logger` is
    the server's component."""

    level: LogLevel
    data: JsonValue
    logger: str | None = None

    def as_json(self) -> JsonObject:
        shape: JsonObject = {"level": self.level.value, "data": self.data}
        return shape if self.logger is None else {**shape, "logger": self.logger}


LogCallback = Callable[[McpLogMessage], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTap:
    """Receives the log messages of a call, from `level` on. Only messages that provably belong to
    the call are passed: those sent with its reply, or on a private connection without other
    requests."""

    level: LogLevel
    tell: LogCallback
