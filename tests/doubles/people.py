"""Identity providers and users in memory."""

from dataclasses import replace
from datetime import datetime

from application.identity.ports import ProviderMetadata, SignInTokens, UserChange
from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.errors import ErrorKind, ServiceError, conflict, existing, require_version
from domain.identity.identity_provider import MAX_IDENTITY_PROVIDERS, IdentityProvider
from domain.identity.user import User, UserStatus
from domain.ids import IdentityProviderId, OrganizationId, UserId
from domain.json_value import JsonObject
from tests.doubles.paging import by_time, newest_first
from tests.doubles.state import InMemoryState


class InMemoryIdentityProviderStore:
    """The ports `IdentityProviderStore` and `IdentityProviderDirectory` over shared in-memory
    tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def add(self, provider: IdentityProvider, audit: AuditEvent) -> None:
        """Store a new provider."""
        theirs = await self.all(provider.organization_id)
        if len(theirs) >= MAX_IDENTITY_PROVIDERS:
            raise conflict("too_many_identity_providers", "There are too many.")
        self._store(provider, audit)

    async def save(self, changed: IdentityProvider, *, expected_version: int, audit: AuditEvent) -> None:
        """Store a change."""
        stored = existing(self._state.identity_providers.get(changed.id), "identity provider", changed.id)
        require_version("identity provider", stored.version, expected=expected_version)
        self._store(changed, audit)

    async def delete(self, organization_id: OrganizationId, provider_id: IdentityProviderId, audit: AuditEvent) -> bool:
        """Remove a provider."""
        stored = self._state.identity_providers.get(provider_id)
        if stored is None or stored.organization_id != organization_id:
            return False
        del self._state.identity_providers[provider_id]
        self._state.record(audit)
        return True

    async def all(self, organization_id: OrganizationId) -> tuple[IdentityProvider, ...]:
        """The organization's, by name."""
        theirs = (
            provider
            for provider in self._state.identity_providers.values()
            if provider.organization_id == organization_id
        )
        return tuple(sorted(theirs, key=lambda provider: provider.name))

    async def of_issuer(self, issuer: str) -> tuple[IdentityProvider, ...]:
        """Of all organizations."""
        return tuple(provider for provider in self._state.identity_providers.values() if provider.issuer == issuer)

    async def named(self, provider_id: IdentityProviderId) -> IdentityProvider | None:
        """By id."""
        return self._state.identity_providers.get(provider_id)

    async def exist(self) -> bool:
        """Whether there is any."""
        return bool(self._state.identity_providers)

    async def offered(self, organization_id: OrganizationId | None) -> tuple[IdentityProvider, ...]:
        """The installation's and the organization's."""
        offered = (
            each
            for each in self._state.identity_providers.values()
            if each.installation or each.organization_id == organization_id
        )
        return tuple(sorted(offered, key=lambda provider: (provider.name, provider.id)))

    def _store(self, provider: IdentityProvider, audit: AuditEvent) -> None:
        for other in self._state.identity_providers.values():
            if other.id == provider.id:
                continue
            if (other.organization_id, other.name) == (provider.organization_id, provider.name):
                raise conflict("identity_provider_exists", "There is one of this name.")
            if other.issuer == provider.issuer and set(other.accepted_audiences) & set(provider.accepted_audiences):
                raise conflict("identity_provider_audience_taken", "Another one has this audience.")
        self._state.identity_providers[provider.id] = provider
        self._state.record(audit)


class InMemoryUserStore:
    """The ports `UserStore` and `UserAccess` over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def get(self, organization_id: OrganizationId, user_id: UserId) -> User | None:
        """The user."""
        user = self._state.users.get(user_id)
        return user if user is not None and user.organization_id == organization_id else None

    async def page(
        self, organization_id: OrganizationId, request: PageRequest, status: UserStatus | None = None
    ) -> Page[User]:
        """Users, newest first."""
        shown = (
            user
            for user in self._state.users.values()
            if user.organization_id == organization_id
            and (user.status is not UserStatus.REMOVED if status is None else user.status is status)
        )
        return newest_first(shown, lambda user: by_time(user.created_at, user.id), request)

    async def change(self, organization_id: OrganizationId, user_id: UserId, decide: UserChange) -> User:
        """Store what `decide` says."""
        user = existing(await self.get(organization_id, user_id), "user", user_id)
        decided = decide(user)
        if decided is None:
            return user
        changed, audit = decided
        self._state.users[user_id] = changed
        self._state.record(audit)
        return changed

    async def admitted(self, organization_id: OrganizationId, user_id: UserId) -> User | None:
        """The user, if admitted."""
        user = await self.get(organization_id, user_id)
        if user is None or user.status is not UserStatus.ACTIVE:
            return None
        return user if user.provider_id in self._state.identity_providers else None

    async def find(self, organization_id: OrganizationId, issuer: str, subject: str) -> User | None:
        """By who the person is."""
        wanted = (organization_id, issuer, subject)
        people = (
            user for user in self._state.users.values() if (user.organization_id, user.issuer, user.subject) == wanted
        )
        return next(people, None)

    async def add(self, user: User, audit: AuditEvent) -> User:
        """Store a user."""
        found = await self.find(user.organization_id, user.issuer, user.subject)
        if found is not None:
            return found
        self._state.users[user.id] = user
        self._state.record(audit)
        return user

    async def accessed(self, user: User, at: datetime) -> bool:
        """Store when the person came."""
        stored = await self.get(user.organization_id, user.id)
        if stored is None or stored.status is not UserStatus.ACTIVE:
            return False
        if (stored.issuer, stored.subject) != (user.issuer, user.subject):
            return False
        self._state.users[user.id] = replace(stored, last_sign_in_at=at)
        return True

    async def saw(self, user: User, audit: AuditEvent) -> None:
        """Store what the provider says."""
        stored = self._state.users.get(user.id)
        if stored is None or stored.status is not UserStatus.ACTIVE:
            return
        self._state.users[user.id] = replace(
            stored,
            provider_id=user.provider_id,
            email=user.email,
            name=user.name,
            role=stored.role if stored.role_fixed else user.role,
            custom_role=stored.custom_role if stored.role_fixed else user.custom_role,
            last_sign_in_at=user.last_sign_in_at,
        )
        self._state.record(audit)


class AbsentIdentityProviders:
    """The `IdentityProviderClient` port, and the keys of tokens, where no identity provider can be
    reached."""

    async def metadata(self, provider: IdentityProvider) -> ProviderMetadata:
        """Always fails."""
        raise _away()

    async def redeem(self, provider: IdentityProvider, code: str, *, redirect_uri: str, verifier: str) -> SignInTokens:
        """Always fails."""
        raise _away()

    async def count_keys(self, provider: IdentityProvider) -> int:
        """Always fails."""
        raise _away()

    async def keys(self, issuer: str) -> list[JsonObject]:
        """Always fails."""
        raise _away()


def _away() -> ServiceError:
    return ServiceError("identity_provider_unavailable", ErrorKind.UNAVAILABLE, "It cannot be reached.")
