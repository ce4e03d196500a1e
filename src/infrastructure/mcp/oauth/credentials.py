"""Credentials of an endpoint from the broker: the request header, and renewal after a rejection."""

from collections.abc import Iterable, Mapping

from domain.mcp.server import McpServer
from infrastructure.mcp.oauth.broker import TokenBroker
from infrastructure.mcp.oauth.challenge import read_challenge

_FORBIDDEN = 403
_AUTHORIZATION = "authorization"


class BrokeredCredentials:
    def __init__(self, *, broker: TokenBroker, server: McpServer) -> None:
        self._broker = broker
        self._server = server

    async def headers(self) -> Mapping[str, str]:
        """The header with the token. Raises TransportFailedError."""
        token = await self._broker.token(self._server)
        return {} if token is None else {_AUTHORIZATION: f"Bearer {token}"}

    async def renewed(self, sent: Mapping[str, str], status: int, challenges: Iterable[str]) -> bool:
        """Whether a new token exists after the server rejected a request without executing it.
        Raises TransportFailedError."""
        challenge = read_challenge(challenges)
        if status == _FORBIDDEN and challenge.error != "insufficient_scope":
            return False
        rejected = sent.get(_AUTHORIZATION)
        await self._broker.renew(
            self._server, None if rejected is None else rejected.removeprefix("Bearer "), challenge
        )
        return True
