"""SignOutAddress: where a browser signs out of its identity provider too."""

import asyncio
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from application.identity.ports import IdentityProviderClient, IdentityProviderDirectory
from domain.errors import ErrorKind, ServiceError
from domain.ids import IdentityProviderId

WAIT_S = 2.0
"""For metadata that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignOutAddressCommand:
    """`return_to` is where the identity provider sends the browser afterwards."""

    provider_id: IdentityProviderId
    return_to: str


class SignOutAddress:
    """None if the identity provider has no such page (OpenID Connect RP-Initiated Logout 1.0), was
    deleted, or does not answer soon: signing out here must not depend on it."""

    def __init__(self, *, identity_providers: IdentityProviderDirectory, client: IdentityProviderClient) -> None:
        self._providers = identity_providers
        self._client = client

    async def execute(self, command: SignOutAddressCommand) -> str | None:
        provider = await self._providers.named(command.provider_id)
        if provider is None:
            return None
        try:
            async with asyncio.timeout(WAIT_S):
                metadata = await self._client.metadata(provider)
        except TimeoutError:
            return None
        except ServiceError as error:
            if error.kind is not ErrorKind.UNAVAILABLE:
                raise
            return None
        if metadata.end_session_endpoint is None:
            return None
        parts = urlsplit(metadata.end_session_endpoint)
        parameters = {
            **dict(parse_qsl(parts.query)),
            "client_id": provider.client_id,
            "post_logout_redirect_uri": command.return_to,
        }
        return urlunsplit(parts._replace(query=urlencode(parameters), fragment=""))
