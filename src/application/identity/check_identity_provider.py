"""CheckIdentityProvider: what works of an identity provider, and what does not."""

from dataclasses import dataclass

from application.identity.ports import IdentityProviderClient, IdentityProviderStore
from application.identity.provider_lookup import existing_identity_provider
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.role import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckIdentityProviderCommand:
    """`provider` is its id or its name."""

    principal: Principal
    provider: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityProviderCheck:
    """`detail` says in a sentence what is wrong, or what the provider offers."""

    ok: bool
    detail: str
    keys: int = 0
    signs_out: bool = False
    has_device_flow: bool = False


class CheckIdentityProvider:
    """Rules:
    - Admins check identity providers of their organization.
    - Metadata and keys are read; no person signs in, and no client secret is sent.
    - An identity provider that does not work is a result, not an error.

    Raises: ServiceError role_insufficient, identity_provider_not_found.
    """

    def __init__(self, *, providers: IdentityProviderStore, client: IdentityProviderClient) -> None:
        self._providers = providers
        self._client = client

    async def execute(self, command: CheckIdentityProviderCommand) -> IdentityProviderCheck:
        principal = command.principal
        principal.require(Role.ADMIN)
        provider = await existing_identity_provider(self._providers, principal.organization_id, command.provider)
        try:
            metadata = await self._client.metadata(provider)
            keys = await self._client.count_keys(provider)
        except ServiceError as error:
            if error.kind is not ErrorKind.UNAVAILABLE:
                raise
            return IdentityProviderCheck(ok=False, detail=error.detail)
        if keys == 0:
            return IdentityProviderCheck(ok=False, detail="The identity provider publishes no key that signs tokens.")
        if not provider.rules:
            return IdentityProviderCheck(ok=False, detail="There is no rule, so no person is admitted.", keys=keys)
        return IdentityProviderCheck(
            ok=True,
            detail="People can sign in.",
            keys=keys,
            signs_out=metadata.end_session_endpoint is not None,
            has_device_flow=metadata.device_authorization_endpoint is not None,
        )
