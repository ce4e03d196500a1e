"""Reading organizations, API keys, identity providers and users."""

from application.identity.key_uses import KeyUses
from application.identity.ports import (
    ConsoleSessionStore,
    IdentityProviderDirectory,
    IdentityProviderStore,
    IdentityStore,
    ImpersonationStore,
    Memberships,
    OrganizationStore,
    SessionFilter,
    UserStore,
)
from application.identity.provider_lookup import existing_identity_provider
from application.system.pages import FIRST_PAGE, Page, PageRequest
from application.system.ports import Clock
from domain.errors import existing
from domain.identity.api_key import ApiKey, Principal
from domain.identity.console_session import ListedSession
from domain.identity.identity_provider import IdentityProvider
from domain.identity.impersonation import SHOWN_FOR, Impersonation
from domain.identity.organization import Organization
from domain.identity.permission import Permission
from domain.identity.role import Role
from domain.identity.user import User, UserStatus
from domain.ids import ApiKeyId, OrganizationId, UserId


class GetOrganization:
    """Any role may read its own organization; another one requires a platform key."""

    def __init__(self, *, organizations: OrganizationStore) -> None:
        self._organizations = organizations

    async def execute(self, principal: Principal, organization_id: OrganizationId | None = None) -> Organization:
        """`organization_id` None means the caller's own. Raises NOT_FOUND if the organization does
        not exist."""
        principal.require(Role.VIEWER)
        if organization_id is not None:
            principal.require_platform()
        wanted = organization_id or principal.organization_id
        return existing(await self._organizations.get(wanted), "organization", wanted)


class ListOrganizations:
    """Platform keys see all organizations and their settings, newest first, but none of their
    data."""

    def __init__(self, *, organizations: OrganizationStore) -> None:
        self._organizations = organizations

    async def execute(self, principal: Principal, page: PageRequest = FIRST_PAGE) -> Page[Organization]:
        """Raises FORBIDDEN."""
        principal.require(Role.ADMIN)
        principal.require_platform()
        return await self._organizations.page(page)


class ListTeams:
    """Names of the groups to which the caller may give something (`TeamChecks`), sorted."""

    def __init__(self, *, memberships: Memberships) -> None:
        self._memberships = memberships

    async def execute(self, principal: Principal) -> tuple[str, ...]:
        principal.require(Role.VIEWER)
        names = await self._memberships.group_names(principal.organization_id)
        return tuple(sorted(name for name in names if principal.sees(name)))


class ListApiKeys:
    """Admins see all keys of their organization, also revoked and expired ones, newest first, each
    with its last known use."""

    def __init__(self, *, identities: IdentityStore, uses: KeyUses) -> None:
        self._identities = identities
        self._uses = uses

    async def execute(self, principal: Principal, page: PageRequest = FIRST_PAGE) -> Page[ApiKey]:
        """Raises FORBIDDEN."""
        principal.require(Permission.KEYS_MANAGE)
        await self._uses.store()
        return await self._identities.keys(principal.organization_id, page)


class GetIdentityProvider:
    """Admins read identity providers of their organization, by id or name; views leave the secret
    out."""

    def __init__(self, *, providers: IdentityProviderStore) -> None:
        self._providers = providers

    async def execute(self, principal: Principal, provider: str) -> IdentityProvider:
        """Raises FORBIDDEN, NOT_FOUND."""
        principal.require(Role.ADMIN)
        return await existing_identity_provider(self._providers, principal.organization_id, provider)


class ListIdentityProviders:
    """Admins see all identity providers of their organization, by name."""

    def __init__(self, *, providers: IdentityProviderStore) -> None:
        self._providers = providers

    async def execute(self, principal: Principal) -> tuple[IdentityProvider, ...]:
        """Raises FORBIDDEN."""
        principal.require(Role.ADMIN)
        return await self._providers.all(principal.organization_id)


class ListOfferedProviders:
    """Everybody sees the identity providers of the installation, and those of an organization whose
    id they know."""

    def __init__(self, *, identity_providers: IdentityProviderDirectory) -> None:
        self._providers = identity_providers

    async def execute(self, organization_id: OrganizationId | None) -> tuple[IdentityProvider, ...]:
        """By name. Callers show neither secrets nor rules."""
        return await self._providers.offered(organization_id)


class GetUser:
    """Admins read users of their organization, also removed ones; every user reads their own."""

    def __init__(self, *, users: UserStore) -> None:
        self._users = users

    async def execute(self, principal: Principal, user_id: UserId) -> User:
        """Raises FORBIDDEN, NOT_FOUND."""
        principal.require(Role.VIEWER if ApiKeyId(user_id) == principal.key_id else Permission.USERS_MANAGE)
        return existing(await self._users.get(principal.organization_id, user_id), "user", user_id)


class ListUsers:
    """Admins see the users of their organization that have a status, or are not removed, newest
    first."""

    def __init__(self, *, users: UserStore) -> None:
        self._users = users

    async def execute(
        self, principal: Principal, page: PageRequest = FIRST_PAGE, status: UserStatus | None = None
    ) -> Page[User]:
        """Raises FORBIDDEN."""
        principal.require(Permission.USERS_MANAGE)
        return await self._users.page(principal.organization_id, page, status)


class ListSessions:
    """Callers see their own sessions; admins see those of their organization. Newest first, without
    expired ones."""

    def __init__(self, *, console_sessions: ConsoleSessionStore, clock: Clock) -> None:
        self._sessions = console_sessions
        self._clock = clock

    async def execute(
        self, principal: Principal, holder: ApiKeyId | None, page: PageRequest = FIRST_PAGE
    ) -> Page[ListedSession]:
        """`holder` None means everybody's. Raises FORBIDDEN."""
        principal.require(Role.VIEWER if holder == principal.key_id else Role.ADMIN)
        wanted = SessionFilter(at=self._clock.now(), holder=holder)
        return await self._sessions.page(principal.organization_id, wanted, page)


class ListImpersonations:
    """Users see who acted as them in the last 30 days, and why, newest first; admins see it of
    every user."""

    def __init__(self, *, impersonations: ImpersonationStore, clock: Clock) -> None:
        self._impersonations = impersonations
        self._clock = clock

    async def execute(self, principal: Principal, user_id: UserId) -> tuple[Impersonation, ...]:
        """Raises FORBIDDEN."""
        principal.require(Role.VIEWER if ApiKeyId(user_id) == principal.key_id else Role.ADMIN)
        since = self._clock.now() - SHOWN_FOR
        return await self._impersonations.of_user(principal.organization_id, user_id, since=since)
