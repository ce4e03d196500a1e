"""Routes that browsers and authorization servers open: no API key, no redirect, no echo of the
request."""

import hashlib
from html import escape
from typing import Annotated

from litestar import MediaType, Request, Response, Router, get
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Tag
from litestar.params import QueryParameter

from application.identity.queries import ListOfferedProviders
from application.mcp.authorization import AuthorizationAnswer
from application.mcp.finish_mcp_authorization import FinishMcpAuthorization
from application.mcp.oauth_client import DescribeOAuthClient
from domain.errors import ServiceError
from domain.ids import OrganizationId
from interfaces.http.oauth.views import CliProviderList
from interfaces.http.problems import STATUS_OF_KIND, described_problems

TAG = Tag(name="OAuth", description="What browsers and authorization servers open.")
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Dragoman</title></head>
<body><h1>{title}</h1><p>{text}</p></body></html>
"""

OrganizationOfProviders = Annotated[
    str | None, QueryParameter(description="Id of an organization, to see its identity providers too.")
]

_REFUSED = ResponseSpec(
    data_container=str, media_type=MediaType.HTML, description="The reason of the failure, as a page."
)


@get(
    "/oauth/callback",
    summary="Finish an authorization",
    media_type=MediaType.HTML,
    responses=dict.fromkeys(sorted({400, *STATUS_OF_KIND.values()}), _REFUSED),
)
async def finish_authorization(
    *,
    request: Request[None, None, State],
    finish_mcp_authorization: NamedDependency[FinishMcpAuthorization],
    code: Annotated[str | None, QueryParameter(description="The code, unless there is an error.")] = None,
    given_state: Annotated[
        str | None, QueryParameter(name="state", description="The state that started the authorization.")
    ] = None,
    error: Annotated[str | None, QueryParameter(description="Code of an error.")] = None,
    iss: Annotated[str | None, QueryParameter(description="The authorization server.")] = None,
) -> Response[str]:
    """The authorization server redirects the browser here. The code is accepted once, for the
    state that started the authorization."""
    state = given_state or ""
    browser = request.cookies.get(account_cookie(state))
    answer = AuthorizationAnswer(state=state, code=code, error=error, issuer=iss, browser=browser)
    try:
        server = await finish_mcp_authorization.execute(answer)
    except ServiceError as failure:
        return _page("Not authorized", failure.detail, status=STATUS_OF_KIND[failure.kind])
    whose = "" if server.person_id is None else " with your account, for you"
    text = f"Dragoman may use the MCP server {server.config.slug}{whose} now. You can close this window."
    return _page("Authorized", text)


@get("/oauth/client.json", summary="Read the OAuth client metadata document")
async def describe_client(describe_oauth_client: NamedDependency[DescribeOAuthClient]) -> Response[dict[str, object]]:
    """Dragoman's client metadata for authorization servers; its URL is the client id."""
    document = await describe_oauth_client.execute()
    return Response({**document}, headers={"Cache-Control": "public, max-age=3600"})


@get(
    "/oauth/identity-providers",
    summary="List the identity providers of the command line",
    responses=described_problems(400, 500),
)
async def list_cli_providers(
    list_offered_providers: NamedDependency[ListOfferedProviders], organization: OrganizationOfProviders = None
) -> CliProviderList:
    """Where people may sign in to the command line, without authentication: the identity providers
    of the installation and of `organization` that have a client for it."""
    offered = await list_offered_providers.execute(None if organization is None else OrganizationId(organization))
    return {
        "data": [
            {
                "name": provider.name,
                "issuer": provider.issuer,
                "client_id": provider.cli_client_id,
                "scopes": list(provider.scopes),
            }
            for provider in offered
            if provider.cli_client_id is not None
        ]
    }


def account_cookie(state: str) -> str:
    """The cookie that binds the authorization of a person's account to the browser that began it;
    one for each authorization, so that several may be under way."""
    return f"dragoman_account_{hashlib.sha256(state.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def oauth_router() -> Router:
    return Router("/", route_handlers=[finish_authorization, describe_client, list_cli_providers], tags=[TAG.name])


def _page(title: str, text: str, *, status: int = 200) -> Response[str]:
    content = _PAGE.format(title=escape(title), text=escape(text))
    return Response(content, status_code=status, media_type=MediaType.HTML, headers=_HEADERS)
