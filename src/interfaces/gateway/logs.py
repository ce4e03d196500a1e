"""Log messages of servers on the wire (MCP server/utilities/logging): subscriptions and
delivery."""

from application.gateway.sessions.client_handshakes import ClientHandshakes
from application.mcp.log_messages import LogTap, McpLogMessage
from domain.json_value import JsonObject
from domain.mcp.log_level import LogLevel
from interfaces.gateway.exchange import Exchange
from interfaces.gateway.messages import INVALID_PARAMS, INVALID_REQUEST, RpcError

LOG_LEVEL_META = "io.modelcontextprotocol/logLevel"
LOGGING_CAPABILITIES: JsonObject = {"logging": {}}
_LEVELS = frozenset(level.value for level in LogLevel)


class GatewayLogs:
    """A modern client subscribes with each request; a legacy client subscribes once and gets
    nothing before."""

    def __init__(self, *, handshakes: ClientHandshakes) -> None:
        self._handshakes = handshakes

    async def set_level(self, exchange: Exchange) -> dict[str, object]:
        """`logging/setLevel`. Raises RpcError, ServiceError."""
        level = _level(exchange.message.params.get("level"), "params.level")
        client = exchange.envelope.client
        if client is None:
            raise RpcError(INVALID_REQUEST, "Only a client that sends its Mcp-Session-Id can set its log level.")
        await self._handshakes.change(client, lambda known: known.with_log_level(level))
        return {}

    async def tap(self, exchange: Exchange) -> LogTap | None:
        """The receiver of log messages about a call; None without a subscription. Raises
        RpcError."""
        wanted = await self._wanted(exchange)
        tell = exchange.tell
        if wanted is None or tell is None:
            return None

        async def told(message: McpLogMessage) -> None:
            await tell({"jsonrpc": "2.0", "method": "notifications/message", "params": message.as_json()})

        return LogTap(level=wanted, tell=told)

    async def _wanted(self, exchange: Exchange) -> LogLevel | None:
        if exchange.envelope.is_modern:
            value = exchange.message.meta.get(LOG_LEVEL_META)
            return None if value is None else _level(value, LOG_LEVEL_META)
        client = exchange.envelope.client
        return None if client is None else (await self._handshakes.settings(client)).log_level


def _level(value: object, name: str) -> LogLevel:
    if not isinstance(value, str) or value not in _LEVELS:
        raise RpcError(INVALID_PARAMS, f"{name} must be one of {', '.join(LogLevel)}.")
    return LogLevel(value)
