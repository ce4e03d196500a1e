"""`dragoman worker`: a process that executes runs, in the foreground."""

import gc

import typer


def worker() -> None:
    """Execute runs of a PostgreSQL database until stopped, beside `dragoman serve` and other workers.

    SIGTERM lets runs finish the step in hand and hands them back to the other workers. DRAGOMAN_WORKER_CONCURRENCY says
    how many runs are executed at a time.
    """
    # What is imported stays for good, as in `serve`.
    gc.disable()
    from interfaces.cli.connecting import checked_settings
    from interfaces.worker import work

    gc.freeze()
    gc.enable()
    if code := work(checked_settings()):
        raise typer.Exit(code)
