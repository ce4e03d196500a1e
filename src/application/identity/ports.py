"""Ports of the identity slice."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.identity.api_key import ApiKey
from domain.identity.console_session import ConsoleSession, ListedSession, SessionKind
from domain.identity.custom_role import CustomRole
from domain.identity.identity_provider import IdentityProvider
from domain.identity.impersonation import Impersonation
from domain.identity.organization import Organization
from domain.identity.organization_group import OrganizationGroup
from domain.identity.permission import Permission
from domain.identity.user import User, UserStatus
from domain.ids import ApiKeyId, ConsoleSessionId, GroupId, IdentityProviderId, ImpersonationId, OrganizationId, UserId
from domain.json_value import JsonValue


class OrganizationStore(Protocol):
    """Organizations and their settings."""

    async def get(self, organization_id: OrganizationId) -> Organization | None: ...

    async def add(self, organization: Organization, key: ApiKey, audit: tuple[AuditEvent, ...]) -> None:
        """Store an organization with its first key."""

    async def add_key(self, key: ApiKey, audit: tuple[AuditEvent, ...]) -> None:
        """Store another key of an existing organization."""

    async def page(self, request: PageRequest) -> Page[Organization]:
        """All organizations, newest first."""

    async def first(self) -> Organization | None:
        """The organization of the first start; None before it."""

    async def save(self, changed: Organization, *, expected_version: int, audit: tuple[AuditEvent, ...]) -> None:
        """Store a change. Raises NOT_FOUND, PRECONDITION `version_conflict`."""


class IdentityStore(Protocol):
    """Organizations and their API keys."""

    async def bootstrap(self, organization: Organization, key: ApiKey) -> bool:
        """Store the first organization with its key, unless an organization exists. True if it was
        stored."""

    async def add_key(self, key: ApiKey, audit: AuditEvent) -> None: ...

    async def revoke_key(self, organization_id: OrganizationId, key_id: ApiKeyId, audit: AuditEvent) -> bool:
        """Revoke at `audit.at`. False if no such key exists that is not revoked yet."""

    async def record_uses(self, uses: Mapping[ApiKeyId, datetime]) -> None:
        """Store times of use, unless a later one is stored. Deleted keys are skipped."""

    async def key(self, organization_id: OrganizationId, key_id: ApiKeyId) -> ApiKey | None:
        """The key, also if revoked, or None."""

    async def creators(
        self, organization_id: OrganizationId, key_ids: Collection[ApiKeyId]
    ) -> Mapping[ApiKeyId, UserId]:
        """The users who created these keys, in one read. Keys that no user created are left out."""

    async def key_by_hash(self, token_hash: str) -> ApiKey | None:
        """The key of the token with this hash, also if revoked."""

    async def keys(self, organization_id: OrganizationId, request: PageRequest) -> Page[ApiKey]:
        """Keys, newest first."""


class FirstKey(Protocol):
    """Stores the token of the first start for the person who starts the service. Each method raises
    UNAVAILABLE if the place cannot be written."""

    def draft(self, fresh: str) -> str:
        """The token for the first key: a draft that was neither published nor discarded, otherwise
        `fresh`, which becomes the draft. A draft survives the process."""

    def keep(self) -> None:
        """The draft is the token of a stored key: publish it."""

    def discard(self) -> None:
        """The draft belongs to no key: remove it."""


UserChange = Callable[[User], tuple[User, AuditEvent] | None]
"""Decides over the stored user, with its row locked: the changed user and the audit entry, or None
for no change."""


class UserStore(Protocol):
    """Users of organizations."""

    async def get(self, organization_id: OrganizationId, user_id: UserId) -> User | None:
        """The user, whatever its status."""

    async def page(
        self, organization_id: OrganizationId, request: PageRequest, status: UserStatus | None = None
    ) -> Page[User]:
        """Users of that status, or those that are not removed, newest first."""

    async def change(self, organization_id: OrganizationId, user_id: UserId, decide: UserChange) -> User:
        """Store a change. Raises NOT_FOUND `user_not_found`, and what `decide` raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFilter:
    """Sessions that have not expired `at` a time; with `holder`, those of one user or API key; with
    `kind`, those of a kind."""

    at: datetime
    holder: ApiKeyId | None = None
    kind: SessionKind | None = None


