"""CheckAuthorization: what an authorization request asks a person for."""

from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlencode, urlsplit

from application.agents.agent_lookup import existing_agent
from application.agents.ports import AgentStore
from application.gateway.authorization.find_client import FindOAuthClient
from application.gateway.authorization.oauth_client import OAuthClient
from application.gateway.sessions.open_session import GATEWAY_PATH
from application.mcp.oauth_client import PublicAddress, public_url
from domain.agents.agent import Agent
from domain.errors import ErrorKind, ServiceError, conflict, invalid
from domain.gateway.client_grant import is_challenge
from domain.identity.api_key import Principal
from domain.identity.permission import Permission

SCOPE = "mcp"
"""The only scope: the tools of one agent."""
MAX_QUERY = 2_000
_MAX_STATE = 1_000
_SINGLE = ("client_id", "redirect_uri", "response_type", "state", "code_challenge", "code_challenge_method", "resource")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckAuthorizationCommand:
    """`query` are the parameters of the request as they came. `agent` is the person's choice, where
    `resource` names none."""

    principal: Principal
    query: str = field(repr=False)
    agent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedAuthorization:
    """A valid request. `agent` None: the person has to choose one."""

    client: OAuthClient
    redirect_uri: str
    resource: str
    challenge: str
    state: str | None
    issuer: str
    agent: Agent | None

    def answer(self, **parameters: str) -> str:
        """Where the browser goes with the answer. It names this server, so that no client takes it
        for that of another one (RFC 9207)."""
        sent = {**parameters, **({} if self.state is None else {"state": self.state}), "iss": self.issuer}
        return f"{self.redirect_uri}{'&' if '?' in self.redirect_uri else '?'}{urlencode(sent)}"


class CheckAuthorization:
    """Rules:
    - This service is the authorization server, not `external`.
    - The caller is a person, not an API key, with the role runner, and acts as no other user.
    - The client is known, and has registered the redirect URI.
    - No parameter comes twice. The challenge (PKCE) is there, with the method S256.
    - The resource is the gateway of this service. Without one it is `/mcp`.
    - The agent is the one that the resource names, else the person's choice; it is enabled.
    - A faulty request is shown to the person, and never sends the browser elsewhere.

    Raises: ServiceError authorization_elsewhere, invalid_client, invalid_request, invalid_target,
    unsupported_response_type, person_required, impersonation_refused, role_insufficient,
    agent_not_found, agent_disabled.
    """

    def __init__(
        self, *, find_client: FindOAuthClient, agents: AgentStore, address: PublicAddress, external: str | None = None
    ) -> None:
        self._external = external
        self._find_client = find_client
        self._agents = agents
        self._address = address

    async def execute(self, command: CheckAuthorizationCommand) -> CheckedAuthorization:
        if self._external is not None:
            raise conflict("authorization_elsewhere", "Another authorization server grants access to this gateway.")
        command.principal.require_self()
        if command.principal.user_until is None:
            detail = "An API key grants nothing to clients: sign in as a person, with an identity provider."
            raise ServiceError("person_required", ErrorKind.FORBIDDEN, detail)
        command.principal.require(Permission.RUNS_START)
        given = _parameters(command.query)
        client = await self._find_client.execute(given.get("client_id", ""))
        redirect_uri = given.get("redirect_uri", "")
        if not client.accepts(redirect_uri):
            raise invalid("invalid_request", "The redirect URI is not one that the client has registered.")
        if given.get("response_type") != "code":
            raise invalid("unsupported_response_type", "The response type must be code.")
        challenge = given.get("code_challenge", "")
        if given.get("code_challenge_method") != "S256" or not is_challenge(challenge):
            raise invalid("invalid_request", "The client must use PKCE with the method S256.")
        gateway = public_url(self._address, GATEWAY_PATH)
        resource = given.get("resource", gateway)
        if resource != gateway and not resource.startswith(f"{gateway}?"):
            raise invalid("invalid_target", f"The client wants access to {resource}, and this is {gateway}.")
        agent = await self._agent(command.principal, _named(resource) or command.agent)
        return CheckedAuthorization(
            client=client,
            redirect_uri=redirect_uri,
            resource=resource,
            challenge=challenge,
            state=given.get("state"),
            issuer=self._address.url or "",
            agent=agent,
        )

    async def _agent(self, principal: Principal, name: str | None) -> Agent | None:
        if not name:
            return None
        agent = await existing_agent(self._agents, principal, name)
        if not agent.config.enabled:
            raise conflict("agent_disabled", f"The agent {agent.config.name!r} is disabled.")
        return agent


def organization_of(query: str) -> str | None:
    """The organization that an authorization request names with its resource: whose identity
    providers are offered."""
    resource = parse_qs(query).get("resource", [""])[0]
    return parse_qs(_query_of(resource)).get("organization", [None])[0]


def _parameters(query: str) -> dict[str, str]:
    if len(query) > MAX_QUERY:
        raise invalid("invalid_request", f"The authorization request is longer than {MAX_QUERY} characters.")
    given = parse_qs(query, keep_blank_values=True)
    for name in _SINGLE:
        if len(given.get(name, ())) > 1:
            raise invalid("invalid_request", f"The parameter {name} came twice.")
    if len(given.get("state", [""])[0]) > _MAX_STATE:
        raise invalid("invalid_request", "The state is too long.")
    return {name: values[0] for name, values in given.items()}


def _named(resource: str) -> str | None:
    """The agent that a resource names."""
    return parse_qs(_query_of(resource)).get("agent", [None])[0]


def _query_of(resource: str) -> str:
    try:
        return urlsplit(resource).query
    except ValueError:
        return ""
