"""Gateway sessions: opening one with what clients need to connect, and revoking."""

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.plugins.htmx import HTMXHeaders

from application.agents.name_agents import NameAgents
from application.agents.queries import ListAgents
from application.gateway.sessions.open_session import OpenGatewaySession, OpenGatewaySessionCommand
from application.gateway.sessions.queries import ListGatewaySessions
from application.gateway.sessions.revoke_session import RevokeGatewaySession, RevokeGatewaySessionCommand
from application.system.pages import PageRequest
from application.system.ports import Clock
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import GatewaySessionId
from interfaces.client_configs import CLIENTS
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.sign_in import Form
from interfaces.console.run_starters import RunStarters
from interfaces.console.whole_lists import all_of
from interfaces.console_paths import PATH

PAGE = 50
CHANGED = "gateway-changed"
"""Event of the browser after a session was opened."""
HOURS = {"1": 1, "24": 24, "168": 7 * 24, "720": 30 * 24}
"""Lifetimes that are offered."""


class GatewayPages:
    """Data of the page of sessions."""

    def __init__(
        self,
        *,
        list_gateway_sessions: ListGatewaySessions,
        list_agents: ListAgents,
        name_agents: NameAgents,
        run_starters: RunStarters,
        clock: Clock,
    ) -> None:
        self._list = list_gateway_sessions
        self._list_agents = list_agents
        self._name_agents = name_agents
        self._starters = run_starters
        self._clock = clock

    async def of(self, principal: Principal, cursor: str | None) -> dict[str, object]:
        """Newest first. Raises FORBIDDEN."""
        page = await self._list.execute(principal, PageRequest(limit=PAGE, cursor=cursor))
        agents = await all_of(lambda request: self._list_agents.execute(principal=principal, page=request))
        return {
            "sessions": page.items,
            "next_cursor": page.next_cursor,
            "agents": [each for each in agents if each.config.enabled],
            "may_open": principal.may(Permission.GATEWAY_OPEN),
            "agent_names": await self._name_agents.execute(principal, (each.agent_id for each in page.items)),
            "names": await self._starters.names(principal, (each.created_by for each in page.items)),
            "now": self._clock.now(),
            "hours": HOURS,
        }


@get("/gateway")
async def show_gateway(
    *,
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    gateway_pages: NamedDependency[GatewayPages],
    cursor: FromQuery[str] = "",
) -> Response[str]:
    return pages.show(request, "gateway.html", await gateway_pages.of(request.principal, cursor or None))


@post("/gateway", status_code=200)
async def open_session(
    request: ConsoleRequest,
    data: Form,
    pages: NamedDependency[Pages],
    open_gateway_session: NamedDependency[OpenGatewaySession],
) -> Response[str]:
    """The token, once, and the configuration of each known client with it."""
    opened = await open_gateway_session.execute(
        OpenGatewaySessionCommand(
            principal=request.principal,
            agent=data.get("agent", ""),
            ttl_s=3_600 * HOURS.get(data.get("hours", ""), 1),
        )
    )
    url = opened.url or ""
    snippets = [(name, client.file, client.text(url, opened.token)) for name, client in CLIENTS.items()]
    context = {"token": opened.token, "url": url, "snippets": snippets, "expires_at": opened.session.expires_at}
    headers = {HTMXHeaders.TRIGGER_EVENT.value: CHANGED}
    return pages.show(request, "parts/gateway_opened.html", context, headers=headers)


@post("/gateway/{session_id:str}/revoke", status_code=200)
async def revoke_session(
    request: ConsoleRequest, session_id: FromPath[str], revoke_gateway_session: NamedDependency[RevokeGatewaySession]
) -> Response[str]:
    await revoke_gateway_session.execute(
        RevokeGatewaySessionCommand(principal=request.principal, session_id=GatewaySessionId(session_id))
    )
    return Response("", headers={HTMXHeaders.REDIRECT.value: f"{PATH}/gateway"})
