"""RefreshAccess: the next tokens of a grant."""

from dataclasses import dataclass, field
from datetime import datetime

from application.gateway.authorization.issued_tokens import (
    IssuedTokens,
    TokenIssuer,
    UsedBefore,
    is_current,
    refused_grant,
    require_client,
    require_resource,
    split_refresh_token,
)
from application.gateway.authorization.ports import ClientGrantStore
from domain.gateway.client_grant import ClientGrant
from domain.identity.api_key import hash_token


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshAccessCommand:
    client_id: str
    refresh_token: str = field(repr=False)
    resource: str | None = None


class RefreshAccess:
    """Rules:
    - A refresh token works once, for its client and resource, and gives the next one.
    - One that was used before revokes the grant.

    Raises: ServiceError invalid_grant, invalid_target.
    """

    def __init__(self, *, grants: ClientGrantStore, tokens: TokenIssuer) -> None:
        self._grants = grants
        self._tokens = tokens

    async def execute(self, command: RefreshAccessCommand) -> IssuedTokens:
        family, rest = split_refresh_token(command.refresh_token)
        found = await self._grants.of_family(hash_token(family))
        if found is None:
            raise refused_grant()

        def check(grant: ClientGrant, _: datetime) -> None:
            require_client(grant, command.client_id)
            if not is_current(grant, rest):
                raise UsedBefore
            require_resource(grant, command.resource)

        return await self._tokens.issue(found, family, check)
