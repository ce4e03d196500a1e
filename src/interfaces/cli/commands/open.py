"""`dragoman open`: the console in the browser."""

import webbrowser
from typing import Annotated

import typer

from interfaces.cli.answers import read_as
from interfaces.cli.api import IN_PROCESS, ServiceApi, path_to
from interfaces.cli.failures import CommandFailure
from interfaces.cli.session import session_of
from interfaces.console_paths import browsable
from interfaces.http.api_keys.views import SignInLinkView


def open_console(
    context: typer.Context,
    only_print: Annotated[bool, typer.Option("--print", help="Print the link instead of opening it.")] = False,
) -> None:
    """Open the console in the browser, signed in. The link has the rights of the key of this
    command, and works once, for fifteen minutes. Without a browser it is printed."""
    session = session_of(context)

    async def show(api: ServiceApi) -> None:
        if api.address == IN_PROCESS:
            raise CommandFailure("No service is running. Start one with `dragoman serve`.")
        link = read_as(SignInLinkView, await api.post(path_to("sign-in-links")))
        url = f"{browsable(api.address)}{link['path']}"
        if only_print or not session.terminal.is_interactive or not webbrowser.open(url):
            session.terminal.note("Open this in a browser. It signs you in, once, within fifteen minutes:")
            session.terminal.line(url)
        else:
            session.terminal.note(f"Opened the console of {api.address} in the browser.")

    session.perform(show)
