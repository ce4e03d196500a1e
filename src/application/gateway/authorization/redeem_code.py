"""RedeemCode: the tokens of an authorization code."""

from dataclasses import dataclass, field
from datetime import datetime

from application.gateway.authorization.issued_tokens import (
    IssuedTokens,
    TokenIssuer,
    UsedBefore,
    refused_grant,
    require_client,
    require_resource,
)
from application.gateway.authorization.ports import ClientGrantStore
from domain.gateway.client_grant import ClientGrant
from domain.identity.api_key import hash_token


@dataclass(frozen=True, slots=True, kw_only=True)
class RedeemCodeCommand:
    client_id: str
    code: str = field(repr=False)
    redirect_uri: str
    verifier: str = field(repr=False)
    resource: str | None = None


class RedeemCode:
    """Rules:
    - A code works once, within a minute, for its client, with the redirect URI and the resource of
      its request, and with the verifier of its challenge.
    - A code that comes again revokes what it gave.

    Raises: ServiceError invalid_grant, invalid_target.
    """

    def __init__(self, *, grants: ClientGrantStore, tokens: TokenIssuer) -> None:
        self._grants = grants
        self._tokens = tokens

    async def execute(self, command: RedeemCodeCommand) -> IssuedTokens:
        found = await self._grants.of_code(hash_token(command.code))
        if found is None:
            raise refused_grant()

        def check(grant: ClientGrant, now: datetime) -> None:
            require_client(grant, command.client_id)
            if grant.redeemed_at is not None:
                raise UsedBefore
            if grant.code_expires_at <= now or grant.redirect_uri != command.redirect_uri:
                raise refused_grant()
            if not grant.is_proven_by(command.verifier):
                raise refused_grant()
            require_resource(grant, command.resource)

        return await self._tokens.issue(found, None, check)
