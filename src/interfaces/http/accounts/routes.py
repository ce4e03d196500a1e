"""Routes of the caller's own accounts at MCP servers."""

from litestar import delete, get, patch
from litestar.di import NamedDependency
from litestar.openapi.spec import Tag
from litestar.params import JSONBody

from application.mcp.disconnect_account import DisconnectAccount, DisconnectAccountCommand
from application.mcp.give_account_secrets import GiveAccountSecrets, GiveAccountSecretsCommand
from application.mcp.list_accounts import ListAccounts
from interfaces.http.accounts.schemas import AccountSecretsBody
from interfaces.http.accounts.views import AccountList, AccountView, account_view
from interfaces.http.paths import ServerPath
from interfaces.http.problems import documented
from interfaces.http.requests import ApiRequest

TAG = Tag(name="Accounts", description="The caller's own accounts at MCP servers.")


@get("/me/accounts", summary="List my accounts", responses=documented(403))
async def list_accounts(request: ApiRequest, list_accounts: NamedDependency[ListAccounts]) -> AccountList:
    """For people who signed in, with any role. The MCP servers with `credentials` `person`, each
    with the page where the caller connects their account: in a browser, because the caller consents
    there. The list also has servers that do not use personal accounts any more, if tokens or
    secrets of the caller are still stored for them, and servers of groups that the caller left, if
    secrets of the caller are."""
    return {"data": [account_view(each) for each in await list_accounts.execute(request.principal)]}


@patch("/me/accounts/{server:str}", summary="Give my secrets", responses=documented(403, 404, 409, 413, 422))
async def give_account_secrets(
    request: ApiRequest,
    server: ServerPath,
    data: JSONBody[AccountSecretsBody],
    give_account_secrets: NamedDependency[GiveAccountSecrets],
    list_accounts: NamedDependency[ListAccounts],
) -> AccountView:
    """For people who signed in, with any role, at MCP servers that take secrets of each person. The
    values are write-only; those that are not given again stay. The caller's runs that wait for them
    continue."""
    given = await give_account_secrets.execute(
        GiveAccountSecretsCommand(
            principal=request.principal,
            server=server,
            values=data.secrets,
            address=data.address,
            offer=data.offer,
        )
    )
    listed = await list_accounts.execute(request.principal)
    return next(account_view(each) for each in listed if each.server.id == given.id)


@delete("/me/accounts/{server:str}", summary="Disconnect my account", responses=documented(403, 404, 409))
async def disconnect_account(
    request: ApiRequest, server: ServerPath, disconnect_account: NamedDependency[DisconnectAccount]
) -> None:
    """For people who signed in, with any role. Deletes the caller's tokens or secrets for the
    server. Runs that need them wait for a new consent."""
    await disconnect_account.execute(DisconnectAccountCommand(principal=request.principal, server=server))
