"""Resource subscriptions of legacy clients (MCP 2025-11-25, server/resources): stored until the
client ends, with events on its open stream."""

from application.gateway.sessions.client_handshakes import ClientHandshakes
from application.gateway.subscriptions.check_subscription import CheckSubscription
from domain.errors import ServiceError
from domain.gateway.client import GatewayClient
from interfaces.gateway.contents import content_error
from interfaces.gateway.exchange import Exchange
from interfaces.gateway.messages import INVALID_PARAMS, INVALID_REQUEST, RpcError


class ResourceSubscriptions:
    """A client without an id cannot subscribe, because its subscriptions could not be stored."""

    def __init__(self, *, check: CheckSubscription, handshakes: ClientHandshakes) -> None:
        self._check = check
        self._handshakes = handshakes

    async def subscribe(self, exchange: Exchange) -> dict[str, object]:
        """`resources/subscribe`. Raises RpcError, ServiceError."""
        client, uri = _asked(exchange)
        try:
            await self._check.execute(exchange.session, uri)
        except ServiceError as error:
            raise content_error(error, exchange.message.params, is_modern=False) from error
        await self._handshakes.change(client, lambda known: known.subscribed(uri))
        return {}

    async def unsubscribe(self, exchange: Exchange) -> dict[str, object]:
        """`resources/unsubscribe`, also without a subscription. Raises RpcError, ServiceError."""
        client, uri = _asked(exchange)
        await self._handshakes.change(client, lambda known: known.unsubscribed(uri))
        return {}


def _asked(exchange: Exchange) -> tuple[GatewayClient, str]:
    uri = exchange.message.params.get("uri")
    if not isinstance(uri, str) or not uri:
        raise RpcError(INVALID_PARAMS, "params.uri must be the URI of a resource.")
    client = exchange.envelope.client
    if client is None:
        raise RpcError(INVALID_REQUEST, "Only a client that sends its Mcp-Session-Id can subscribe.")
    return client, uri
