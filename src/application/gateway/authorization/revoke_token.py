"""RevokeClientToken: a client gives back what it was granted (RFC 7009)."""

from dataclasses import dataclass, field

from application.gateway.authorization.issued_tokens import TokenIssuer, require_client, split_refresh_token
from application.gateway.authorization.ports import ClientGrantStore, StoredGrant
from domain.errors import ErrorKind, ServiceError
from domain.gateway.session import SESSION_TOKEN_PREFIX
from domain.identity.api_key import hash_token


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeClientTokenCommand:
    client_id: str
    token: str = field(repr=False)


class RevokeClientToken:
    """Rules:
    - A refresh token or an access token of the client ends the grant, with all its tokens. Audited
      `gateway_session.revoked`.
    - An unknown token, and one of another client, changes nothing, and is no error.
    """

    def __init__(self, *, grants: ClientGrantStore, tokens: TokenIssuer) -> None:
        self._grants = grants
        self._tokens = tokens

    async def execute(self, command: RevokeClientTokenCommand) -> None:
        try:
            stored = await self._stored(command.token)
            if stored is None:
                return
            require_client(stored[0], command.client_id)
        except ServiceError as error:
            if error.kind is not ErrorKind.INVALID:
                raise
            return
        await self._tokens.revoke(stored[1], reason="client")

    async def _stored(self, token: str) -> StoredGrant | None:
        if token.startswith(SESSION_TOKEN_PREFIX):
            return await self._grants.of_token(hash_token(token))
        family, _ = split_refresh_token(token)
        return await self._grants.of_family(hash_token(family))
