"""Identity providers and users of tests."""

from datetime import timedelta

from domain.identity.api_key import Principal, hash_token
from domain.identity.console_session import SESSION_LASTS, ConsoleSession
from domain.identity.identity_provider import IdentityProvider, RoleRule
from domain.identity.impersonation import DEFAULT_MINUTES, Impersonation
from domain.identity.role import Role
from domain.identity.user import User, UserStatus
from domain.ids import ApiKeyId, ConsoleSessionId, IdentityProviderId, ImpersonationId, OrganizationId, UserId
from tests.builders import ORG, START, after, numbered

ISSUER = "https://login.example.com"
PROVIDER = IdentityProviderId("idp_00000000000000000000000001")
USER = UserId("usr_00000000000000000000000001")
SUPPORT = UserId("usr_0000000000000000000000000S")
AGENTS = RoleRule(claim="groups", value="agents", role=Role.OPERATOR)


def a_provider(
    id: IdentityProviderId = PROVIDER,
    *,
    organization_id: OrganizationId = ORG,
    name: str = "company",
    issuer: str = ISSUER,
    client_id: str = "dragoman",
    client_secret: str | None = None,
    cli_client_id: str | None = None,
    audiences: tuple[str, ...] = (),
    rules: tuple[RoleRule, ...] = (AGENTS,),
    installation: bool = False,
) -> IdentityProvider:
    return IdentityProvider(
        id=id,
        organization_id=organization_id,
        name=name,
        issuer=issuer,
        client_id=client_id,
        client_secret=client_secret,
        cli_client_id=cli_client_id,
        audiences=audiences,
        rules=rules,
        installation=installation,
        created_at=START,
    )


def a_user(
    id: UserId = USER,
    *,
    organization_id: OrganizationId = ORG,
    provider_id: IdentityProviderId = PROVIDER,
    subject: str = "ann",
    role: Role = Role.OPERATOR,
    custom_role: str | None = None,
    role_fixed: bool = False,
    status: UserStatus = UserStatus.ACTIVE,
) -> User:
    return User(
        id=id,
        organization_id=organization_id,
        provider_id=provider_id,
        issuer=ISSUER,
        subject=subject,
        email=f"{subject}@example.com",
        name=subject.title(),
        role=role,
        custom_role=custom_role,
        role_fixed=role_fixed,
        status=status,
        created_at=START,
    )


def a_person(role: Role = Role.VIEWER, *, id: UserId = USER, organization_id: OrganizationId = ORG) -> Principal:
    """A person who signed in."""
    return a_user(id, organization_id=organization_id, role=role).principal(after(3_600))


def a_console_session(
    number: int = 1, *, holder: str = USER, organization_id: OrganizationId = ORG, began_s: float = 0
) -> ConsoleSession:
    """A browser in which somebody signed in."""
    began = after(began_s)
    return ConsoleSession(
        id=ConsoleSessionId(numbered("ses", number)),
        organization_id=organization_id,
        holder=ApiKeyId(holder),
        provider_id=PROVIDER,
        created_at=began,
        last_seen_at=began,
        expires_at=began + SESSION_LASTS,
        address="192.0.2.1",
        user_agent="Firefox",
    )


def an_impersonation(
    number: int = 1, *, actor: str = SUPPORT, user_id: UserId = USER, began_s: float = 0, token: str | None = None
) -> Impersonation:
    """SUPPORT acts as a user for a quarter of an hour."""
    began = after(began_s)
    return Impersonation(
        id=ImpersonationId(numbered("imp", number)),
        organization_id=ORG,
        actor=ApiKeyId(actor),
        user_id=user_id,
        reason="Ticket 4711",
        token_hash=hash_token(token or f"dgi_{number}"),
        created_at=began,
        expires_at=began + timedelta(minutes=DEFAULT_MINUTES),
    )
