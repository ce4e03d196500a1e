"""A gateway at dragoman.example, a person of its organization, and a client whose metadata document
is on the web."""

from datetime import datetime
from urllib.parse import urlencode

from cryptography.fernet import Fernet
from pytest_mock import MockerFixture, MockType

from application.gateway.authorization.check_authorization import CheckAuthorization, CheckAuthorizationCommand
from application.gateway.authorization.find_client import FindOAuthClient
from application.gateway.authorization.grant_access import GrantAccess
from application.gateway.authorization.issued_tokens import TokenIssuer
from application.gateway.authorization.ports import ClientDocuments
from application.gateway.authorization.redeem_code import RedeemCode, RedeemCodeCommand
from application.gateway.authorization.refresh_access import RefreshAccess, RefreshAccessCommand
from application.gateway.authorization.registrations import ClientRegistrations
from application.gateway.authorization.revoke_token import RevokeClientToken
from application.gateway.sessions.gateway_access import GatewayAccess
from application.gateway.sessions.revoke_session import RevokeGatewaySession
from application.mcp.oauth_client import PublicAddress
from application.mcp.ports import McpConnections
from domain.gateway.session import GatewaySession
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ApiKeyId, GatewaySessionId
from domain.json_value import JsonObject
from infrastructure.events.wakeups import InProcessWakeups
from infrastructure.secrets.secret_box import SecretBox
from tests.builders import ORG, after, an_agent, an_audit_event
from tests.doubles.agents import InMemoryAgentStore
from tests.doubles.client_grants import InMemoryClientGrantStore
from tests.doubles.custom_roles import InMemoryCustomRoleStore
from tests.doubles.gateway import InMemoryGatewaySessionStore
from tests.doubles.people import InMemoryUserStore
from tests.doubles.state import InMemoryState
from tests.doubles.stored_gateway_session import StoredGatewaySession
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.gateway_builders import (
    CALLBACK,
    CHALLENGE,
    CLIENT,
    CODE,
    RESOURCE,
    VERIFIER,
    a_client_grant,
    a_gateway_session,
)
from tests.people_builders import USER, a_provider, a_user

BOX = SecretBox([Fernet.generate_key().decode()])
DOCUMENT: JsonObject = {
    "client_id": CLIENT,
    "client_name": "Editor",
    "redirect_uris": ["http://127.0.0.1/callback"],
    "token_endpoint_auth_method": "none",
}


def a_person(role: Role = Role.RUNNER, *, until: datetime | None = None) -> Principal:
    """Signed in for an hour."""
    return Principal(organization_id=ORG, key_id=ApiKeyId(USER), role=role, user_until=until or after(3_600))


def a_query(**changes: str | None) -> str:
    """An authorization request; None leaves a parameter out."""
    parameters = {
        "response_type": "code",
        "client_id": CLIENT,
        "redirect_uri": CALLBACK,
        "state": "state-of-the-client",
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        "resource": RESOURCE,
        **changes,
    }
    return urlencode({name: value for name, value in parameters.items() if value is not None})


class Scene:
    def __init__(self, mocker: MockerFixture) -> None:
        self.state = InMemoryState()
        self.state.identity_providers[a_provider().id] = a_provider()
        self.state.users[USER] = a_user(role=Role.RUNNER)
        self.clock, self.ids = FixedClock(), SequentialIds()
        self.grants = InMemoryClientGrantStore(self.state)
        self.sessions = InMemoryGatewaySessionStore(self.state)
        self.agents = InMemoryAgentStore(self.state)
        self.access: MockType = mocker.create_autospec(GatewayAccess, instance=True)
        self.documents: MockType = mocker.create_autospec(ClientDocuments, instance=True)
        self.documents.read.return_value = DOCUMENT
        self.address: MockType = mocker.create_autospec(PublicAddress, instance=True)
        self.address.url = "https://dragoman.example"
        self.registrations = ClientRegistrations(grants=self.grants, box=BOX, clock=self.clock)
        self.find_client = FindOAuthClient(documents=self.documents, registrations=self.registrations)
        self.check = CheckAuthorization(find_client=self.find_client, agents=self.agents, address=self.address)
        self.grant = GrantAccess(check_authorization=self.check, grants=self.grants, clock=self.clock, ids=self.ids)
        self.revoke_session = RevokeGatewaySession(
            sessions=self.sessions,
            access=self.access,
            connections=mocker.create_autospec(McpConnections, instance=True),
            wakeups=InProcessWakeups(),
            clock=self.clock,
            ids=self.ids,
        )
        self.tokens = self.issuer()
        self.redeem = RedeemCode(grants=self.grants, tokens=self.tokens)
        self.refresh = RefreshAccess(grants=self.grants, tokens=self.tokens)
        self.revoke = RevokeClientToken(grants=self.grants, tokens=self.tokens)

    def issuer(self, *, external: str | None = None) -> TokenIssuer:
        return TokenIssuer(
            grants=self.grants,
            user_access=InMemoryUserStore(self.state),
            custom_roles=InMemoryCustomRoleStore(self.state),
            access=self.access,
            revoke_session=self.revoke_session,
            clock=self.clock,
            ids=self.ids,
            external=external,
        )

    async def with_agent(self, *, enabled: bool = True) -> None:
        """The agent `researcher`."""
        await self.agents.add(an_agent(enabled=enabled), an_audit_event(90))

    def with_grant(self) -> GatewaySessionId:
        """The person has consented, and the client has the code `CODE`."""
        session = a_gateway_session(
            client_id=CLIENT, created_by=ApiKeyId(USER), token_expires_at=after(0), expires_at=after(60)
        )
        grant = a_client_grant(session.id)
        self.state.client_grants[session.id] = grant
        self.state.gateway_sessions[session.id] = StoredGatewaySession(session=session)
        return session.id

    def session(self, session_id: GatewaySessionId) -> GatewaySession:
        return self.state.gateway_sessions[session_id].session


def asked(
    principal: Principal | None = None, *, agent: str | None = None, **changes: str | None
) -> CheckAuthorizationCommand:
    return CheckAuthorizationCommand(principal=principal or a_person(), query=a_query(**changes), agent=agent)


def redemption(**changes: str | None) -> RedeemCodeCommand:
    values = {"client_id": CLIENT, "code": CODE, "redirect_uri": CALLBACK, "verifier": VERIFIER, **changes}
    return RedeemCodeCommand(**values)  # type: ignore[arg-type]


def renewal(refresh_token: str, **changes: str) -> RefreshAccessCommand:
    return RefreshAccessCommand(**{"client_id": CLIENT, "refresh_token": refresh_token, **changes})
