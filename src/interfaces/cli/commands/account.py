"""`dragoman account`: the caller's own accounts at MCP servers."""

import sys
from typing import Annotated

import typer

from domain.json_value import JsonObject
from interfaces.cli.answers import entries_of
from interfaces.cli.api import ServiceApi, path_to
from interfaces.cli.arguments import ServerArgument
from interfaces.cli.failures import BadUsage, CommandFailure
from interfaces.cli.session import JsonFlag, session_of
from interfaces.http.accounts.views import AccountView
from interfaces.http.secrets.reference_views import WriteOnlyView

account_app = typer.Typer(
    help="Manage your own accounts at MCP servers.", no_args_is_help=True, epilog="Example: dragoman account list"
)


@account_app.command("list", epilog="Example: dragoman account list --json")
def list_accounts(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List your accounts at MCP servers, connected or not."""
    session = session_of(context)

    async def show(api: ServiceApi) -> None:
        document = await api.get(path_to("me", "accounts"))
        if as_json:
            session.terminal.json(document)
            return
        rows = [
            (
                each["server"],
                _state(each),
                each["scope"] or "",
                each["renewed_at"] or "",
            )
            for each in entries_of(AccountView, document)
        ]
        empty = "No MCP server of your organization is used with each person's own account."
        session.terminal.table(("server", "state", "granted", "last token"), rows, empty=empty)

    session.perform(show)


def _state(account: AccountView) -> str:
    if not account["used"]:
        return "not used any more"
    if issuer := account["sign_in_with"]:
        return f"needs a sign-in with {issuer}"
    return "connected" if account["connected"] else "not connected"


@account_app.command("connect", epilog="Example: dragoman account connect tickets")
def connect_account(context: typer.Context, slug: ServerArgument) -> None:
    """Print the page where you connect or renew your account."""
    session = session_of(context)

    async def show(api: ServiceApi) -> None:
        session.terminal.note("Open this in a browser:")
        session.terminal.line((await _account(api, slug))["link"])

    session.perform(show)


@account_app.command(
    "set",
    epilog="Examples: dragoman account set tickets; printenv TICKETS_TOKEN | dragoman account set tickets token",
)
def set_account_secrets(
    context: typer.Context,
    slug: ServerArgument,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One of the secrets; all if absent.")] = None,
) -> None:
    """Give or replace your secrets for an MCP server. Values are prompted for, or one is read from
    a pipe; they cannot be read back."""
    session = session_of(context)

    async def give(api: ServiceApi) -> None:
        found = await _account(api, slug)
        names = [name] if name is not None else found["secrets"]
        if not names:
            raise CommandFailure(f"{slug} takes no secrets. See `dragoman account connect {slug}`.")
        if len(names) > 1 and not sys.stdin.isatty():
            raise BadUsage(f"Name one of its secrets: {', '.join(names)}.")
        if found["env"]:
            session.terminal.note(f"Its variables, beside the program: {', '.join(map(_shown, found['env'].items()))}.")
        values: JsonObject = {
            each: session.read_secret(f"Your {each} for {slug}, which goes to {found['address']} (not shown): ")
            for each in names
        }
        await api.patch(path_to("me", "accounts", slug), {"secrets": values, "offer": found["offer"]})
        session.terminal.note(f"Gave {', '.join(names)} for {slug}.")

    session.perform(give)


@account_app.command("disconnect", epilog="Example: dragoman account disconnect tickets")
def disconnect_account(context: typer.Context, slug: ServerArgument) -> None:
    """Delete your tokens or secrets for an MCP server. Runs that need them wait until you connect
    again."""
    session_of(context).delete(path_to("me", "accounts", slug), f"Disconnected your account at {slug}.")


def _shown(variable: tuple[str, WriteOnlyView]) -> str:
    name, value = variable
    return name if isinstance(value, str) else f"{name} (secret {value['secret']})"


async def _account(api: ServiceApi, slug: str) -> AccountView:
    listed = entries_of(AccountView, await api.get(path_to("me", "accounts")))
    found = next((each for each in listed if slug in (each["server"], each["server_id"])), None)
    if found is None or not found["used"]:
        raise CommandFailure(f"No MCP server {slug!r} is used with your own account. See `dragoman account list`.")
    return found
