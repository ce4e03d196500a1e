"""How severe a server's log message is (RFC 5424, as MCP server/utilities/logging has it). Pure."""

from enum import StrEnum


class LogLevel(StrEnum):
    """From the least severe on; values are the protocol's."""

    DEBUG = "debug"
    INFO = "info"
    NOTICE = "notice"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"
    ALERT = "alert"
    EMERGENCY = "emergency"

    def covers(self, other: "LogLevel") -> bool:
        """Whether who asks for messages from this level on gets those of the `other`."""
        return _SEVERITY[other] >= _SEVERITY[self]


_SEVERITY = {level: place for place, level in enumerate(LogLevel)}
