"""The page on which a person lets an OAuth client use an agent's tools (authorization endpoint)."""

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.plugins.htmx import HTMXHeaders

from application.agents.queries import ListAgents
from application.gateway.authorization.check_authorization import (
    CheckAuthorization,
    CheckAuthorizationCommand,
    CheckedAuthorization,
)
from application.gateway.authorization.grant_access import GrantAccess, GrantAccessCommand
from application.gateway.authorization.oauth_client import host_of, is_local
from application.identity.queries import GetOrganization, GetUser
from application.tools.explain_agent import ExplainAgent, ExplainAgentCommand
from application.tools.tool_standing import ToolStanding
from domain.agents.agent import AgentSettings
from domain.errors import ServiceError
from domain.identity.api_key import Principal
from domain.ids import UserId
from interfaces.console.pages import HEADERS, Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.sign_in import Form
from interfaces.console.sign_in_pages import SignInPages
from interfaces.console.whole_lists import all_of

_USABLE = (ToolStanding.ALLOWED, ToolStanding.ASKED_FOR)
_MAX_SHOWN = 100


class ConsentPages:
    """What the page says: who asks, from where, for what, and in whose name."""

    def __init__(
        self,
        *,
        list_agents: ListAgents,
        explain_agent: ExplainAgent,
        get_organization: GetOrganization,
        get_user: GetUser,
    ) -> None:
        self._list_agents = list_agents
        self._explain = explain_agent
        self._get_organization = get_organization
        self._get_user = get_user

    async def of(self, principal: Principal, asked: CheckedAuthorization) -> dict[str, object]:
        user = await self._get_user.execute(principal, UserId(principal.key_id))
        organization = await self._get_organization.execute(principal)
        context: dict[str, object] = {
            "client": asked.client,
            "redirect_host": host_of(asked.redirect_uri),
            "is_local": is_local(asked.redirect_uri),
            "agent": asked.agent,
            "who": user.email or user.name or user.id,
            "organization": organization.name,
        }
        if asked.agent is None:
            agents = await all_of(lambda request: self._list_agents.execute(principal=principal, page=request))
            return {**context, "agents": [each for each in agents if each.config.enabled]}
        command = ExplainAgentCommand(principal=principal, settings=AgentSettings.of(asked.agent.config))
        explained = await self._explain.execute(command)
        tools = [each for each in explained.tools if each.standing in _USABLE]
        return {**context, "tools": tools[:_MAX_SHOWN], "more": max(0, len(tools) - _MAX_SHOWN)}


@get("/authorize")
async def show_consent(
    *,
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    sign_in_pages: NamedDependency[SignInPages],
    check_authorization: NamedDependency[CheckAuthorization],
    consent_pages: NamedDependency[ConsentPages],
) -> Response[str]:
    """Ask for a consent, each time: a client that was admitted before may be another one now."""
    try:
        asked = await check_authorization.execute(_command(request))
    except ServiceError as error:
        if error.code != "person_required":
            raise
        here = f"{request.url.path}?{request.url.query}"
        context = await sign_in_pages.context(here, problem=error.detail)
        return pages.show(request, "sign_in.html", context, status=403, headers=sign_in_pages.headers(here))
    context = await consent_pages.of(request.principal, asked)
    return pages.show(request, "authorize.html", context, headers=sign_in_pages.headers(request.url.path))


@post("/authorize", status_code=200)
async def answer_consent(
    *,
    request: ConsoleRequest,
    data: Form,
    check_authorization: NamedDependency[CheckAuthorization],
    grant_access: NamedDependency[GrantAccess],
) -> Response[str]:
    """Send the browser back to the client, with a code or a refusal. The consent is of our own
    page, in this session: the request has the token of the page."""
    command = _command(request)
    if data.get("decision") == "allow":
        target = await grant_access.execute(GrantAccessCommand(request=command))
    else:
        target = (await check_authorization.execute(command)).answer(error="access_denied")
    return Response("", headers={**HEADERS, HTMXHeaders.REDIRECT.value: target})


def _command(request: ConsoleRequest) -> CheckAuthorizationCommand:
    query = request.scope["query_string"].decode("latin-1")
    return CheckAuthorizationCommand(
        principal=request.principal, query=query, agent=request.query_params.get("agent") or None
    )
