"""`dragoman serve`: the service in the foreground."""

import gc
from typing import Annotated

import typer


def serve(
    worker: Annotated[
        bool, typer.Option("--worker/--no-worker", help="Whether this process also executes runs.")
    ] = True,
) -> None:
    """Run the service on DRAGOMAN_HOST and DRAGOMAN_PORT until it is stopped."""
    # What is imported stays for good: collecting it over and over costs a tenth of the start, and memory that is shared.
    gc.disable()
    from interfaces.cli.connecting import checked_settings
    from interfaces.service import serve as serve_until_stopped

    gc.freeze()
    gc.enable()
    if code := serve_until_stopped(checked_settings(), worker=worker):
        raise typer.Exit(code)
