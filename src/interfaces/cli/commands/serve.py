"""`dragoman serve`: the service in the foreground."""

from typing import Annotated

import typer

from domain.errors import ServiceError
from interfaces.cli.failures import CommandFailure
from interfaces.cli.loading import loading

_ALREADY = frozenset({"address_unusable", "home_in_use"})


def serve(
    *,
    host: Annotated[
        str | None, typer.Option("--host", metavar="HOST", help="Address to listen on. Default: DRAGOMAN_HOST.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", metavar="PORT", min=0, max=65535, help="Default: DRAGOMAN_PORT; 0 is any free one."),
    ] = None,
    worker: Annotated[
        bool, typer.Option("--worker/--no-worker", help="Whether this process also executes runs.")
    ] = True,
) -> None:
    """Run the service until it is stopped. On a terminal it prints a link that signs in to the
    console."""
    with loading():
        from interfaces.cli.checked_settings import checked_settings
        from interfaces.service import serve as serve_until_stopped

    given = {"host": host, "port": port}
    settings = checked_settings(**{name: str(value) for name, value in given.items() if value is not None})
    try:
        code = serve_until_stopped(settings, worker=worker)
    except ServiceError as error:
        import asyncio

        from interfaces.cli.connecting import running_service

        other = asyncio.run(running_service(settings.home)) if error.code in _ALREADY else None
        if other is None:
            raise
        raise CommandFailure(
            f"A service (pid {other.pid}) owns the data directory {settings.home} already, at {other.url}. "
            "`dragoman open` opens its console; for a second service set DRAGOMAN_HOME and --port."
        ) from error
    if code:
        raise typer.Exit(code)
