"""The health of a listed tool."""

from enum import StrEnum


class ToolHealth(StrEnum):
    """`available` for native tools, `quarantined` for MCP tools that await approval, else the state
    of the tool's server (`ServerState`)."""

    AVAILABLE = "available"
    QUARANTINED = "quarantined"
    NOT_INSTALLED = "not_installed"
    INSTALLING = "installing"
    DISCONNECTED = "disconnected"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    UNHEALTHY = "unhealthy"
    NEEDS_AUTH = "needs_auth"
    DISABLED = "disabled"
    ERROR = "error"
