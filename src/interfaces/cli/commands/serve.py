"""`dragoman serve`: the service in the foreground."""

from typing import Annotated

import typer

from interfaces.cli.loading import loading


def serve(
    worker: Annotated[
        bool, typer.Option("--worker/--no-worker", help="Whether this process also executes runs.")
    ] = True,
) -> None:
    """Run the service on DRAGOMAN_HOST and DRAGOMAN_PORT until it is stopped."""
    with loading():
        from interfaces.cli.checked_settings import checked_settings
        from interfaces.service import serve as serve_until_stopped

    if code := serve_until_stopped(checked_settings(), worker=worker):
        raise typer.Exit(code)