class ConsoleSessionStore(Protocol):
    """Sessions of the console. An ended one is deleted."""

    async def add(self, session: ConsoleSession) -> None:
        """Store a session. Deletes expired ones of the organization, and the holder's oldest beyond
        `MAX_SESSIONS`."""

    async def get(self, organization_id: OrganizationId, session_id: ConsoleSessionId) -> ConsoleSession | None:
        """The session, unless it has ended. It may have expired."""

    async def saw(self, organization_id: OrganizationId, session_id: ConsoleSessionId, at: datetime) -> None:
        """Store when the session was last seen."""

    async def end(self, organization_id: OrganizationId, session_id: ConsoleSessionId, audit: AuditEvent) -> bool:
        """False if there is none."""

    async def page(
        self, organization_id: OrganizationId, wanted: SessionFilter, request: PageRequest
    ) -> Page[ListedSession]:
        """Sessions of the console, of OAuth clients at the gateway, and impersonations, newest
        first."""


class ImpersonationStore(Protocol):
    """Impersonations, also ended ones."""

    async def add(self, begun: Impersonation, audit: AuditEvent) -> None:
        """Store an impersonation. Deletes those of the organization older than `SHOWN_FOR`."""

    async def by_hash(self, token_hash: str) -> Impersonation | None:
        """That of the token with this hash, of any organization. It may be over."""

    async def get(self, organization_id: OrganizationId, impersonation_id: ImpersonationId) -> Impersonation | None: ...

    async def of_user(
        self, organization_id: OrganizationId, user_id: UserId, *, since: datetime
    ) -> tuple[Impersonation, ...]:
        """Those that began since then, newest first."""

    async def end(self, organization_id: OrganizationId, impersonation_id: ImpersonationId, audit: AuditEvent) -> bool:
        """End at `audit.at`. False if there is none that is open then."""


class UserAccess(Protocol):
    """What sign-in and requests of people read and write."""

    async def admitted(self, organization_id: OrganizationId, user_id: UserId) -> User | None:
        """The user, if active and if its identity provider exists."""

    async def find(self, organization_id: OrganizationId, issuer: str, subject: str) -> User | None:
        """The person's user in an organization, whatever its status."""

    async def add(self, user: User, audit: AuditEvent) -> User:
        """Store a new user. The stored one if the person has one in this organization already."""

    async def accessed(self, user: User, at: datetime) -> bool:
        """Store the last access of a person. False if the user is not active, or is another
        person's by now."""

    async def saw(self, user: User, audit: AuditEvent) -> None:
        """Store profile, role, identity provider and last sign-in of an active user; another one
        stays as it is, and so does a role that an admin chose."""


CustomRoleChange = Callable[[CustomRole], tuple[CustomRole, AuditEvent] | None]
"""Decides over the stored role, with its row locked; None for no change."""


class CustomRoleStore(Protocol):
    """Custom roles of organizations; at most `MAX_ROLES` each."""

    async def add(self, role: CustomRole, audit: AuditEvent) -> None:
        """Raises CONFLICT `role_exists`, `too_many_roles`."""

    async def all(self, organization_id: OrganizationId) -> tuple[CustomRole, ...]:
        """By name."""

    async def change(self, organization_id: OrganizationId, name: str, decide: CustomRoleChange) -> CustomRole:
        """Raises NOT_FOUND `role_not_found`, and what `decide` raises."""

    async def delete(self, organization_id: OrganizationId, name: str, audit: AuditEvent) -> bool:
        """False if there is none. Raises CONFLICT `role_in_use` (`RoleHolders`)."""


class RoleGrants(Protocol):
    """What custom roles permit."""

    async def permissions_of(self, organization_id: OrganizationId, custom_role: str) -> frozenset[Permission]:
        """Empty if there is no such role."""


class GroupNames(Protocol):
    """Groups that the directory of an identity provider manages."""

    async def names_of(self, provider_id: IdentityProviderId, subject: str) -> tuple[str, ...]:
        """Names of the person's groups, if the directory manages the person."""


