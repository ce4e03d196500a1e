"""The caller's own accounts at MCP servers: connecting, renewing and disconnecting them, and giving
secrets."""

import secrets
from urllib.parse import parse_qs, urlsplit

from litestar import Response, get, post
from litestar.datastructures import Cookie
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.plugins.htmx import HTMXHeaders

from application.mcp.connect_account import ConnectAccount, ConnectAccountCommand
from application.mcp.disconnect_account import DisconnectAccount, DisconnectAccountCommand
from application.mcp.give_account_secrets import GiveAccountSecrets, GiveAccountSecretsCommand
from application.mcp.list_accounts import ListAccounts
from application.mcp.oauth_client import CALLBACK_PATH
from interfaces.console.faults import FormCheck
from interfaces.console.pages import HEADERS, Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.sign_in import Form
from interfaces.console.sign_in_pages import SignInPages
from interfaces.console_paths import PATH
from interfaces.http.oauth.routes import account_cookie

_LASTS_S = 600
_SECRET = "secrets."


@get("/accounts")
async def show_accounts(
    *,
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    list_accounts: NamedDependency[ListAccounts],
    server: FromQuery[str] = "",
) -> Response[str]:
    """All servers that are used with each person's account, and those where something of the
    caller's is left. `server` is the one that a link asks to connect."""
    is_person = request.principal.person_id is not None
    accounts = await list_accounts.execute(request.principal) if is_person else ()
    context = {"accounts": accounts, "wanted": server, "is_person": is_person}
    return pages.show(request, "accounts.html", context)


@post("/accounts/{server:str}/connect", status_code=200)
async def connect_account(
    request: ConsoleRequest,
    server: FromPath[str],
    connect_account: NamedDependency[ConnectAccount],
    sign_in_pages: NamedDependency[SignInPages],
) -> Response[str]:
    """Send this browser to the authorization server. Its cookie is needed when it comes back, so
    that no attacker connects an account by sending others there."""
    browser = secrets.token_urlsafe(32)
    command = ConnectAccountCommand(principal=request.principal, server=server, browser=browser)
    begun = await connect_account.execute(command)
    state = parse_qs(urlsplit(begun.url).query)["state"][0]
    cookie = Cookie(
        key=account_cookie(state),
        value=browser,
        path=CALLBACK_PATH,
        max_age=_LASTS_S,
        httponly=True,
        samesite="lax",
        secure=sign_in_pages.callback.startswith("https:"),
    )
    return Response("", headers={**HEADERS, HTMXHeaders.REDIRECT.value: begun.url}, cookies=[cookie])


@post("/accounts/{server:str}/secrets", status_code=200)
async def give_secrets(
    *,
    request: ConsoleRequest,
    server: FromPath[str],
    data: Form,
    pages: NamedDependency[Pages],
    give_account_secrets: NamedDependency[GiveAccountSecrets],
) -> Response[str]:
    """Store the values of the filled fields: empty ones keep what is stored."""
    values = {name.removeprefix(_SECRET): value for name, value in data.items() if name.startswith(_SECRET) and value}
    with FormCheck() as check:
        await give_account_secrets.execute(
            GiveAccountSecretsCommand(
                principal=request.principal, server=server, values=values, offer=data.get("offer", "")
            )
        )
        return Response("", headers={HTMXHeaders.REDIRECT.value: f"{PATH}/accounts"})
    return check.shown(pages, request)


@post("/accounts/{server:str}/disconnect", status_code=200)
async def disconnect_account(
    request: ConsoleRequest, server: FromPath[str], disconnect_account: NamedDependency[DisconnectAccount]
) -> Response[str]:
    await disconnect_account.execute(DisconnectAccountCommand(principal=request.principal, server=server))
    return Response("", headers={HTMXHeaders.REDIRECT.value: f"{PATH}/accounts"})
