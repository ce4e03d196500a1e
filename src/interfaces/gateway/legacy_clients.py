"""Legacy clients on the wire: the id from the handshake, and the envelope of requests with it (MCP
2025-03-26 to 2025-11-25, basic/transports, session management)."""

from collections.abc import Mapping

from application.gateway.sessions.client_handshakes import ClientHandshakes
from domain.errors import ErrorKind, ServiceError
from domain.gateway.client import GatewayClient
from domain.gateway.session import GatewaySession
from domain.json_value import JsonObject
from interfaces.gateway.generations import VERSION_HEADER, Envelope, legacy_version, negotiated
from interfaces.gateway.messages import INTERNAL_ERROR, INVALID_REQUEST, RpcError, RpcMessage

SESSION_HEADER = "mcp-session-id"
Headers = list[tuple[bytes, bytes]]


class LegacyClients:
    """Requests without an id are served too: such a client is identified only by its token and has
    no capabilities."""

    def __init__(self, *, handshakes: ClientHandshakes) -> None:
        self._handshakes = handshakes

    def shaken(self, session: GatewaySession, message: RpcMessage) -> tuple[Envelope, Headers]:
        """The envelope of a handshake, and the headers of its response."""
        version = negotiated(message.params.get("protocolVersion"))
        told = message.params.get("capabilities")
        capabilities: JsonObject = told if isinstance(told, dict) else {}
        sealed = self._handshakes.shaken(session, version, capabilities)
        return Envelope(version=version, capabilities=capabilities), [(SESSION_HEADER.encode(), sealed.encode())]

    async def envelope(self, session: GatewaySession, headers: Mapping[str, str]) -> Envelope:
        """The envelope of a request after the handshake. Raises RpcError, with the status 404 for
        an unknown id."""
        client = await self.client(session, headers)
        if client is None:
            return Envelope(version=legacy_version(headers), capabilities={})
        version = legacy_version(headers) if VERSION_HEADER in headers else client.version
        return Envelope(version=version, capabilities=client.capabilities, client=client)

    async def client(self, session: GatewaySession, headers: Mapping[str, str]) -> GatewayClient | None:
        """The client of the request; None if it names none. Raises RpcError."""
        sealed = headers.get(SESSION_HEADER)
        if sealed is None:
            return None
        try:
            return await self._handshakes.of(session, sealed)
        except ServiceError as error:
            raise _rpc_error(error) from error

    async def end(self, session: GatewaySession, headers: Mapping[str, str]) -> None:
        """The client ends its session. Raises RpcError."""
        client = await self.client(session, headers)
        if client is None:
            raise RpcError(INVALID_REQUEST, "The header Mcp-Session-Id must name the session to end.", status=400)
        try:
            await self._handshakes.end(client)
        except ServiceError as error:
            raise _rpc_error(error) from error


def _rpc_error(error: ServiceError) -> RpcError:
    if error.kind is ErrorKind.NOT_FOUND:
        return RpcError(INVALID_REQUEST, error.detail, data={"code": error.code}, status=404)
    return RpcError(INTERNAL_ERROR, error.detail, data={"code": error.code}, status=503)
