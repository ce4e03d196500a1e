"""`dragoman login` and `logout`: a person's sign-in to a service, stored on this machine."""

from typing import Annotated

import typer

from interfaces.cli.session import session_of


def login(
    *,
    context: typer.Context,
    provider: Annotated[
        str | None, typer.Option("--provider", metavar="NAME", help="The identity provider, where there are several.")
    ] = None,
    organization: Annotated[
        str | None,
        typer.Option("--organization", metavar="ID", help="Your organization, if the identity provider is its own."),
    ] = None,
    browser: Annotated[
        bool, typer.Option("--browser", help="Sign in with a browser on this machine, without a code to confirm.")
    ] = False,
) -> None:
    """Sign in to the service with your company's identity provider. You confirm a code in a browser
    of any machine. Where the provider has no codes, a browser on this machine signs you in. Later
    commands act as you until `dragoman logout`; the tokens are stored with the mode 0600 below
    DRAGOMAN_CONFIG_DIR."""
    from interfaces.cli.signing_in import log_in

    session = session_of(context)
    session.complete(log_in(session.terminal, provider, organization, in_browser=browser))


def logout(context: typer.Context) -> None:
    """Sign out of the service. The tokens are revoked at the identity provider, if it can, and
    deleted here."""
    from interfaces.cli.signing_in import log_out

    session = session_of(context)
    session.complete(log_out(session.terminal))
