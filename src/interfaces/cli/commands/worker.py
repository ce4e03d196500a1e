"""`dragoman worker`: a process that executes runs, in the foreground."""

import typer

from interfaces.cli.loading import loading


def worker() -> None:
    """Execute runs of a PostgreSQL database. It runs until it is stopped, beside `dragoman serve`
    and other workers. SIGTERM lets runs finish their current step and hands them back to other
    workers. DRAGOMAN_WORKER_CONCURRENCY bounds concurrent runs."""
    with loading():
        from interfaces.cli.checked_settings import checked_settings
        from interfaces.worker.process import work

    if code := work(checked_settings()):
        raise typer.Exit(code)
