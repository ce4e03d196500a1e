"""Severities of a server's log messages (RFC 5424; MCP server/utilities/logging). Pure."""

from enum import StrEnum


class LogLevel(StrEnum):
    """The levels, least severe first; the values are the protocol's."""

    DEBUG = "debug"
    INFO = "info"
    NOTICE = "notice"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"
    ALERT = "alert"
    EMERGENCY = "emergency"

    def covers(self, other: "LogLevel") -> bool:
        """Whether a subscriber of this level gets messages of the `other` level."""
        return _SEVERITY[other] >= _SEVERITY[self]


_SEVERITY = {level: place for place, level in enumerate(LogLevel)}