class ClaimedGroups(Protocol):
    """Groups of organizations whose members come by claims."""

    async def with_claims(self, organization_id: OrganizationId) -> tuple[OrganizationGroup, ...]:
        """Those that have claims, without members."""

    async def set_claimed(self, user: User, groups: Collection[GroupId]) -> None:
        """The user is a member by claim of these groups, and of no other one."""


class Memberships(Protocol):
    """Groups of people: those of directories, and those that organizations manage."""

    async def groups_of(self, organization_id: OrganizationId, user_id: UserId) -> frozenset[str]:
        """Names of the groups that the user is in now."""

    async def group_names(self, organization_id: OrganizationId) -> frozenset[str]:
        """Names of all groups of the organization."""

    async def leave_all(self, organization_id: OrganizationId, user_id: UserId) -> None:
        """Take the user out of all groups that the organization manages."""


class IdentityProviderStore(Protocol):
    """Identity providers of organizations; at most `MAX_IDENTITY_PROVIDERS` each."""

    async def add(self, provider: IdentityProvider, audit: AuditEvent) -> None:
        """Raises CONFLICT `identity_provider_exists`, `identity_provider_audience_taken` (an
        audience at the issuer belongs to another identity provider),
        `too_many_identity_providers`."""

    async def save(self, changed: IdentityProvider, *, expected_version: int, audit: AuditEvent) -> None:
        """Raises NOT_FOUND, PRECONDITION `version_conflict`, CONFLICT as `add`."""

    async def delete(self, organization_id: OrganizationId, provider_id: IdentityProviderId, audit: AuditEvent) -> bool:
        """False if there is none. Its users are not admitted from then on."""

    async def all(self, organization_id: OrganizationId) -> tuple[IdentityProvider, ...]:
        """By name."""


class IdentityProviderDirectory(Protocol):
    """Identity providers of all organizations, for callers whose organization is not known yet."""

    async def of_issuer(self, issuer: str) -> tuple[IdentityProvider, ...]: ...

    async def named(self, provider_id: IdentityProviderId) -> IdentityProvider | None: ...

    async def exist(self) -> bool:
        """Whether there is an identity provider at all."""

    async def offered(self, organization_id: OrganizationId | None) -> tuple[IdentityProvider, ...]:
        """Identity providers of the installation, and of the organization, by name."""


Claims = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedToken:
    """The claims of a token whose signature, issuer, audience and time were checked."""

    claims: Claims = field(repr=False)
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderMetadata:
    """What an identity provider says about itself."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    device_authorization_endpoint: str | None = None
    end_session_endpoint: str | None = None
    names_itself_in_answers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInTokens:
    """What an identity provider gives for a code. The access token may be missing, and so may its
    lifetime."""

    id_token: str = field(repr=False)
    access_token: str | None = field(default=None, repr=False)
    access_token_lasts_s: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedSignIn:
    user: User
    provider: IdentityProvider
    tokens: SignInTokens
    id_token_expires_at: datetime


class SignInListener(Protocol):
    """Who needs tokens of sign-ins."""

    async def signed_in(self, finished: FinishedSignIn) -> None:
        """A person has signed in. What fails here does not refuse the sign-in."""


class TokenVerifier(Protocol):
    """Signed tokens (JWT) of identity providers."""

    async def issuer_of(self, token: str) -> str | None:
        """The issuer that an unverified token names; None for what is not a token."""

    async def verify(self, provider: IdentityProvider, token: str, *, nonce: str | None = None) -> VerifiedToken:
        """Check a token; with `nonce`, as the ID token of that sign-in. Raises UNAUTHENTICATED
        `token_invalid`, UNAVAILABLE `identity_provider_unavailable`."""


class IdentityProviderClient(Protocol):
    """Requests to identity providers. Raises UNAVAILABLE `identity_provider_unavailable`."""

    async def metadata(self, provider: IdentityProvider) -> ProviderMetadata: ...

    async def redeem(self, provider: IdentityProvider, code: str, *, redirect_uri: str, verifier: str) -> SignInTokens:
        """The tokens for a code, not verified. Raises UNAUTHENTICATED `sign_in_refused`."""

    async def count_keys(self, provider: IdentityProvider) -> int:
        """How many keys that can verify tokens the provider publishes, read now."""
